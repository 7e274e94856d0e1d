"""What the drivers in Python measure with: the best of some runs, the loop's delay, the memory.

A driver prints one `["measure", value]` line for each measure. `Engine` is all that differs.
"""

import asyncio
import json
import os
import time
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from pathlib import Path

from scripts import CALLS, RICH_CALLS, ROWS, TEXT_CHARS

Run = Callable[[str], Awaitable[object]]
"""Runs a script to its end and returns its value; raises when it fails."""

LIMIT_SECONDS = 60
SPIN_SECONDS = 1.0
BEAT_SECONDS = 0.005
WARM_RUNS = 30
SUSPENDED = 50
# script, measure, runs, what one run is divided by, what a second is multiplied with
TIMED = (
    ("seq", "seq_us", 5, CALLS, 1e6),
    ("conc", "conc_us", 5, CALLS, 1e6),
    ("real", "real_us", 5, RICH_CALLS, 1e6),
    ("mb", "mb_ms", 5, 1, 1e3),
    ("objs", "objs_ms", 3, 1, 1e3),
    ("loop", "loop_ms", 3, 1, 1e3),
    ("mix", "mix_ms", 3, 1, 1e3),
)


def put(measure: str, value: object) -> None:
    """Print one measure."""
    print(json.dumps([measure, value]), flush=True)


def given() -> dict[str, object]:
    """Return the scripts that this driver was started with."""
    return json.loads(os.environ["SCRIPTS"])


def text() -> str:
    """Return the long result."""
    return "x" * TEXT_CHARS


def rows() -> list[dict[str, object]]:
    """Return the result of many objects."""
    return [
        {"id": number, "name": f"row {number}", "v": number * 0.5, "ok": True}
        for number in range(ROWS)
    ]


async def best(run: Run, script: str, count: int) -> float:
    """Return the seconds of the fastest of some runs."""
    least = float("inf")
    for _ in range(count):
        started = time.perf_counter()
        await run(script)
        least = min(least, time.perf_counter() - started)
    return least


async def timed(run: Run, scripts: Mapping[str, str], nothing: str) -> None:
    """Measure a script that does nothing, then all others without what that one takes."""
    warm = await best(run, nothing, WARM_RUNS)
    put("warm_ms", warm * 1e3)
    for name, measure, count, divisor, factor in TIMED:
        try:
            seconds = await asyncio.wait_for(best(run, scripts[name], count), LIMIT_SECONDS)
        except Exception as error:  # noqa: BLE001 -- a peer may not be able to do it
            put(measure, f"error: {type(error).__name__}: {error}"[:80])
        else:
            put(measure, max(seconds - warm, 0) / divisor * factor)


async def spun(run: Run, script: str) -> None:
    """Measure how an endless loop ends, and how late the event loop gets meanwhile."""
    late = 0.0

    async def beat() -> None:
        nonlocal late
        while True:
            started = time.perf_counter()
            await asyncio.sleep(BEAT_SECONDS)
            late = max(late, time.perf_counter() - started - BEAT_SECONDS)

    beating = asyncio.create_task(beat())
    await asyncio.sleep(0.05)
    late, started = 0.0, time.perf_counter()
    await told("spin_err", run, script)
    put("spin_ms", (time.perf_counter() - started) * 1e3)
    await asyncio.sleep(2 * BEAT_SECONDS)
    put("lag_ms", late * 1e3)
    beating.cancel()


async def told(measure: str, run: Run, script: str) -> None:
    """Measure what a script that goes wrong says."""
    try:
        said = await asyncio.wait_for(run(script), 8 * SPIN_SECONDS)
    except Exception as error:  # noqa: BLE001 -- the error is what is asked for
        said = f"{type(error).__name__}: {error}"
    put(measure, " ".join(str(said).split())[:80])


async def suspended(start: Callable[[], Awaitable[object]], waiting: list[object]) -> None:
    """Measure the memory of scripts that wait in a call; the call notes itself in `waiting`."""
    before = memory_mib()
    tasks = [asyncio.ensure_future(start()) for _ in range(SUSPENDED)]
    until = time.monotonic() + LIMIT_SECONDS
    while len(waiting) < SUSPENDED and time.monotonic() < until:
        await asyncio.sleep(0.02)
    put("idle_mb", (memory_mib() - before) / max(len(waiting), 1))
    for task in tasks:
        task.cancel()


def memory_mib() -> float:
    """Return the proportional memory of this process and its descendants."""
    total, waiting = 0, [os.getpid()]
    while waiting:
        pid = waiting.pop()
        with suppress(OSError):
            for task in Path(f"/proc/{pid}/task").iterdir():
                waiting += map(int, (task / "children").read_text(encoding="ascii").split())
            rollup = Path(f"/proc/{pid}/smaps_rollup").read_text(encoding="ascii")
            total += int(rollup.partition("\nPss:")[2].split()[0])
    return total / 1024
