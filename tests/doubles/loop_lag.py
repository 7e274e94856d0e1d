"""How late an event loop is, seen by a task on it."""

import asyncio
import time
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass

NAP_SECONDS = 0.005


@dataclass(slots=True)
class Lag:
    """The worst so far, and how many naps there were."""

    worst_ms: float = 0.0
    naps: int = 0


@asynccontextmanager
async def watched() -> AsyncGenerator[Lag]:
    """Watch the loop while the block runs: a task naps, and notes by how much it overslept."""
    lag = Lag()

    async def watch() -> None:
        while True:
            before = time.perf_counter()
            await asyncio.sleep(NAP_SECONDS)
            late = time.perf_counter() - before - NAP_SECONDS
            lag.worst_ms = max(lag.worst_ms, late * 1000)
            lag.naps += 1

    task = asyncio.create_task(watch())
    try:
        yield lag
    finally:
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task
