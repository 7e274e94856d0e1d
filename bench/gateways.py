"""A gateway inside this process: the Python API, as an embedding program uses it."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from references import environment

from codespace.bootstrap import Gateway, open_gateway
from codespace.settings import load


@asynccontextmanager
async def gateway_on(
    root: Path,
    *,
    ledger: Path | None = None,
    durable: bool = True,
    max_processes: int = 8,
    seconds: float = 120,
    runner: str = "in-process",
) -> AsyncIterator[Gateway]:
    """Run a gateway whose workspace `default` is `root`."""
    flags: dict[str, object] = {
        "operations_db": None if ledger is None else str(ledger),
        "max_processes": max_processes,
        "process_timeout_secs": seconds,
        "runner": runner,
        "log_level": "ERROR",
    }
    loaded = load(path=str(root), flags=flags, environ=environment())
    async with open_gateway(loaded, durable=durable) as gateway:
        yield gateway
