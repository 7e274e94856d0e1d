"""A gateway with a worker process, to be killed: `worker_gateway.py CONTAINMENT TOKEN DIRECTORY`.

TOKEN is in the command line of the worker and of all its commands. Prints a line when the worker is
there, and one when the commands run.
"""

import asyncio
import sys
from pathlib import Path

from codespace.domain.ids import ProcessId
from codespace.runner.api import Containment, StartRequest
from codespace.runner.uds import UdsRunner
from programs.running import ENVIRONMENT, LIMITS, root_at


async def main() -> None:
    containment, token, directory = Containment(sys.argv[1]), sys.argv[2], Path(sys.argv[3])
    sys.path.append(f"/nowhere/{token}")  # where a worker imports from is in its arguments
    print("begins", flush=True)
    runner = await UdsRunner.open(limits=LIMITS, containment=containment)
    print("open", flush=True)
    for number, text in enumerate(
        (
            f"exec sleep 3600.{token}",
            f"setsid sleep 3600.{token} & exec sleep 3600.{token}",
            f"(setsid sleep 3600.{token} >/dev/null 2>&1 &); trap '' TERM HUP; sleep 3600.{token}",
        )
    ):
        request = StartRequest(
            ProcessId(f"proc-{number}"), root_at(directory), ("sh", "-c", text), ENVIRONMENT
        )
        await runner.start(request)
    print("runs", flush=True)
    await runner.read(ProcessId("proc-0"), 0, max_bytes=1, wait_ms=30_000)


if __name__ == "__main__":
    asyncio.run(main())
