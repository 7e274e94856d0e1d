"""A gateway to be killed: `hindering_gateway.py KEEPER MARK TOKEN DIRECTORY SHELL_TEXT`.

Runs SHELL_TEXT below the given keeper program, prints what the command prints, and waits for its
own end. With a MARK other than `own` no later gateway finds the keeper.
"""

import asyncio
import os
import sys
from pathlib import Path

from codespace.domain.ids import ProcessId
from codespace.runner import keeper, spawn
from codespace.runner.api import Containment, RunnerFacts, StartRequest
from codespace.runner.local import LocalRunner
from programs.running import ENVIRONMENT, LIMITS, root_at


async def main() -> None:
    keeper.__file__, word, _token, directory, text = sys.argv[1:]
    if word != "own":
        spawn.mark = lambda: word
    runner = LocalRunner(LIMITS, RunnerFacts(Containment.KEEPER), None)
    process_id, cursor = ProcessId("proc-1"), 0
    environment = {**ENVIRONMENT, "GATEWAY": str(os.getpid()), "PYTHON": sys.executable}
    request = StartRequest(process_id, root_at(Path(directory)), ("sh", "-c", text), environment)
    await runner.start(request)
    while True:
        chunk = await runner.read(process_id, cursor, max_bytes=1_000, wait_ms=1_000)
        cursor = chunk.cursor
        sys.stdout.write(chunk.text)
        sys.stdout.flush()


if __name__ == "__main__":
    asyncio.run(main())
