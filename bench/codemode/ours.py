"""Drives `codespace.codemode` as its users run it.

Checks of arguments and results, call records and a journal of every step are on.

    SCRIPTS=… python ours.py          prints its measures
    SCRIPTS=… python ours.py first    runs `return 1+2`, and ends
"""

import asyncio
import os
import sys

from codespace.codemode import Sandbox

FIRST = "return 1+2"


async def first() -> None:
    """Run one script in a fresh process."""
    async with Sandbox() as sandbox:
        print((await sandbox.run(FIRST)).value, flush=True)


def main() -> None:
    """Run the first script only, or everything."""
    if "first" in sys.argv[1:]:
        asyncio.run(first())
        os._exit(0)
    from our_measures import measure  # noqa: PLC0415 -- the first script must not pay for it

    asyncio.run(measure())
    os._exit(0)


if __name__ == "__main__":
    main()
