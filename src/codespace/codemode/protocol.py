"""The bytes that go into a VM and the operations that come out (pure).

An input is a clock and some records, an output one JSON array of operations. The VM is a pure
function of its inputs, so their bytes, kept in order, are the whole journal of a run.
"""

import json
import struct
from collections.abc import Callable, Iterable, Mapping, Sequence
from enum import IntEnum, StrEnum
from typing import NamedTuple, cast

from codespace.codemode.json_text import encode, utf8
from codespace.domain.sizes import MIB


class Op(IntEnum):
    """What a record of a step's input asks of the VM."""

    START = 1
    TOOLS = 2
    STORE = 3
    ARGS = 4
    CATALOGUE = 5
    RUN = 6
    RESOLVE = 7
    RESOLVE_TEXT = 8
    REJECT = 9
    END = 10


class Status(IntEnum):
    """Where the script stands after a step."""

    IDLE = 0
    """It waits for a call to be settled (or has not been started)."""
    DONE = 1
    """It returned."""
    FAILED = 2
    """It threw, or did not parse."""
    DEADLOCK = 3
    """It waits for a promise that nothing can settle any more."""
    INTERRUPTED = 4
    """It was stopped: by the host, or at its tick limit."""
    EXITED = 5
    """It called `exit`."""
    ENDED = 6
    """The host ended it (`end()`)."""
    LOST = 7
    """The VM trapped or was killed. Only the host sees this; there is no output."""


class Level(IntEnum):
    """Which function wrote a line of output."""

    TEXT = 0
    LOG = 1
    INFO = 2
    WARN = 3
    ERROR = 4
    DEBUG = 5


class Question(StrEnum):
    """What a script asks the host about its tools. The answer settles the ask like a call."""

    SEARCH = "searchTools"
    TOOL = "describeTool"
    NAMESPACE = "describeNamespace"


class Limits(NamedTuple):
    """What one VM may use. Each breach is an error in the script that names the limit."""

    arguments_bytes: int = MIB
    """JSON of one call's arguments."""
    value_bytes: int = 16 * MIB
    """JSON of what the script returns."""
    output_bytes: int = 16 * MIB
    """All that the script writes with `text`, `console` and `image`, over its whole life."""
    calls: int = 5_000
    """Calls over the script's whole life."""
    store_value_chars: int = 262_144
    store_total_chars: int = 1_048_576
    nesting: int = 400
    """Levels of any JSON that leaves the VM."""
    heap_bytes: int = 0
    """Memory for JavaScript values; 0: as much as the linear memory allows."""


class Call(NamedTuple):
    """A tool was called. `call_no` counts from 1 in the order of the calls."""

    call_no: int
    tool: int
    """Index of the tool, as given in `tools()`."""
    line: int
    """Where the script wrote the call; 0 when there is no such place."""
    column: int
    arguments: object
    """JSON value; an empty object when the script gave none."""
    options: object = None
    """The second argument, else None."""


class Ask(NamedTuple):
    """The script asks about its tools. Settled by its id, as a call is; not a call."""

    ask_id: int
    question: Question
    arguments: Sequence[object]


class Text(NamedTuple):
    """One line (or more) of output."""

    level: Level
    text: str


class Image(NamedTuple):
    """An image block of output: `{"type": "image", "data": base64, "mimeType": …}`."""

    block: Mapping[str, object]


class Stored(NamedTuple):
    """A key of the store that differs at the end of a run that completed."""

    key: str
    deleted: bool
    value: object


class Returned(NamedTuple):
    """The value of a run that returned or exited; `given` is False when there was none."""

    value: object
    given: bool = True


class Problem(NamedTuple):
    """An error as the script's engine tells it. Absent places are 0, absent texts empty."""

    name: str
    message: str
    line: int
    column: int
    stack: str
    call_no: int
    """The call whose rejection this is, else 0."""
    code: str
    """The `code` of a ToolError, else empty."""
    limit: str
    """The limit that was broken (`memory`, `calls`, `output`, `stack`, …), else empty."""


class Failed(NamedTuple):
    """The error that ended the run."""

    problem: Problem


class Unhandled(NamedTuple):
    """A rejection that nobody had handled when the run ended."""

    problem: Problem


class Pending(NamedTuple):
    """A call that was not settled when the run ended, and the place that made it."""

    call_no: int
    line: int
    column: int


class Lost(NamedTuple):
    """Unhandled rejections beyond the first thousand, as a number."""

    rejections: int


Operation = Call | Ask | Text | Image | Stored | Returned | Failed | Unhandled | Pending | Lost

_CALL_FIELDS = len(Call._fields)
_raw_decode = json.JSONDecoder().raw_decode
_HEAD = struct.Struct("<III")
_CLOCK = struct.Struct("<d")
_SETTINGS = struct.Struct("<Q8I")
_PAIR = struct.Struct("<II")
ASK_BASE = 0x80000000
"""Ids of asks start above this; ids of calls stay below."""


def record(op: Op, payload: bytes, *, number: int = 0) -> bytes:
    """Return one record of a step's input."""
    return b"".join((_HEAD.pack(op, number, len(payload)), payload, b"\0"))


def step_input(clock_ms: float, records: Iterable[bytes]) -> bytes:
    """Return the input of a step; `clock_ms` is what `Date` shows until the next step."""
    return _CLOCK.pack(clock_ms) + b"".join(records)


def start(seed: int, limits: Limits) -> bytes:
    """Return the record that must come first: the seed of `Math.random`, and the limits."""
    return record(Op.START, _SETTINGS.pack(seed & (2**64 - 1), *limits))


def tools(names: Iterable[tuple[int, str]]) -> bytes:
    """Return the record that makes `tools`: pairs of index and name, several names a tool."""
    parts: list[bytes] = []
    for index, name in names:
        text = utf8(name)
        parts.append(_PAIR.pack(index, len(text)) + text)
    return record(Op.TOOLS, b"".join(parts))


def store(values: Mapping[str, str]) -> bytes:
    """Return the record that fills the store: each key with its value as JSON text."""
    parts: list[bytes] = []
    for key, value in values.items():
        name, text = utf8(key), utf8(value)
        parts.append(_PAIR.pack(len(name), len(text)) + name + text)
    return record(Op.STORE, b"".join(parts))


def args(value: object) -> bytes:
    """Return the record that sets the frozen global `args`."""
    return record(Op.ARGS, encode(value))


def args_json(value: bytes) -> bytes:
    """Return the same for a value that is JSON text already (UTF-8)."""
    return record(Op.ARGS, value)


def catalogue(entries: Sequence[object]) -> bytes:
    """Return the record that sets `ALL_TOOLS`."""
    return record(Op.CATALOGUE, encode(entries))


def run(source: str) -> bytes:
    """Return the record that compiles the script and runs it to its first wait."""
    return record(Op.RUN, utf8(source))


def resolve(number: int, value: object) -> bytes:
    """Return the record that resolves the call or ask `number` with a JSON value."""
    if isinstance(value, str):
        return record(Op.RESOLVE_TEXT, utf8(value), number=number)
    return record(Op.RESOLVE, encode(value), number=number)


def resolve_json(number: int, value: bytes) -> bytes:
    """Return the same for a value that is JSON text already (UTF-8)."""
    return record(Op.RESOLVE, value, number=number)


def reject(number: int, *, code: str, message: str, details: object, tool: str) -> bytes:
    """Return the record that rejects the call or ask `number` with a `ToolError`."""
    body = {"code": code, "message": message, "details": details, "tool": tool}
    return record(Op.REJECT, encode(body), number=number)


def end() -> bytes:
    """Return the record that ends the run: what is pending or unhandled is told, nothing runs."""
    return record(Op.END, b"")


def decode(output: bytes) -> list[Operation]:
    """Return the operations of a step's output."""
    found: list[list[object]] = _raw_decode(output.decode())[0]
    return [_READERS[_str(item[0])](item) for item in found]


def operation(item: list[object]) -> Operation:
    """Return one operation from its JSON."""
    return _READERS[_str(item[0])](item)


def _call(item: list[object]) -> Call:
    # Kept short: it is a part of what every call of a script costs.
    del item[0]
    if len(item) < _CALL_FIELDS:
        item += ({}, None) if len(item) < _CALL_FIELDS - 1 else (None,)
    return Call._make(item)


def _ask(item: list[object]) -> Ask:
    return Ask(_int(item[1]), Question(_str(item[2])), item[3:])


def _text(item: list[object]) -> Text:
    return Text(Level(_int(item[1])), _str(item[2]))


def _stored(item: list[object]) -> Stored:
    key, *rest = item[1:]
    return Stored(_str(key), not rest, rest[0] if rest else None)


def _returned(item: list[object]) -> Returned:
    return Returned(item[1]) if len(item) > 1 else Returned(None, given=False)


def _pending(item: list[object]) -> Pending:
    return Pending(_int(item[1]), _int(item[2]), _int(item[3]))


def _problem(item: list[object]) -> Problem:
    return Problem(*cast("tuple[str, str, int, int, str, int, str, str]", tuple(item[1:])))


def _int(value: object) -> int:
    return cast("int", value)


def _str(value: object) -> str:
    return cast("str", value)


_READERS: Mapping[str, Callable[[list[object]], Operation]] = {
    "call": _call,
    "ask": _ask,
    "text": _text,
    "image": lambda item: Image(cast("Mapping[str, object]", item[1])),
    "store": _stored,
    "return": _returned,
    "error": lambda item: Failed(_problem(item)),
    "unhandled": lambda item: Unhandled(_problem(item)),
    "pending": _pending,
    "lost": lambda item: Lost(_int(item[1])),
}
