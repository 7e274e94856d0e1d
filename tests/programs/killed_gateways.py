"""Runs gateways and kills them: `killed_gateways.py pid-namespace|keeper COUNT TOKEN DIRECTORY`.

Each is a fork of this program that starts commands with TOKEN in their command lines and is sent
SIGKILL 0 to 25 ms, or now and then up to 150 ms, later. Prints JSON: how many were killed while a
command ran, how many commands survived for more than the patience, and how many launchers that
never ran anything were found and ended.
"""

import asyncio
import contextlib
import json
import os
import random
import signal
import sys
import time
from pathlib import Path

from codespace.domain.ids import ProcessId
from codespace.runner.api import Containment, RunnerFacts, StartRequest
from codespace.runner.launchers import end_orphaned_launchers
from codespace.runner.local import LocalRunner
from codespace.runner.sandbox import probe
from programs.running import LIMITS, living, root_at

PATIENCE = 10.0
LAUNCHER = b"codespace-launcher"


async def gateway(
    containment: Containment, launcher: str | None, token: str, directory: Path
) -> None:
    runner = LocalRunner(LIMITS, RunnerFacts(containment), launcher)
    texts = (
        f"exec sleep 3600.{token}",
        f"setsid sleep 3600.{token} & exec sleep 3600.{token}",
        f"(setsid sleep 3600.{token} >/dev/null 2>&1 &); trap '' TERM HUP; sleep 3600.{token}",
    )

    async def start(number: int, text: str) -> None:
        environment = {"PATH": "/usr/bin:/bin"}
        request = StartRequest(
            ProcessId(f"proc-{number}"), root_at(directory), ("sh", "-c", text), environment
        )
        await runner.start(request)

    await asyncio.gather(*(start(number, text) for number, text in enumerate(texts)))
    await runner.terminate(ProcessId("proc-2"))  # it is deaf, so the kill falls into the grace
    await asyncio.sleep(3_600)


def command_processes(token: str) -> list[int]:
    """Return what runs of commands: not the launchers, which only carry a command in their line."""
    found: list[int] = []
    for pid in living(token):
        with contextlib.suppress(OSError):
            if not Path(f"/proc/{pid}/cmdline").read_bytes().startswith(LAUNCHER):
                found.append(pid)
    return found


def killed_once(
    containment: Containment, launcher: str | None, token: str, directory: Path
) -> tuple[bool, int]:
    """Return whether a command ran at the instant of the kill, and how many survived it."""
    reader, writer = os.pipe()
    pid = os.fork()
    if pid == 0:
        os.write(writer, b"!")
        asyncio.run(gateway(containment, launcher, token, directory))
        os._exit(0)
    os.close(writer)
    os.read(reader, 1)
    os.close(reader)
    chance = random.Random()
    time.sleep(chance.uniform(0, 0.025) if chance.random() < 0.7 else chance.uniform(0.025, 0.15))
    ran = bool(command_processes(token))
    os.kill(pid, signal.SIGKILL)
    os.waitpid(pid, 0)
    deadline = time.monotonic() + PATIENCE
    while (left := command_processes(token)) and time.monotonic() < deadline:
        time.sleep(0.002)
    for survivor in left:
        os.kill(survivor, signal.SIGKILL)
    return ran, len(left)


def main() -> None:
    containment, count, token = Containment(sys.argv[1]), int(sys.argv[2]), sys.argv[3]
    launcher = probe().path if containment is Containment.PID_NAMESPACE else None
    results = [
        killed_once(containment, launcher, f"{token}{number:03}", Path(sys.argv[4]))
        for number in range(count)
    ]
    half_made = end_orphaned_launchers()
    deadline = time.monotonic() + PATIENCE
    while (left := living(f"3600.{token}")) and time.monotonic() < deadline:
        time.sleep(0.002)
    report = {
        "killed": len(results),
        "ran": sum(ran for ran, _ in results),
        "survived": sum(survived for _, survived in results),
        "half_made": half_made,
        "left": len(left),
    }
    sys.stdout.write(json.dumps(report))


if __name__ == "__main__":
    main()
