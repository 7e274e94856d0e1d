"""Hundreds of runs, a third of them hostile, side by side: memory stays flat, nothing is lost."""

import asyncio
import gc
import itertools
import random
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from codespace.codemode import RunStatus, Sandbox, Tool
from codespace.codemode.pool import PLACES
from codespace.domain.run_limits import LimitOptions
from doubles.hostile_scripts import CRASHING, FILLING, SPINNING

SECONDS = 20
WORKERS = 8
GROWTH_MAX_MIB = 48

HONEST: dict[str, Callable[[int], int]] = {
    "return args.n + 1": lambda n: n + 1,
    "return (await tools.echo({n: args.n})).n": lambda n: n,
    "return (await Promise.all([1, 2, 3, 4, 5].map(i => tools.echo({i})))).length": lambda _: 5,
    "store('k', args.n); text('x'.repeat(2000)); return load('k')": lambda n: n,
    "await Promise.race([tools.nap(), tools.echo({})]); return 1": lambda _: 1,
}


def _resident_mib() -> float:
    gc.collect()
    for line in Path("/proc/self/status").read_text(encoding="utf-8").splitlines():
        if line.startswith("VmRSS:"):
            return int(line.split()[1]) / 1024
    raise AssertionError("no VmRSS")


async def _echo(arguments: object) -> object:
    return arguments


async def _nap(arguments: object) -> None:
    await asyncio.sleep(0.005)


@pytest.mark.slow
@pytest.mark.timeout(120)
@pytest.mark.anyio
async def test_a_soak_leaves_memory_flat_and_every_honest_run_right() -> None:
    chance = random.Random(5)
    hostile = list({**SPINNING, **FILLING, **CRASHING}.values())
    turns, numbers = itertools.count(), itertools.count()
    runs = {"honest": 0, "hostile": 0}
    tools = [Tool("echo", _echo), Tool("nap", _nap)]
    limits: LimitOptions = {"timeout_ms": 1_500, "step_ms": 60, "engine_ms": 120, "memory_mib": 24}
    async with Sandbox(tools, **limits) as sandbox:
        # What a place of VMs keeps for the next ones is no growth: all have had the worst first.
        for code in [*FILLING.values(), *CRASHING.values()]:
            await asyncio.gather(*(sandbox.run(code) for _ in range(PLACES)))

        async def work(until: float) -> None:
            while time.monotonic() < until:
                if next(turns) % 3 == 0:
                    outcome = await sandbox.run(chance.choice(hostile))
                    assert outcome.status in (RunStatus.COMPLETED, RunStatus.FAILED)
                    runs["hostile"] += 1
                    continue
                code, expected = chance.choice(list(HONEST.items()))
                n = next(numbers)
                outcome = await sandbox.run(code, args={"n": n})
                assert (outcome.status, outcome.value) == (RunStatus.COMPLETED, expected(n)), (
                    code,
                    outcome.error,
                )
                runs["honest"] += 1

        async def soak(seconds: float) -> None:
            until = time.monotonic() + seconds
            await asyncio.gather(*(work(until) for _ in range(WORKERS)))

        await soak(SECONDS / 3)
        before = _resident_mib()
        await soak(SECONDS * 2 / 3)
        after = _resident_mib()

    print(f"{runs}, {before:.0f} → {after:.0f} MiB")
    assert after - before < GROWTH_MAX_MIB
    assert runs["honest"] > 50
    assert runs["hostile"] > 20
