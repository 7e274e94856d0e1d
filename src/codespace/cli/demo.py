"""`codespace demo`: the main job in one command, on a small project that it makes and removes."""

import sys
import tempfile
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Annotated

import anyio
from cyclopts import Parameter

from codespace import logs
from codespace.adapters.client import Connection, Era, connect_http, connect_stdio
from codespace.cli.server_process import serving_http
from codespace.cli.walk import StepError, Walk, make_project

ERAS: tuple[Era, ...] = ("2025-11-25", "2026-07-28")


def demo(
    *,
    http: Annotated[bool, Parameter(help="Over HTTP instead of stdio.", negative=())] = False,
    protocol: Annotated[Era, Parameter(help="Protocol revision to speak.")] = "2025-11-25",
) -> int:
    """Make a small project, start the real server, and walk through what CodeSpace does.

    Exit code 0 only if each step held.
    """
    logs.configure()
    with tempfile.TemporaryDirectory(prefix="codespace-demo-") as directory:
        root = Path(directory, "project")
        root.mkdir()
        make_project(root)
        print(f"A small project is in {root}; the server runs as a process of its own.")
        print(f"Speaking MCP {protocol} over {'HTTP' if http else 'stdio'}.\n")
        database = str(Path(directory, "ledger.db"))
        walk = _over_http if http else _over_stdio
        try:
            anyio.run(walk, root, database, protocol)
        except StepError as error:
            print(f"\nFAILED: {error}")
            return 1
    print("\nEvery step held. Next: register it in your client; the README says how.")
    return 0


async def _over_stdio(root: Path, database: str, era: Era) -> None:
    command = [
        *(sys.executable, "-m", "codespace", "serve", str(root)),
        *("--operations-db", database),
    ]

    @asynccontextmanager
    async def connect() -> AsyncGenerator[Connection]:
        async with connect_stdio(command, era=era) as connection:
            yield connection

    await Walk(connect, print).run()


async def _over_http(root: Path, database: str, era: Era) -> None:
    async with serving_http(root, "--operations-db", database) as server:

        @asynccontextmanager
        async def connect() -> AsyncGenerator[Connection]:
            async with connect_http(server.url, era=era) as connection:
                yield connection

        await Walk(connect, print).run()
