"""What a run came to: the envelope of the contract as values, and its JSON form (pure).

Most values are named tuples: a data class takes seven times as long to make, at every start.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import NamedTuple

from codespace.codemode.json_values import Json
from codespace.codemode.reading import read_out

KEYS_MAX = 200
"""An envelope names this many keys of the store; a problem then counts the others."""
PROBLEMS_MAX = 200
"""An envelope lists this many problems; one more then counts the others by their code."""


class RunStatus(StrEnum):
    """Where a run stands."""

    RUNNING = "running"
    """Alive; ask again."""
    WAITING = "waiting"
    """It cannot go on without somebody."""
    INTERRUPTED = "interrupted"
    """Its gateway died; it can be resumed."""
    COMPLETED = "completed"
    """The script returned, or called `exit`."""
    FAILED = "failed"
    """It threw, did not parse, or broke a limit."""
    CANCELLED = "cancelled"
    """Somebody ended it."""


class ErrorKind(StrEnum):
    """Whose fault a failed run was."""

    SCRIPT = "script"
    """It threw, or did not parse."""
    TIMEOUT = "timeout"
    """Its time, or its engine time, ran out."""
    LIMIT = "limit"
    """It broke another limit."""
    DEADLOCK = "deadlock"
    """It waited for a promise that nothing could settle any more."""
    ENGINE = "engine"
    """The engine broke, or a replay took another way."""


class RunError(NamedTuple):
    """Why a run failed. `line` and `column` count from 1; 0: no place is known."""

    kind: ErrorKind
    name: str
    message: str
    line: int = 0
    column: int = 0
    stack: str = ""

    def to_json(self) -> Json:
        """Return the error as the envelope has it."""
        return {
            "kind": self.kind.value,
            "name": self.name,
            "message": self.message,
            "line": self.line or None,
            "column": self.column or None,
            "stack": self.stack or None,
        }


class TextItem(NamedTuple):
    """Some lines of output."""

    text: str

    def to_json(self) -> Json:
        """Return the item as the envelope has it."""
        return {"type": "text", "text": self.text}


class ImageItem(NamedTuple):
    """An image of the output."""

    block: Mapping[str, object]

    def to_json(self) -> Json:
        """Return the item as the envelope has it."""
        return dict(self.block)


Item = TextItem | ImageItem


class CallCounts(NamedTuple):
    """How the calls of a run ended."""

    total: int = 0
    ok: int = 0
    failed: int = 0
    cancelled: int = 0
    unknown: int = 0
    """Calls that did not end when they were cancelled: what they did is not known."""

    def to_json(self) -> Json:
        """Return the counts as the envelope has them."""
        return {
            "total": self.total,
            "ok": self.ok,
            "failed": self.failed,
            "cancelled": self.cancelled,
            "unknown": self.unknown,
        }


class RunProblem(NamedTuple):
    """Something that is not plain success, also when the script went on."""

    code: str
    message: str
    call_no: int = 0
    """The call that it is about; 0: none."""
    tool: str = ""
    line: int = 0
    """Where the script wrote that call, or the rejection; 0: no place is known."""
    handled: bool | None = None
    """Whether the script caught it; None where there was nothing to catch."""

    def to_json(self) -> Json:
        """Return the problem as the envelope has it."""
        return {
            "call_no": self.call_no or None,
            "tool": self.tool or None,
            "code": self.code,
            "message": self.message,
            "handled": self.handled,
            "line": self.line or None,
        }


class Truncation(NamedTuple):
    """How the output was cut: its whole length, what is left, and where the whole is.

    `value` tells the same of the value; where only that was cut, it stands for both.
    """

    chars: int
    kept_chars: int
    path: str | None
    value: "Truncation | None" = None

    def to_json(self) -> Json:
        """Return the cut as the envelope has it."""
        told = {"chars": self.chars, "kept_chars": self.kept_chars, "path": self.path}
        value = self.value
        if value is None:
            return {**told, "value": None}
        of_value = {"chars": value.chars, "kept_chars": value.kept_chars, "path": value.path}
        return {**told, "value": of_value}


class CallState(StrEnum):
    """How far a call has come."""

    QUEUED = "queued"
    RUNNING = "running"
    OK = "ok"
    FAILED = "failed"
    CANCELLED = "cancelled"
    UNKNOWN = "unknown"


class CallRecord(NamedTuple):
    """One call of a run. Times are milliseconds since the run's start; None: not yet."""

    call_no: int
    tool: str
    line: int
    column: int
    state: CallState
    code: str = ""
    """The error's code; empty while there is none."""
    message: str = ""
    late: bool = False
    """It ended after the script had."""
    started_ms: float | None = None
    ended_ms: float | None = None


class Progress(NamedTuple):
    """How far a run is: told when a call begins and when it ends."""

    total: int
    """Calls that the script has made so far."""
    running: int
    finished: int
    record: CallRecord
    """The call that it is about."""


NO_CALLS = CallCounts()


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a run came to. Failures are in here: running a script raises nothing."""

    status: RunStatus
    value: object = None
    output: tuple[Item, ...] = ()
    calls: CallCounts = NO_CALLS
    problems: tuple[RunProblem, ...] = ()
    error: RunError | None = None
    truncated: Truncation | None = None
    store: tuple[str, ...] = ()
    """The keys that the run wrote or deleted."""
    wall_ms: float = 0.0
    engine_ms: float = 0.0
    run_id: str | None = None
    waiting: Mapping[str, object] | None = None
    records: tuple[CallRecord, ...] = ()
    """Every call, in order. Not part of the JSON form."""
    returned: bool = False
    """The script returned something; False where `value` is None for want of a `return`."""

    @property
    def text(self) -> str:
        """All text of the output."""
        return "\n".join(item.text for item in self.output if isinstance(item, TextItem))

    def _told(self) -> Sequence[RunProblem]:
        more = len(self.store) - KEYS_MAX
        if more <= 0:
            return self.problems
        return (*self.problems, RunProblem("MORE_KEYS", f"{more} more keys were stored."))

    def reading(self) -> str:
        """Return all of it as one text for a model: output, value, and what is not success."""
        return read_out(self.to_json())

    def to_json(self) -> dict[str, object]:
        """Return the envelope."""
        return {
            "run_id": self.run_id,
            "status": self.status.value,
            "value": self.value,
            "returned": self.returned,
            "output": [item.to_json() for item in self.output],
            "calls": self.calls.to_json(),
            "problems": [problem.to_json() for problem in listed(self._told())],
            "waiting": None if self.waiting is None else dict(self.waiting),
            "error": None if self.error is None else self.error.to_json(),
            "truncated": None if self.truncated is None else self.truncated.to_json(),
            "store": list(self.store[:KEYS_MAX]),
            "wall_ms": round(self.wall_ms, 1),
            "engine_ms": round(self.engine_ms, 1),
        }


def count(records: Iterable[CallRecord]) -> CallCounts:
    """Return how these calls ended."""
    states = Counter(record.state for record in records)
    return CallCounts(
        total=states.total(),
        ok=states[CallState.OK],
        failed=states[CallState.FAILED],
        cancelled=states[CallState.CANCELLED],
        unknown=states[CallState.UNKNOWN],
    )


def listed(problems: Sequence[RunProblem]) -> Sequence[RunProblem]:
    """Return the problems that an envelope shows: the first, and a count of all others."""
    rest = problems[PROBLEMS_MAX:]
    if not rest:
        return problems
    codes = ", ".join(f"{number} {code}" for code, number in Counter(p.code for p in rest).items())
    more = RunProblem("MORE_PROBLEMS", f"{len(rest)} more problems are not listed: {codes}.")
    return [*problems[:PROBLEMS_MAX], more]
