"""The tools of process handles: start, read, look, write, resize, end."""

from dataclasses import dataclass
from typing import Annotated, Literal

from pydantic import Field, field_validator
from pydantic_core import PydanticCustomError

from codespace.domain.ids import ProcessId
from codespace.domain.limits import Limits
from codespace.domain.sizes import JSON_INTEGER_MAX
from codespace.domain.tool import Call, Effect, Params, Result, Tool, define
from codespace.gateway.processes import CommandOptions, Processes, check_argv
from codespace.runner.api import ProcessState

LIMITS = Limits()
"""The limits that the schemas name."""

WaitMs = Annotated[int, Field(ge=0, le=LIMITS.wait_max_ms)]
Size = Annotated[int, Field(ge=1, le=LIMITS.tty_max_size)]


class ExecCommandParams(Params):
    """Arguments of `exec_command`."""

    workspace_id: str
    """The workspace, as `workspace_info` lists it."""
    command: list[str]
    """The program and its arguments. No shell: write `["sh", "-c", "…"]` for one."""
    tty: bool = False
    """Give the command a terminal of 24 rows and 80 columns."""

    @field_validator("command", mode="before")
    @classmethod
    def _is_no_shell_line(cls, command: object) -> object:
        if isinstance(command, str):
            raise PydanticCustomError(
                "argv", 'Should be a list such as ["ls", "-l"]; the tool bash takes a shell line'
            )
        return command


class ExecCommandResult(Result):
    """A handle on the started command."""

    process_id: str
    dispatch_status: Literal["confirmed", "unknown"]
    """`confirmed`: it was started, not that it succeeded. `unknown`: it may exist; look at the
    handle, and do not start a second one."""


class ProcessParams(Params):
    """Arguments of tools that take only a handle."""

    process_id: str
    """The handle that exec_command gave."""


class ReadProcessParams(ProcessParams):
    """Arguments of `read_process`."""

    cursor: Annotated[int, Field(ge=0, le=JSON_INTEGER_MAX)] = 0
    """The byte of the whole output to go on from: the last answer's `cursor`."""
    wait_ms: WaitMs = 0
    """Wait this long for something new."""


class ReadProcessResult(Result):
    """A piece of the combined output of stdout and stderr."""

    process_id: str
    cursor: int
    """Ask with this one next."""
    chunk: str
    """UTF-8 text, with U+FFFD for bytes that are not."""
    eof: bool
    """Collecting has ended and this chunk reaches the end. Says nothing of success."""
    output_lost: bool
    """The kept window no longer starts at the first byte."""
    retained_from: int
    """The first byte that is still kept."""


class ProcessStatusParams(ProcessParams):
    """Arguments of `process_status`."""

    wait_ms: WaitMs = 0
    """Wait this long for the end."""


class ProcessStatusResult(Result):
    """What is known of a process now."""

    process_id: str
    state: Literal["running", "exited"]
    termination: Literal["exited", "timeout", "terminated", "unknown"] | None = None
    exit_code: int | None = None
    """Only with `termination: exited` and a normal exit."""
    signal: int | None = None
    """The signal that ended it, when nobody here sent one."""
    output_total: int
    """Bytes of output so far."""
    output_retained_from: int
    eof: bool


class WriteStdinParams(ProcessParams):
    """Arguments of `write_stdin`."""

    data: Annotated[str, Field(max_length=LIMITS.stdin_max_bytes)]
    """Text to write; a line ends with a newline."""
    close: bool = False
    """Close stdin afterwards."""


class OkResult(Result):
    """It was done."""

    ok: Literal[True] = True


class ProcessResizeParams(ProcessParams):
    """Arguments of `process_resize`."""

    rows: Size
    """Lines of text."""
    cols: Size
    """Characters in a line."""


class ProcessResizeResult(OkResult):
    """The terminal's new size."""

    rows: int
    cols: int


@dataclass(frozen=True, slots=True)
class ProcessTools:
    """Handles on managed processes. One live process a workspace."""

    processes: Processes
    limits: Limits

    def tools(self) -> list[Tool]:
        """Return the family."""
        return [
            define(
                "exec_command",
                Effect.EXECUTE,
                ExecCommandParams,
                ExecCommandResult,
                self.exec_command,
                title="Start a command",
                search_words="run execute test build program background server",
                takes_lease=True,
                mutates=lambda _: True,
                known=self.refused_anyway,
                of_work=True,
            ),
            define(
                "read_process",
                Effect.READ,
                ReadProcessParams,
                ReadProcessResult,
                self.read_process,
                title="Read a process's output",
                idempotent=True,
                of_work=True,
            ),
            define(
                "process_status",
                Effect.READ,
                ProcessStatusParams,
                ProcessStatusResult,
                self.process_status,
                title="Look at a process",
                idempotent=True,
                of_work=True,
            ),
            define(
                "write_stdin",
                Effect.EXECUTE,
                WriteStdinParams,
                OkResult,
                self.write_stdin,
                title="Write to a process's stdin",
                search_words="send type input",
            ),
            define(
                "process_resize",
                Effect.EXECUTE,
                ProcessResizeParams,
                ProcessResizeResult,
                self.process_resize,
                title="Resize a process's terminal",
                idempotent=True,
            ),
            define(
                "terminate_process",
                Effect.EXECUTE,
                ProcessParams,
                OkResult,
                self.terminate_process,
                title="End a process",
                search_words="stop kill",
                idempotent=True,
            ),
        ]

    async def exec_command(self, params: ExecCommandParams, call: Call) -> ExecCommandResult:
        """Start a command in the workspace's root and return a handle at once.

        One live process a workspace: until it has ended, another command or patch there is
        WORKSPACE_BUSY. Its output is collected; read it with read_process, see the exit code with
        process_status, end it with terminate_process. The operator's time limit applies. Use bash
        to run something short to its end in one call.
        """
        started = await self.processes.start(
            call.permitted, params.command, CommandOptions(tty=params.tty)
        )
        return ExecCommandResult(
            process_id=started.process_id, dispatch_status=started.dispatch_status
        )

    async def refused_anyway(self, params: ExecCommandParams, call: Call) -> None:
        """Refuse what no kernel could run, so that nobody is asked to confirm it."""
        check_argv(params.command, self.limits)

    async def read_process(self, params: ReadProcessParams, call: Call) -> ReadProcessResult:
        """Return the output of a process from a cursor on; wait for something new if asked to.

        stdout and stderr are one stream. Go on with the answer's `cursor` until `eof`. Only the
        last 256 KiB are kept: when `output_lost` is true the beginning is gone.
        """
        process_id = ProcessId(params.process_id)
        async with self.processes.asking(process_id) as runner:
            chunk = await runner.read(
                process_id,
                params.cursor,
                max_bytes=self.limits.output_chunk_max_bytes,
                wait_ms=params.wait_ms,
            )
        return ReadProcessResult(
            process_id=process_id,
            cursor=chunk.cursor,
            chunk=chunk.text,
            eof=chunk.eof,
            output_lost=chunk.output_lost,
            retained_from=chunk.retained_from,
        )

    async def process_status(self, params: ProcessStatusParams, call: Call) -> ProcessStatusResult:
        """Say whether a process runs or how it ended; wait for its end if asked to.

        `exit_code` is there only after a normal exit. `termination` tells an exit of its own from
        the time limit and from terminate_process.
        """
        process_id = ProcessId(params.process_id)
        async with self.processes.asking(process_id) as runner:
            state = await runner.status(process_id, wait_ms=params.wait_ms)
        return _status(process_id, state)

    async def write_stdin(self, params: WriteStdinParams, call: Call) -> OkResult:
        """Write text to a process's stdin, all of it, and close stdin if asked to.

        A process that does not take the text in time is TIMEOUT, with the bytes that it took in
        `details.written`.
        """
        process_id = ProcessId(params.process_id)
        async with self.processes.asking(process_id) as runner:
            await runner.write(process_id, params.data.encode(), close=params.close)
        return OkResult()

    async def process_resize(self, params: ProcessResizeParams, call: Call) -> ProcessResizeResult:
        """Set the size of the terminal of a process that was started with `tty`."""
        process_id = ProcessId(params.process_id)
        async with self.processes.asking(process_id) as runner:
            await runner.resize(process_id, params.rows, params.cols)
        return ProcessResizeResult(rows=params.rows, cols=params.cols)

    async def terminate_process(self, params: ProcessParams, call: Call) -> OkResult:
        """End a process and everything that it started.

        SIGTERM first, SIGKILL after a grace period. Returns at once; process_status with `wait_ms`
        sees the end. Ending an ended process is fine.
        """
        process_id = ProcessId(params.process_id)
        async with self.processes.asking(process_id) as runner:
            await runner.terminate(process_id)
        return OkResult()


def _status(process_id: ProcessId, state: ProcessState) -> ProcessStatusResult:
    return ProcessStatusResult(
        process_id=process_id,
        state="running" if state.running else "exited",
        termination=state.termination,
        exit_code=state.exit_code,
        signal=state.signal,
        output_total=state.output_total,
        output_retained_from=state.output_retained_from,
        eof=state.eof,
    )
