"""Runs by id and by key, what is known of them meanwhile, and which are forgotten."""

import anyio
import pytest

from codespace.codemode import CallState, Outcome, Progress, RunStatus, Sandbox
from codespace.codemode.outcome import CallCounts, CallRecord
from codespace.domain.errors import CodeSpaceError, ErrorCode
from codespace.domain.ids import RunId, RunKey, WorkspaceId
from codespace.gateway import script_runs
from codespace.gateway.script_runs import ENDED_KEPT, ENDED_KEPT_MS, RunRecord, ScriptRuns
from doubles.script_tools import NAP

W, KEY = WorkspaceId("w"), RunKey("k")
DONE = Outcome(RunStatus.COMPLETED, value=1)
CALL = CallRecord(1, "read", 1, 1, CallState.RUNNING)


def begun(runs: ScriptRuns, number: int = 1, *, key: str | None = None) -> RunRecord:
    scope = None if key is None else (W, RunKey(key))
    record = RunRecord(RunId(f"run-{number}"), W, f"print-{number}", 1_000, scope)
    runs.add(record)
    return record


def refusal(runs: ScriptRuns, run_id: str) -> CodeSpaceError:
    with pytest.raises(CodeSpaceError) as caught:
        runs.get(RunId(run_id))
    return caught.value


def test_a_run_is_found_by_its_id_before_and_after_its_end() -> None:
    runs = ScriptRuns()
    record = begun(runs)
    assert runs.get(record.run_id) is record
    assert runs.under_way == [record]
    runs.end(record, DONE, chars=1, now_ms=5)
    assert runs.get(record.run_id).outcome == DONE
    assert record.ended.is_set()
    assert runs.under_way == []


def test_an_unknown_id_is_refused_and_not_repeated_at_length() -> None:
    error = refusal(ScriptRuns(), "run-\n" + "x" * 1_000)
    assert error.code is ErrorCode.RUN_NOT_FOUND
    assert "\n" not in error.message
    assert len(error.message) < 300


def test_a_key_finds_the_run_of_the_same_request_alone() -> None:
    runs = ScriptRuns()
    record = begun(runs, key="k")
    assert runs.find((W, KEY), "print-1") is record
    assert runs.find((W, RunKey("other")), "print-1") is None
    assert runs.find((WorkspaceId("other"), KEY), "print-1") is None
    with pytest.raises(CodeSpaceError) as caught:
        runs.find((W, KEY), "print-2")
    assert caught.value.code is ErrorCode.RUN_CONFLICT
    assert caught.value.details == {"run_id": "run-1"}


def test_the_oldest_ended_runs_are_forgotten_with_their_keys() -> None:
    runs = ScriptRuns()
    under_way = begun(runs, 0, key="under way")
    for number in range(1, ENDED_KEPT + 3):
        runs.end(begun(runs, number, key=f"k{number}"), DONE, chars=1, now_ms=number)
    assert len(runs) == ENDED_KEPT + 1
    assert refusal(runs, "run-2").code is ErrorCode.RUN_NOT_FOUND
    assert runs.find((W, RunKey("k2")), "print-2") is None
    assert runs.find((W, RunKey("k3")), "print-3") is not None
    assert runs.under_way == [under_way]


def test_runs_are_forgotten_some_time_after_their_end() -> None:
    runs = ScriptRuns()
    for number, now_ms in ((1, 0), (2, 1), (3, ENDED_KEPT_MS + 1)):
        runs.end(begun(runs, number), DONE, chars=1, now_ms=now_ms)
    assert refusal(runs, "run-1").code is ErrorCode.RUN_NOT_FOUND
    assert runs.get(RunId("run-2")).outcome == DONE


def test_large_outcomes_crowd_out_older_ones_but_never_the_newest() -> None:
    runs = ScriptRuns()
    runs.end(begun(runs, 1), DONE, chars=1, now_ms=1)
    runs.end(begun(runs, 2), DONE, chars=script_runs.KEPT_CHARS * 2, now_ms=2)
    assert len(runs) == 1
    assert runs.get(RunId("run-2")).outcome == DONE
    runs.end(begun(runs, 3), DONE, chars=1, now_ms=3)
    assert refusal(runs, "run-2").code is ErrorCode.RUN_NOT_FOUND


def test_a_run_under_way_says_how_far_it_is() -> None:
    record = begun(ScriptRuns())
    ends = [CallState.RUNNING, CallState.OK, CallState.OK, CallState.FAILED, CallState.CANCELLED]
    for number, state in enumerate(ends):
        record.tell(Progress(9, 1, number, CALL._replace(state=state)))
    standing = record.standing(now_ms=1_250)
    assert standing == Outcome(
        RunStatus.RUNNING,
        calls=CallCounts(total=9, ok=2, failed=1, cancelled=1),
        run_id="run-1",
        wall_ms=250,
    )
    assert record.finished == 4


@pytest.mark.anyio
async def test_cancelling_ends_the_script_and_a_second_time_does_nothing() -> None:
    record = begun(ScriptRuns())
    async with Sandbox([NAP]) as sandbox:
        record.run = run = await sandbox.prepare("await tools.nap({ms: 9e6})")
        with anyio.fail_after(20):
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(run.execute)
                await anyio.wait_all_tasks_blocked()
                record.cancel()
                record.cancel()
    assert record.cancelled


def test_cancelling_before_the_script_is_made_is_remembered() -> None:
    record = begun(ScriptRuns())
    record.cancel()
    assert record.cancelled
