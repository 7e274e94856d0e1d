"""One compiled guest for all tests of a process, and scripts driven to their end by hand."""

import tempfile
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

from codespace.codemode import protocol
from codespace.codemode.protocol import (
    Call,
    Failed,
    Limits,
    Operation,
    Problem,
    Returned,
    Status,
    Text,
)
from codespace.codemode.vm import Entry, Vm
from codespace.codemode.wasm import Machine

CODE = Path(tempfile.gettempdir()) / "codespace-tests-machine-code"
START_MS = 1_700_000_000_000.0

Tools = Mapping[str, Callable[[object], object]]


@cache
def machine() -> Machine:
    """Return the compiled guest of this process."""
    return Machine.load(cache=CODE)


@dataclass
class Outcome:
    """What came out of a script, and the inputs that it saw."""

    vm: Vm
    operations: list[Operation] = field(default_factory=list[Operation])
    journal: list[Entry] = field(default_factory=list[Entry])

    @property
    def status(self) -> Status:
        return self.vm.status

    @property
    def value(self) -> object:
        """The returned value; the problem instead when there is none."""
        for operation in self.operations:
            if isinstance(operation, Returned):
                return operation.value
        return self.problem

    @property
    def problem(self) -> Problem:
        return next(o.problem for o in self.operations if isinstance(o, Failed))

    @property
    def text(self) -> str:
        return "\n".join(o.text for o in self.operations if isinstance(o, Text))


def opening(
    code: str,
    *,
    tools: Tools | None = None,
    seed: int = 1,
    limits: Limits | None = None,
    args: object = None,
) -> bytes:
    """Return the input of a script's first step."""
    names = list(enumerate(tools or {}))
    records = [protocol.start(seed, limits or Limits()), protocol.tools(names)]
    if args is not None:
        records.append(protocol.args(args))
    records.append(protocol.run(code))
    return protocol.step_input(START_MS, records)


def run(
    code: str,
    tools: Tools | None = None,
    *,
    limits: Limits | None = None,
    seed: int = 1,
    memory_bytes: int = 64 * 1024 * 1024,
    seconds: float = 5.0,
    args: object = None,
) -> Outcome:
    """Run a script to its end; each step settles all calls of the one before.

    A tool answers with a JSON value, or with bytes: JSON text as it is. A LookupError rejects.
    """
    outcome = Outcome(Vm(machine(), memory_bytes=memory_bytes))
    functions = list((tools or {}).values())
    data, now = opening(code, tools=tools, seed=seed, limits=limits, args=args), START_MS
    while True:
        turn = outcome.vm.begin(data)
        turn.finish(time.monotonic() + seconds)
        operations = turn.operations()
        outcome.operations += operations
        outcome.journal.append(turn.entry)
        calls = [o for o in operations if isinstance(o, Call)]
        if outcome.status is not Status.IDLE or not calls:
            return outcome
        now += 10
        data = protocol.step_input(now, [answer(functions, call) for call in calls])


def answer(functions: list[Callable[[object], object]], call: Call) -> bytes:
    """Return the record that settles a call with what its function makes of it."""
    try:
        value = functions[call.tool](call.arguments)
        if isinstance(value, bytes):
            return protocol.resolve_json(call.call_no, value)
        return protocol.resolve(call.call_no, value)
    except LookupError as error:
        return protocol.reject(
            call.call_no, code="MISSING", message=str(error), details=None, tool="tool"
        )
