"""Steps of a VM: what does not fit is a rejection, and nobody waits for long."""

import asyncio
import time

import pytest

from codespace.codemode import ErrorKind, RunStatus, Sandbox, Tool
from codespace.codemode.steps import PAUSE_SECONDS, Breather
from doubles.loop_lag import watched
from doubles.script_tools import ECHO, Json


@pytest.mark.anyio
async def test_a_result_without_room_in_the_memory_is_a_rejection() -> None:
    async def big(arguments: Json) -> object:
        return "x" * 12_000_000

    async with Sandbox([Tool("big", big), ECHO], memory_mib=16) as sandbox:
        outcome = await sandbox.run(
            "const seen = await Promise.allSettled([tools.big(), tools.echo({a: 1})]);"
            "return seen.map(each => each.value ?? each.reason.code ?? each.reason.name)"
        )

    assert outcome.status is RunStatus.COMPLETED
    assert outcome.value == ["LIMIT_EXCEEDED", {"a": 1}]


@pytest.mark.anyio
@pytest.mark.parametrize("value", ["x" * 12_000_000, ["é" * 100] * 50_000, "日" * 3_000_000])
async def test_an_error_of_what_has_no_room_names_tool_and_limit(value: object) -> None:
    async def big(arguments: Json) -> object:
        return value

    async with Sandbox([Tool("a-big", big)], memory_mib=14) as sandbox:
        outcome = await sandbox.run(
            "try { await tools.a_big() } catch (e) { return [e.name, e.tool, e.details.limit] }"
        )

    assert outcome.value == ["ToolError", "a-big", "memory"]


@pytest.mark.anyio
async def test_a_step_that_computes_for_long_lets_the_event_loop_work(sandbox: Sandbox) -> None:
    async with watched() as lag:
        outcome = await sandbox.run("let n = 0; while (n < 2e6) n++; return n")

    assert outcome.value == 2_000_000
    assert lag.naps > 2


@pytest.mark.anyio
async def test_many_endless_scripts_all_end_in_time_and_leave_the_event_loop_alone() -> None:
    async with Sandbox(runs=32) as sandbox, watched() as lag:
        await sandbox.run("return 1")
        began = time.perf_counter()
        outcomes = await asyncio.gather(
            *(sandbox.run("while (true) {}", timeout=1) for _ in range(32))
        )
        took = time.perf_counter() - began

    assert {each.error.kind for each in outcomes if each.error} == {ErrorKind.TIMEOUT}
    assert {each.error.name for each in outcomes if each.error} == {"TimeoutError"}
    assert all(each.engine_ms > 0 for each in outcomes)
    assert sum(each.engine_ms for each in outcomes) < 32 * 1_000 / 2  # waiting is not computing
    assert took < 10
    assert lag.worst_ms < 300


@pytest.mark.anyio
async def test_a_script_beside_endless_ones_comes_to_its_end() -> None:
    async with Sandbox(runs=8) as sandbox:
        endless = [asyncio.create_task(sandbox.run("while (true) {}", timeout=5)) for _ in range(6)]
        await asyncio.sleep(0)
        outcome = await sandbox.run("let n = 0; while (n < 5e6) n++; return n", timeout=30)
        assert outcome.value == 5_000_000
        assert not all(task.done() for task in endless)
        sandbox.close()
        assert {(await task).status for task in endless} == {RunStatus.CANCELLED}


@pytest.mark.anyio
async def test_many_operations_of_one_step_all_arrive_in_order(sandbox: Sandbox) -> None:
    outcome = await sandbox.run("for (let i = 0; i < 6000; i++) text(i)")

    assert outcome.text.split("\n") == [str(number) for number in range(6_000)]


@pytest.mark.anyio
async def test_engine_time_is_what_steps_took_and_not_what_calls_took(sandbox: Sandbox) -> None:
    outcome = await sandbox.run("await tools.nap({ms: 100})")

    assert 0 < outcome.engine_ms < outcome.wall_ms - 90


@pytest.mark.anyio
async def test_a_breather_gives_others_their_turn_only_when_it_is_due() -> None:
    breather = Breather(time.perf_counter() - 2 * PAUSE_SECONDS)
    turns: list[int] = []
    asyncio.get_running_loop().call_soon(turns.append, 1)

    await breather.breathe()

    assert turns == [1]
    assert Breather(time.perf_counter() + 3600).due is False
