"""Whatever a script does, its run has an outcome, and the next run has its own."""

import asyncio
import os
from typing import cast

import pytest

from codespace.codemode import RunStatus, Sandbox, Tool
from doubles.hostile_scripts import CRASHING, FILLING, SPINNING
from doubles.loop_lag import watched

ALL = {**SPINNING, **FILLING, **CRASHING}


async def _echo(arguments: object) -> object:
    return arguments


def _sandbox() -> Sandbox:
    return Sandbox([Tool("echo", _echo)], timeout_ms=600, memory_mib=32)


@pytest.mark.anyio
@pytest.mark.parametrize("code", ALL.values(), ids=ALL.keys())
async def test_a_hostile_script_ends_and_harms_no_other(code: str) -> None:
    async with _sandbox() as sandbox:
        outcome = await sandbox.run(code)
        after = await sandbox.run("return (await tools.echo({a: 1})).a")

    assert outcome.status in (RunStatus.COMPLETED, RunStatus.FAILED)
    assert (outcome.error is None) == (outcome.status is RunStatus.COMPLETED)
    assert (after.status, after.value) == (RunStatus.COMPLETED, 1)


@pytest.mark.anyio
async def test_the_event_loop_keeps_answering_while_every_core_spins() -> None:
    async with _sandbox() as sandbox:
        await sandbox.run("return 1")
        async with watched() as quiet:
            await asyncio.sleep(0.6)
        async with watched() as busy:
            codes = list(SPINNING.values()) * max(1, (os.cpu_count() or 1) // 4)
            await asyncio.gather(*(sandbox.run(code) for code in codes))

    # On a machine of its own the worst is some 10 ms; here others run, so it is only not much.
    assert busy.worst_ms < 1_000
    assert busy.naps > quiet.naps / 4


@pytest.mark.anyio
async def test_a_script_that_works_gets_through_beside_scripts_that_spin() -> None:
    async with _sandbox() as sandbox:
        spinning = [asyncio.create_task(sandbox.run("while (true) {}")) for _ in range(3)]
        outcome = await sandbox.run(
            "let n = 0; for (let i = 0; i < 20; i++) n += (await tools.echo({i})).i; return n",
            timeout=0.6,
        )
        ended = await asyncio.gather(*spinning)

    assert outcome.value == 190
    assert {each.status for each in ended} == {RunStatus.FAILED}


@pytest.mark.anyio
async def test_large_results_are_not_encoded_on_the_event_loop_in_one_go() -> None:
    rows = [{"id": number, "name": f"item {number}", "tags": ["a"]} for number in range(60_000)]

    async def big(arguments: object) -> object:
        return rows

    async with Sandbox([Tool("big", big)]) as sandbox, watched() as lag:
        outcome = await sandbox.run("return (await tools.big()).length")

    assert cast("int", outcome.value) == 60_000
    assert lag.naps > 3
