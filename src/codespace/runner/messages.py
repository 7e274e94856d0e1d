"""What gateway and worker say to each other: requests and answers as values, and as JSON.

Pure. Every field is checked when it comes in: a message that does not fit is a `ProtocolError`.
"""

import base64
import binascii
from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields
from enum import StrEnum
from typing import TypeVar, cast, get_args

from codespace.domain.errors import CodeSpaceError, ErrorCode, from_body
from codespace.domain.ids import ProcessId
from codespace.domain.limits import Limits
from codespace.domain.workspace import Root
from codespace.runner.api import (
    Containment,
    OutputChunk,
    ProcessState,
    RunnerFacts,
    StartRequest,
    Stdin,
    Termination,
)
from codespace.runner.frames import ProtocolError

Json = Mapping[str, object]
E = TypeVar("E", bound=StrEnum)


@dataclass(frozen=True, slots=True)
class Read:
    """Ask for output, as `Runner.read`."""

    process_id: ProcessId
    cursor: int
    max_bytes: int
    wait_ms: int


@dataclass(frozen=True, slots=True)
class Status:
    """Ask for the state, as `Runner.status`."""

    process_id: ProcessId
    wait_ms: int


@dataclass(frozen=True, slots=True)
class Write:
    """Write to stdin, as `Runner.write`."""

    process_id: ProcessId
    data: bytes
    close: bool


@dataclass(frozen=True, slots=True)
class Resize:
    """Set a terminal's size, as `Runner.resize`."""

    process_id: ProcessId
    rows: int
    cols: int


@dataclass(frozen=True, slots=True)
class Terminate:
    """Ask a subtree to end, as `Runner.terminate`."""

    process_id: ProcessId


@dataclass(frozen=True, slots=True)
class Close:
    """End everything, as `Runner.close`."""


@dataclass(frozen=True, slots=True)
class Cancel:
    """Whoever asked does not wait any more: for the request of the same number."""


Request = StartRequest | Read | Status | Write | Resize | Terminate | Close | Cancel


@dataclass(frozen=True, slots=True)
class Done:
    """It was done, and there is nothing to tell."""


@dataclass(frozen=True, slots=True)
class Cancelled:
    """It was cancelled before it was done."""


Answer = OutputChunk | ProcessState | Done | Cancelled | CodeSpaceError


def request_json(number: int, request: Request) -> Json:
    """Return a request as it is sent. `number` is what its answer is known by."""
    head: dict[str, object] = {"id": number, "do": _NAMES[type(request)]}
    match request:
        case StartRequest(root=root):
            return {
                **head,
                **_plain(request),
                "root": _plain(root),
                "argv": list(request.argv),
                "environment": dict(request.environment),
            }
        case Write(data=data):
            return {**head, **_plain(request), "data": base64.b64encode(data).decode("ascii")}
        case _:
            return {**head, **_plain(request)}


def request_of(message: Json) -> tuple[int, Request]:
    """Return the number and the request of a message.

    Raises:
        ProtocolError: it is none.
    """
    given = Fields(message)
    number, read = given.number("id"), _REQUESTS.get(given.text("do"))
    if read is None:
        raise ProtocolError("an unknown request")
    return number, read(given)


def answer_json(number: int, answer: Answer) -> Json:
    """Return the answer to the request `number` as it is sent."""
    match answer:
        case CodeSpaceError():
            return {"id": number, "error": answer.body()}
        case OutputChunk():
            return {"id": number, "chunk": _plain(answer)}
        case ProcessState():
            return {"id": number, "state": _plain(answer)}
        case Done() | Cancelled():
            return {"id": number, "done": isinstance(answer, Done)}


def answer_of(message: Json) -> tuple[int, Answer]:
    """Return the number and the answer of a message.

    Raises:
        ProtocolError: it is none.
    """
    given = Fields(message)
    number = given.number("id")
    if "chunk" in message:
        return number, _chunk(given.inner("chunk"))
    if "state" in message:
        return number, _state(given.inner("state"))
    if "error" in message:
        return number, error_of(given.inner("error"))
    return number, Done() if given.flag("done") else Cancelled()


def error_of(given: "Fields") -> CodeSpaceError:
    """Return the refusal that a body tells of."""
    given.one_of("code", ErrorCode)
    given.text("message")
    return from_body(given.values)


def limits_json(limits: Limits) -> Json:
    """Return the limits as they are sent."""
    return _plain(limits)


def limits_of(given: "Fields") -> Limits:
    """Return the limits of a message: every one of them, and no other."""
    names = [field.name for field in fields(Limits)]
    if set(names) != set(given.values):
        raise ProtocolError("limits of another version")
    return Limits(**{name: given.number(name) for name in names})


def facts_json(facts: RunnerFacts) -> Json:
    """Return what a runner enforces as it is sent."""
    return {"containment": facts.containment.value, "reason": facts.reason}


def facts_of(given: "Fields") -> RunnerFacts:
    """Return what a runner says that it enforces."""
    return RunnerFacts(given.one_of("containment", Containment), given.optional_text("reason"))


class Fields:
    """An object of a message, whose fields are taken by their type."""

    def __init__(self, values: Json) -> None:
        self.values = values

    def text(self, name: str) -> str:
        """Return a text."""
        value = self.values.get(name)
        if not isinstance(value, str):
            raise ProtocolError(f"no text as {name}")
        return value

    def optional_text(self, name: str) -> str | None:
        """Return a text or nothing."""
        return None if self.values.get(name) is None else self.text(name)

    def one_of(self, name: str, kind: type[E]) -> E:
        """Return a member of an enumeration."""
        try:
            return kind(self.text(name))
        except ValueError:
            raise ProtocolError(f"an unknown {name}") from None

    def number(self, name: str) -> int:
        """Return a whole number."""
        value = self.values.get(name)
        if type(value) is not int:
            raise ProtocolError(f"no number as {name}")
        return value

    def optional_number(self, name: str) -> int | None:
        """Return a whole number or nothing."""
        return None if self.values.get(name) is None else self.number(name)

    def flag(self, name: str) -> bool:
        """Return true or false."""
        value = self.values.get(name)
        if not isinstance(value, bool):
            raise ProtocolError(f"neither true nor false as {name}")
        return value

    def inner(self, name: str) -> "Fields":
        """Return an object."""
        value = self.values.get(name)
        if not isinstance(value, dict):
            raise ProtocolError(f"no object as {name}")
        return Fields(cast("dict[str, object]", value))

    def texts(self, name: str) -> tuple[str, ...]:
        """Return a list of texts."""
        value = self.values.get(name)
        items = cast("list[object]", value) if isinstance(value, list) else [None]
        if not all(isinstance(item, str) for item in items):
            raise ProtocolError(f"no texts as {name}")
        return tuple(cast("list[str]", items))

    def data(self, name: str) -> bytes:
        """Return bytes."""
        try:
            return base64.b64decode(self.text(name), validate=True)
        except (binascii.Error, ValueError):
            raise ProtocolError(f"no bytes as {name}") from None

    def process_id(self) -> ProcessId:
        """Return the handle that the message is about."""
        return ProcessId(self.text("process_id"))


def _start(given: Fields) -> StartRequest:
    root, environment = given.inner("root"), given.inner("environment")
    stdin = given.text("stdin")
    if stdin not in get_args(Stdin):
        raise ProtocolError("an unknown kind of stdin")
    return StartRequest(
        process_id=given.process_id(),
        root=Root(root.text("path"), root.number("device"), root.number("inode")),
        argv=given.texts("argv"),
        environment={name: environment.text(name) for name in environment.values},
        tty=given.flag("tty"),
        paced=given.flag("paced"),
        stdin=cast("Stdin", stdin),
        time_limit_ms=given.number("time_limit_ms"),
    )


def _chunk(given: Fields) -> OutputChunk:
    return OutputChunk(
        cursor=given.number("cursor"),
        text=given.text("text"),
        eof=given.flag("eof"),
        output_lost=given.flag("output_lost"),
        retained_from=given.number("retained_from"),
    )


def _state(given: Fields) -> ProcessState:
    termination = given.optional_text("termination")
    if termination is not None and termination not in get_args(Termination):
        raise ProtocolError("an unknown termination")
    return ProcessState(
        running=given.flag("running"),
        output_total=given.number("output_total"),
        output_retained_from=given.number("output_retained_from"),
        eof=given.flag("eof"),
        termination=cast("Termination | None", termination),
        exit_code=given.optional_number("exit_code"),
        signal=given.optional_number("signal"),
    )


_NAMES: Mapping[type[Request], str] = {
    StartRequest: "start",
    Read: "read",
    Status: "status",
    Write: "write",
    Resize: "resize",
    Terminate: "terminate",
    Close: "close",
    Cancel: "cancel",
}

_REQUESTS: Mapping[str, Callable[[Fields], Request]] = {
    "start": _start,
    "read": lambda given: Read(
        given.process_id(),
        given.number("cursor"),
        given.number("max_bytes"),
        given.number("wait_ms"),
    ),
    "status": lambda given: Status(given.process_id(), given.number("wait_ms")),
    "write": lambda given: Write(given.process_id(), given.data("data"), given.flag("close")),
    "resize": lambda given: Resize(given.process_id(), given.number("rows"), given.number("cols")),
    "terminate": lambda given: Terminate(given.process_id()),
    "close": lambda _: Close(),
    "cancel": lambda _: Cancel(),
}


def _plain(value: object) -> dict[str, object]:
    """Return a value's fields by their names, as they are."""
    names = cast("Mapping[str, object]", type(value).__dict__["__dataclass_fields__"])
    return {name: getattr(value, name) for name in names}
