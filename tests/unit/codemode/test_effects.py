"""What a run leaves behind is said once, and never of a call that is known to have done nothing."""

import asyncio

import pytest

from codespace.codemode import CallRecord, CallState, Effect, Outcome, RunStatus, Sandbox, Tool
from codespace.codemode.effects import remaining
from doubles.script_tools import Json, echo

CHANGE = Tool("change", echo)
TOOLS = [CHANGE, Tool("look", echo, effect=Effect.READ), Tool("work", echo, effect=Effect.EXECUTE)]


def record(tool: str, state: CallState, *, started: float | None = 1.0) -> CallRecord:
    return CallRecord(1, tool, 1, 1, state, started_ms=started)


def told(outcome: Outcome) -> list[str]:
    return [each.message for each in outcome.problems if each.code == "EFFECTS_REMAIN"]


@pytest.mark.parametrize("status", [RunStatus.FAILED, RunStatus.CANCELLED])
def test_a_run_that_did_not_complete_tells_of_every_call_that_may_have_changed_something(
    status: RunStatus,
) -> None:
    states = [CallState.OK, CallState.OK, CallState.FAILED, CallState.CANCELLED, CallState.UNKNOWN]
    records = [record(tool.name, state) for tool in TOOLS for state in states]
    (problem,) = remaining(status, records, TOOLS)
    assert problem.message.endswith("are not undone: change (4), work (4).")


def test_a_run_that_completed_tells_only_of_calls_that_were_cut() -> None:
    states = [CallState.OK, CallState.CANCELLED]
    records = [record("change", state) for state in states]
    (problem,) = remaining(RunStatus.COMPLETED, records, TOOLS)
    assert problem.message.endswith(": change (1).")


@pytest.mark.parametrize("status", [RunStatus.COMPLETED, RunStatus.FAILED])
def test_a_call_that_never_began_changed_nothing(status: RunStatus) -> None:
    assert not remaining(status, [record("change", CallState.CANCELLED, started=None)], TOOLS)


@pytest.mark.anyio
async def test_without_a_gateway_a_script_that_throws_says_what_it_has_changed() -> None:
    async with Sandbox(TOOLS) as sandbox:
        failed = await sandbox.run("await tools.change(); await tools.look(); throw new Error(1)")
        completed = await sandbox.run("await tools.change()")
    assert [each.endswith(": change (1).") for each in told(failed)] == [True]
    assert told(completed) == []


@pytest.mark.anyio
async def test_without_a_gateway_a_cancelled_run_says_what_it_may_have_changed() -> None:
    async def change(arguments: Json) -> object:
        run.cancel()
        await asyncio.sleep(60)

    async with Sandbox([Tool("change", change)]) as sandbox:
        run = await sandbox.prepare("await tools.change()")
        outcome = await run.execute()
    assert [each.endswith(": change (1).") for each in told(outcome)] == [True]


@pytest.mark.anyio
async def test_a_call_that_was_taken_up_but_never_made_is_told_as_one_that_could_not_begin() -> (
    None
):
    made: list[object] = []

    async def change(arguments: Json) -> object:
        made.append(arguments)
        return None

    schema: Json = {"type": "object", "properties": {"n": {"maxItems": 1_000_000}}}
    async with Sandbox([Tool("change", change, input_schema=schema)]) as sandbox:
        # Its arguments are judged on a worker thread when the script ends.
        run = await sandbox.prepare(
            "await tools.change({n: Array(5_000).fill(0)})", progress=lambda _: run.cancel()
        )
        outcome = await run.execute()

    assert made == []
    assert outcome.status is RunStatus.CANCELLED
    assert [each.message for each in outcome.problems] == [
        "The run ended before this call could begin; await it."
    ]
