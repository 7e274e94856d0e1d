"""How a run ended: the engine's last words as the envelope's status, error and problems (pure)."""

from collections.abc import Iterable, Sequence
from collections.abc import Set as AbstractSet
from typing import NamedTuple

from codespace.codemode import syntax_hints
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

CANCELLED = "CANCELLED"

MESSAGE_CHARS = 4_000
"""A script can throw a text of any length; what is told of it is not its output."""


class End(NamedTuple):
    """What is known when a script has ended.

    Attributes:
        status: where the engine stands.
        failed: the error that it told, if any.
        lost: why the engine itself is lost; empty while it is not.
        stopped: the limit that ended the script, if one did.
        cancelled: somebody ended the run.
        running: the tools whose calls had not ended.
    """

    status: Status
    failed: Problem | None = None
    lost: str = ""
    stopped: Stop | None = None
    cancelled: bool = False
    running: Sequence[str] = ()


def verdict(
    end: End, limits: RunLimits, timeout_ms: float, source: str
) -> tuple[RunStatus, RunError | None]:
    """Return the status of the run and its error."""
    if end.status in (Status.DONE, Status.EXITED):
        return RunStatus.COMPLETED, None
    if end.cancelled:
        return RunStatus.CANCELLED, None
    return RunStatus.FAILED, _error(end, limits, timeout_ms, source)


def _error(end: End, limits: RunLimits, timeout_ms: float, source: str) -> RunError:
    failed = end.failed
    if end.stopped is not None:
        return _placed(
            ErrorKind.TIMEOUT, "TimeoutError", _too_long(end, limits, timeout_ms), failed
        )
    if end.status is Status.LOST:
        message = f"The engine broke under this script ({end.lost}); nothing outside was harmed."
        return RunError(ErrorKind.ENGINE, "EngineError", message)
    if failed is None:
        return RunError(ErrorKind.ENGINE, "EngineError", f"The engine said {end.status.name}.")
    if end.status is Status.DEADLOCK:
        return _placed(ErrorKind.DEADLOCK, "DeadlockError", f"{failed.message}.", failed)
    kind = ErrorKind.LIMIT if failed.limit else ErrorKind.SCRIPT
    return _placed(kind, failed.name, _explained(failed, source, limits), failed)


def _placed(kind: ErrorKind, name: str, message: str, place: Problem | None) -> RunError:
    if place is None:
        return RunError(kind, name, message)
    texts = (shortened(name), shortened(message))
    return RunError(kind, *texts, place.line, place.column, shortened(place.stack))


def _too_long(end: End, limits: RunLimits, timeout_ms: float) -> str:
    killed = " It did not stop when it was asked to, and was killed." if end.lost else ""
    match end.stopped:
        case Stop.STEP:
            what = (
                f"The script computed for {limits.step_ms} ms without a pause, the limit (step_ms)."
            )
        case Stop.ENGINE:
            what = f"The script computed for {limits.engine_ms} ms in all, the limit (engine_ms)."
        case _:
            what = f"The run took {timeout_ms:.0f} ms, its time limit (timeout_ms)."
    waiting = f" It waited for {', '.join(end.running[:8])}." if end.running else ""
    clock = " To wait for something, use a tool that waits." if not end.running else ""
    return f"{what}{waiting}{killed}{clock}"


def _explained(failed: Problem, source: str, limits: RunLimits) -> str:
    if failed.limit == "memory":
        return (
            f"{failed.message}: the script may use {limits.memory_mib} MiB of memory (memory_mib)"
        )
    if failed.limit == "stack":
        return f"{failed.message}: the script calls itself too deeply for its stack (stack)"
    if failed.name == "SyntaxError" and "(" not in failed.stack:
        return syntax_hints.explain(source, failed.message, failed.line)
    if failed.name == "ReferenceError":
        return syntax_hints.explain_name(failed.message)
    return failed.message


_OF_A_PROMISE = (
    "cannot read property",
    "not a function",
    "value is not iterable",
    "undefined or null",
)
"""What the engine says of a promise that is used as if it were its result."""


def explained_by_calls(error: RunError | None, records: Sequence[CallRecord]) -> RunError | None:
    """Return the error with the call in it that was probably not awaited, if there is one."""
    if error is None or error.name != "TypeError":
        return error
    if not any(words in error.message for words in _OF_A_PROMISE):
        return error
    # Where one call was answered, the script knows how to wait: others there were under way.
    answered = {(each.line, each.column) for each in records if not _unfinished(each)}
    left = [
        each for each in records if _unfinished(each) and (each.line, each.column) not in answered
    ]
    before = [each for each in left if each.line <= (error.line or each.line)]
    if not before:
        return error
    hint = f"a call of {before[-1].tool} at line {before[-1].line} had not ended: await it"
    return error._replace(message=f"{error.message} ({hint})")


def _unfinished(record: CallRecord) -> bool:
    return record.late or record.state in (CallState.CANCELLED, CallState.UNKNOWN)


class Loose(NamedTuple):
    """What was still open when the script ended.

    Attributes:
        unhandled: rejections that nobody had handled.
        undelivered: calls whose answers the script did not get to see.
        more: unhandled rejections beyond those.
        fatal: the call whose rejection ended the script; 0: none.
    """

    unhandled: Sequence[Unhandled] = ()
    undelivered: AbstractSet[int] = frozenset[int]()
    more: int = 0
    fatal: int = 0


def problems(
    records: Iterable[CallRecord], loose: Loose, noted: Sequence[RunProblem]
) -> tuple[RunProblem, ...]:
    """Return everything that is not plain success, in the order of the calls."""
    unseen = {each.problem.call_no for each in loose.unhandled} | loose.undelivered | {loose.fatal}
    found = [
        _of_call(each, handled=not each.late and each.call_no not in unseen)
        for each in records
        if each.late or each.state is not CallState.OK
    ]
    mine = [*(each for each in found if each is not None), *noted]
    mine.sort(key=lambda each: each.call_no)
    failed = {each.call_no for each in mine if each.handled is not None}
    rejections = [
        _of_rejection(each.problem)
        for each in loose.unhandled
        if each.problem.call_no not in failed
    ]
    return (*mine, *rejections, *_uncounted(loose.more))


def _of_call(record: CallRecord, *, handled: bool) -> RunProblem | None:
    handled_or_not: bool | None = None
    match record.state:
        case CallState.FAILED:
            code, message, handled_or_not = record.code, shortened(record.message), handled
        case CallState.CANCELLED if record.started_ms is None:
            code, message = CANCELLED, "The run ended before this call could begin; await it."
        case CallState.CANCELLED:
            code, message = CANCELLED, "The run ended before this call did, and cancelled it."
        case CallState.UNKNOWN:
            code = "UNKNOWN_OUTCOME"
            message = "The call did not end when it was cancelled; what it did is not known."
        case CallState.OK if record.late:
            code, message = "NOT_AWAITED", "The run ended before this call, which was completed."
        case _:
            return None
    return RunProblem(code, message, record.call_no, record.tool, record.line, handled_or_not)


def _of_rejection(problem: Problem) -> RunProblem:
    message = problem.message
    if problem.name == "ReferenceError":
        message = syntax_hints.explain_name(message)
    text = f"{problem.name}: {message}" if problem.name else message
    code = problem.code or "UNHANDLED_REJECTION"
    return RunProblem(code, shortened(text), problem.call_no, line=problem.line, handled=False)


def shortened(text: str) -> str:
    """Return a text that a script or a tool made, at most `MESSAGE_CHARS` and a mark long."""
    over = len(text) - MESSAGE_CHARS
    return text if over <= 0 else f"{text[:MESSAGE_CHARS]}… ({over} characters more)"


def _uncounted(more: int) -> Sequence[RunProblem]:
    if not more:
        return ()
    return [
        RunProblem(
            "UNHANDLED_REJECTION", f"{more} more rejections were not handled.", handled=False
        )
    ]
