"""(d) A command from its start to its collected end, against bubblewrap started by hand."""

import asyncio
import secrets
import subprocess
from collections.abc import Iterator
from pathlib import Path

import uvloop
from figures import Plan, Row, interleave, timed, timed_async
from gateways import gateway_on
from references import bubblewrap, environment

from codespace.bootstrap import Gateway
from codespace.domain.ids import ProcessId
from codespace.runner.api import StartRequest

TARGET = 2.0
AT_ONCE = 50
TRUE = "/bin/true"
PATH = {"PATH": "/usr/bin:/bin"}


def bare_command() -> list[str]:
    """Return /bin/true in its own process namespace, as bubblewrap takes it."""
    mounts = ["--bind", "/", "/", "--dev-bind", "/dev", "/dev", "--proc", "/proc"]
    return [bubblewrap(), *mounts, "--unshare-pid", "--die-with-parent", TRUE]


def measure(plan: Plan) -> Iterator[Row]:
    """Measure one command after another, and many at once."""
    yield from uvloop.run(compare(plan.folder("starts"), plan))


async def compare(root: Path, plan: Plan) -> list[Row]:
    """Return the rows: through the tools, through the runner, and fifty at once."""
    bare = bare_command()
    async with gateway_on(root, max_processes=AT_ONCE) as gateway:
        tools, runner, reference = await interleave(
            plan.rounds(100, 20),
            timed_async(lambda: through_tools(gateway)),
            timed_async(lambda: through_runner(gateway)),
            timed(lambda: run_bare(bare)),
        )
        many, many_bare = await interleave(
            plan.rounds(7, 2),
            timed_async(lambda: asyncio.gather(*(through_runner(gateway) for _ in range(AT_ONCE)))),
            timed(lambda: run_many(bare)),
        )
    bwrap = "bwrap, Popen and wait"
    return [
        Row("d", "true, tools: start to eof", "ms", tools * 1e3, reference * 1e3, TARGET, bwrap),
        Row("d", "true, runner: start to eof", "ms", runner * 1e3, reference * 1e3, TARGET, bwrap),
        Row("d", f"{AT_ONCE} at once", "/s", AT_ONCE / many, AT_ONCE / many_bare, None, bwrap),
    ]


async def through_tools(gateway: Gateway) -> None:
    """Start the command, collect its output to the end, and look up how it ended."""
    started = await gateway.call("exec_command", {"workspace_id": "default", "command": [TRUE]})
    handle = {"process_id": started["process_id"], "wait_ms": 10_000}
    while not (await gateway.call("read_process", handle))["eof"]:
        pass
    state = await gateway.call("process_status", handle)
    if state.get("exit_code") != 0:
        raise RuntimeError(f"the command ended badly: {state}")


async def through_runner(gateway: Gateway) -> None:
    """Start the command and collect its end, without the gateway's tools."""
    workspace = next(iter(gateway.workspaces.values()))
    process_id = ProcessId(f"proc-{secrets.token_hex(16)}")
    await gateway.runner.start(StartRequest(process_id, workspace.root, (TRUE,), PATH))
    while not (await gateway.runner.read(process_id, 0, max_bytes=4096, wait_ms=10_000)).eof:
        pass
    state = await gateway.runner.status(process_id)
    if state.exit_code != 0:
        raise RuntimeError(f"the command ended badly: {state}")


def run_bare(command: list[str]) -> None:
    """Start the reference and wait for its end."""
    subprocess.run(command, check=True, stdin=subprocess.DEVNULL, env=environment())


def run_many(command: list[str]) -> None:
    """Start the reference many times, then wait for all."""
    running = [
        subprocess.Popen(command, stdin=subprocess.DEVNULL, env=environment())
        for _ in range(AT_ONCE)
    ]
    for process in running:
        if process.wait() != 0:
            raise RuntimeError("bubblewrap failed")
