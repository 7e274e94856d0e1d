"""A runner without processes: it remembers what it was asked, and answers as a test arranged."""

from dataclasses import dataclass, field

import anyio

from codespace.domain.errors import CodeSpaceError, ErrorCode
from codespace.domain.ids import ProcessId
from codespace.runner.api import (
    Containment,
    OutputChunk,
    ProcessState,
    RunnerFacts,
    RunnerLostError,
    StartRequest,
)

EXITED = ProcessState(
    running=False,
    output_total=0,
    output_retained_from=0,
    eof=True,
    termination="exited",
    exit_code=0,
)
FACTS = RunnerFacts(Containment.KEEPER, "for the test")
LIVE = ProcessState(running=True, output_total=0, output_retained_from=0, eof=False)


def unknown_process() -> CodeSpaceError:
    """Return what a runner says of a handle that it does not know."""
    return CodeSpaceError(ErrorCode.PROCESS_NOT_FOUND, "No such process.")


@dataclass(slots=True)
class FakeRunner:
    """Answers each `read` with the next of `chunks`, then with the end of the output.

    `failures` has what a method raises instead of answering (`read` first gives its chunks);
    `holds` has what a method waits for. `asked` has the calls in order: name and arguments.
    """

    chunks: list[str] = field(default_factory=list[str])
    state: ProcessState = EXITED
    failures: dict[str, Exception] = field(default_factory=dict[str, Exception])
    holds: dict[str, anyio.Event] = field(default_factory=dict[str, anyio.Event])
    started: list[StartRequest] = field(default_factory=list[StartRequest])
    asked: list[tuple[object, ...]] = field(default_factory=list[tuple[object, ...]])
    facts: RunnerFacts = FACTS

    def lose(self, *methods: str) -> None:
        """Let these methods find the runner lost."""
        self.failures.update(dict.fromkeys(methods, RunnerLostError()))

    async def _asked(self, method: str, *arguments: object) -> None:
        self.asked.append((method, *arguments))
        if method in self.holds:
            await self.holds[method].wait()
        if method in self.failures and not (method == "read" and self.chunks):
            raise self.failures[method]

    async def start(self, request: StartRequest) -> None:
        """Take a command."""
        await self._asked("start")
        self.started.append(request)

    async def read(
        self, process_id: ProcessId, cursor: int, *, max_bytes: int, wait_ms: int = 0
    ) -> OutputChunk:
        """Return the next arranged chunk."""
        await self._asked("read", process_id, cursor, max_bytes, wait_ms)
        text = self.chunks.pop(0) if self.chunks else ""
        return OutputChunk(
            cursor=cursor + len(text.encode()),
            text=text,
            eof=not self.chunks and "read" not in self.failures,
            output_lost=False,
            retained_from=0,
        )

    async def status(self, process_id: ProcessId, *, wait_ms: int = 0) -> ProcessState:
        """Return the arranged state."""
        await self._asked("status", process_id, wait_ms)
        return self.state

    async def write(self, process_id: ProcessId, data: bytes, *, close: bool) -> None:
        """Take what is written."""
        await self._asked("write", process_id, data, close)

    async def resize(self, process_id: ProcessId, rows: int, cols: int) -> None:
        """Take the new size."""
        await self._asked("resize", process_id, rows, cols)

    async def terminate(self, process_id: ProcessId) -> None:
        """Take the request to end."""
        await self._asked("terminate", process_id)

    async def close(self) -> None:
        """Take the end."""
        await self._asked("close")
