import pytest

from codespace.codemode import Sandbox
from codespace.codemode.ending import End, Loose, explained_by_calls, problems, verdict
from codespace.codemode.outcome import (
    CallRecord,
    CallState,
    ErrorKind,
    RunError,
    RunProblem,
    RunStatus,
)
from codespace.codemode.protocol import Problem, Status, Unhandled
from codespace.codemode.steps import Stop
from codespace.domain.run_limits import RunLimits

LIMITS = RunLimits()


def _problem(
    name: str = "Error", message: str = "no", *, call_no: int = 0, limit: str = ""
) -> Problem:
    return Problem(name, message, 3, 5, "    at main (script.js:3:5)\n", call_no, "", limit)


def _told(end: End, source: str = "") -> tuple[RunStatus, ErrorKind | None, str]:
    status, error = verdict(end, LIMITS, 400, source)
    return status, error.kind if error else None, error.message if error else ""


def test_a_script_that_returned_or_exited_completed() -> None:
    for status in (Status.DONE, Status.EXITED):
        assert _told(End(status)) == (RunStatus.COMPLETED, None, "")


def test_a_run_that_somebody_ended_is_cancelled() -> None:
    for status in (Status.ENDED, Status.INTERRUPTED, Status.LOST):
        assert _told(End(status, cancelled=True))[0] is RunStatus.CANCELLED
    assert _told(End(Status.DONE, cancelled=True))[0] is RunStatus.COMPLETED


def test_each_limit_of_time_is_named() -> None:
    for stop, words in (
        (Stop.STEP, "5000 ms without a pause, the limit (step_ms)"),
        (Stop.ENGINE, "60000 ms in all, the limit (engine_ms)"),
        (Stop.RUN, "took 400 ms, its time limit (timeout_ms)"),
    ):
        _, kind, message = _told(End(Status.INTERRUPTED, _problem(), stopped=stop))
        assert kind is ErrorKind.TIMEOUT
        assert words in message
        assert "use a tool that waits" in message


def test_a_run_that_waited_too_long_says_for_what() -> None:
    end = End(Status.ENDED, _problem(), stopped=Stop.RUN, running=["slow", "slower"])

    assert "It waited for slow, slower." in _told(end)[2]


def test_a_script_that_had_to_be_killed_is_said_to_have_been() -> None:
    end = End(Status.LOST, lost="it did not stop", stopped=Stop.STEP)

    assert _told(end)[1] is ErrorKind.TIMEOUT
    assert "was killed" in _told(end)[2]


def test_an_engine_that_broke_is_the_engines_fault() -> None:
    assert _told(End(Status.LOST, lost="wasm trap: unreachable"))[1] is ErrorKind.ENGINE


def test_a_thrown_error_is_the_scripts_unless_it_is_a_limits() -> None:
    assert _told(End(Status.FAILED, _problem()))[1:] == (ErrorKind.SCRIPT, "no")
    assert _told(End(Status.FAILED, _problem(limit="calls")))[1] is ErrorKind.LIMIT
    memory = _told(End(Status.FAILED, _problem("InternalError", "out of memory", limit="memory")))
    assert memory[1] is ErrorKind.LIMIT
    assert "64 MiB of memory (memory_mib)" in memory[2]
    assert _told(End(Status.DEADLOCK, _problem("Deadlock", "it waits")))[1] is ErrorKind.DEADLOCK


def test_a_syntax_error_of_the_script_is_explained_and_one_of_its_data_is_not() -> None:
    source = "\n\nconst a: number = 1"
    compiling = Problem("SyntaxError", "unexpected", 3, 1, "    at script.js:3:1\n", 0, "", "")
    parsing = Problem("SyntaxError", "unexpected", 3, 1, "    at parse (native)\n", 0, "", "")

    assert "TypeScript" in _told(End(Status.FAILED, compiling), source)[2]
    assert _told(End(Status.FAILED, parsing), source)[2] == "unexpected"


def _record(
    call_no: int, state: CallState, *, late: bool = False, begun: bool = True
) -> CallRecord:
    started = 1.0 if begun else None
    return CallRecord(
        call_no, "t", call_no * 10, 1, state, "BUSY", "no", late=late, started_ms=started
    )


def test_problems_are_what_is_not_plain_success() -> None:
    records = [
        _record(1, CallState.OK),
        _record(2, CallState.FAILED),
        _record(3, CallState.FAILED),
        _record(4, CallState.FAILED),
        _record(5, CallState.CANCELLED),
        _record(6, CallState.CANCELLED, begun=False),
        _record(7, CallState.UNKNOWN),
        _record(8, CallState.OK, late=True),
        _record(9, CallState.FAILED, late=True),
    ]
    loose = Loose(
        unhandled=[Unhandled(_problem("ToolError", "no", call_no=3)), Unhandled(_problem())],
        undelivered=frozenset({4}),
        more=2,
    )
    noted = [RunProblem("SCHEMA_MISMATCH", "…", call_no=1, tool="t")]

    found = problems(records, loose, noted)

    assert [(each.call_no, each.code, each.handled) for each in found] == [
        (1, "SCHEMA_MISMATCH", None),
        (2, "BUSY", True),
        (3, "BUSY", False),
        (4, "BUSY", False),
        (5, "CANCELLED", None),
        (6, "CANCELLED", None),
        (7, "UNKNOWN_OUTCOME", None),
        (8, "NOT_AWAITED", None),
        (9, "BUSY", False),
        (0, "UNHANDLED_REJECTION", False),
        (0, "UNHANDLED_REJECTION", False),
    ]
    assert found[1].line == 20
    assert found[-1].message == "2 more rejections were not handled."


def test_the_rejection_that_ended_the_script_was_not_handled() -> None:
    (found,) = problems([_record(2, CallState.FAILED)], Loose(fatal=2), [])

    assert found.handled is False


FORGOTTEN = [
    "const x = tools.nap({ms: 9e6});\nreturn x.content.length",
    "const {content} = tools.nap({ms: 9e6});\nreturn content.split('')",
    "const x = tools.nap({ms: 9e6});\nawait tools.echo();\nreturn x.map(each => each)",
    "const x = tools.nap({ms: 9e6});\nfor (const each of x) text(each)",
    "const [first] = tools.nap({ms: 9e6}); return first",
    "const {a: {b}} = tools.nap({ms: 9e6}); return b",
]


@pytest.mark.anyio
@pytest.mark.parametrize("code", FORGOTTEN)
async def test_an_error_names_the_call_that_was_not_awaited(sandbox: Sandbox, code: str) -> None:
    error = (await sandbox.run(code)).error

    assert error is not None
    assert "(a call of nap at line 1 had not ended: await it)" in error.message


@pytest.mark.anyio
async def test_a_call_that_goes_on_beside_an_error_of_another_kind_is_not_blamed(
    sandbox: Sandbox,
) -> None:
    for code in (
        "tools.nap({ms: 9e6}); throw new TypeError('no')",
        "tools.nap({ms: 9e6}); throw new Error('cannot read property')",
        "await Promise.all([1, 9e6].map(async ms => (await tools.nap({ms})).content.length))",
        "await tools.echo(); null.x;\ntools.nap({ms: 9e6})",
    ):
        error = (await sandbox.run(code)).error
        assert error is not None
        assert "await" not in error.message


def test_the_call_before_the_error_is_named() -> None:
    error = RunError(ErrorKind.SCRIPT, "TypeError", "not a function", line=5)
    records = [
        CallRecord(1, "a", 2, 1, CallState.CANCELLED),
        CallRecord(2, "b", 4, 1, CallState.OK, late=True),
        CallRecord(3, "c", 5, 1, CallState.OK),
        CallRecord(4, "d", 9, 1, CallState.UNKNOWN),
    ]
    told = explained_by_calls(error, records)
    assert told is not None
    assert "a call of b at line 4" in told.message
    assert explained_by_calls(error, records[2:]) == error
    assert explained_by_calls(None, records) is None
