"""`bash`: run a shell text to its end, keep the end of its output, file what was cut."""

import time
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass, field

import anyio
import anyio.abc
import anyio.to_thread

from codespace.domain.errors import CodeSpaceError, ErrorCode
from codespace.domain.ids import ProcessId
from codespace.domain.limits import Limits
from codespace.domain.workspace import Workspace
from codespace.gateway.processes import CommandOptions, Processes
from codespace.gateway.tail import Tail
from codespace.runner.api import ProcessState
from codespace.workspace.outputs import OutputFile

SHELL = ("bash", "-c")
END_SECONDS = 1.0
"""After its grace period, a command that is being ended has this long to be gone."""


@dataclass(frozen=True, slots=True)
class ShellOutcome:
    """How a shell text ended."""

    process_id: ProcessId
    output: str
    truncated: bool
    full_output_path: str | None
    state: ProcessState
    wall_time_seconds: float


@dataclass(slots=True)
class _Waiting:
    done: anyio.Event
    outcome: ShellOutcome | None = None
    error: Exception | None = None


@dataclass(frozen=True, slots=True)
class Shell:
    """Runs commands whose output nobody else has to collect.

    The collecting task belongs to the gateway, not to the call: a client that goes away changes
    nothing about the command.
    """

    processes: Processes
    limits: Limits
    limiter: anyio.CapacityLimiter
    tasks: anyio.abc.TaskGroup

    async def run(
        self, workspace: Workspace, text: str, *, timeout_ms: int | None, owned: bool = False
    ) -> ShellOutcome:
        """Run `text` with bash and return once its whole subtree has ended.

        When the runner is lost, what came until then is returned, with the end `unknown`. An
        `owned` command ends when the call is cancelled; any other goes on.

        Raises:
            CodeSpaceError: as starting any command does.
        """
        began = time.monotonic()
        started = await self.processes.start(
            workspace,
            [*SHELL, text],
            CommandOptions(paced=True, stdin="null", time_limit_ms=timeout_ms),
        )
        waiting = _Waiting(anyio.Event())

        async def collect() -> None:
            try:
                waiting.outcome = await self._collect(workspace, started.process_id, began)
            except Exception as error:  # noqa: BLE001 -- it is the call's; here it would end the gateway
                waiting.error = error
            finally:
                waiting.done.set()

        self.tasks.start_soon(collect)
        try:
            await waiting.done.wait()
        except anyio.get_cancelled_exc_class():
            if owned:
                with anyio.CancelScope(shield=True):
                    await self._end(started.process_id, waiting.done)
            raise
        if waiting.error is not None:
            raise waiting.error
        if waiting.outcome is None:
            raise RuntimeError("the collecting task was cut short")
        return waiting.outcome

    async def _end(self, process_id: ProcessId, done: anyio.Event) -> None:
        with suppress(CodeSpaceError):  # it has ended already
            async with self.processes.asking(process_id) as runner:
                await runner.terminate(process_id)
        with anyio.move_on_after(self.limits.terminate_grace_ms / 1000 + END_SECONDS):
            await done.wait()

    async def _collect(
        self, workspace: Workspace, process_id: ProcessId, began: float
    ) -> ShellOutcome:
        tail = Tail(self.limits.bash_output_max_bytes, self.limits.bash_output_max_lines)
        file = OutputFile(
            workspace.root, f"{process_id}.txt", self.limits.bash_full_output_max_bytes
        )
        spool = _Spool(file, self.limits.bash_output_max_bytes, self._in_thread)
        try:
            state = await self._follow(process_id, tail, spool)
            path = await spool.finish(needed=tail.truncated)
        finally:
            file.close()
        return ShellOutcome(
            process_id, tail.text(), tail.truncated, path, state, time.monotonic() - began
        )

    async def _follow(self, process_id: ProcessId, tail: Tail, spool: "_Spool") -> ProcessState:
        cursor, eof = 0, False
        try:
            async with self.processes.asking(process_id) as runner:
                while not eof:
                    chunk = await runner.read(
                        process_id,
                        cursor,
                        max_bytes=self.limits.output_chunk_max_bytes,
                        wait_ms=self.limits.wait_max_ms,
                    )
                    cursor, eof = chunk.cursor, chunk.eof
                    tail.add(chunk.text)
                    await spool.add(chunk.text)
                return await runner.status(process_id)
        except CodeSpaceError as error:
            if error.code is not ErrorCode.PROCESS_NOT_FOUND:
                raise
            # It was started, or may have been: to call that refused would invite a second one.
            return ProcessState(
                running=False,
                output_total=cursor,
                output_retained_from=0,
                eof=False,
                termination="unknown",
            )

    async def _in_thread(self, work: Callable[[], None]) -> None:
        await anyio.to_thread.run_sync(work, limiter=self.limiter)


@dataclass(slots=True)
class _Spool:
    """Holds the output in memory until it is sure that it needs a file, then writes in pieces."""

    file: OutputFile
    hold_chars: int
    in_thread: Callable[[Callable[[], None]], Awaitable[None]]
    _held: list[str] = field(default_factory=list[str], init=False)
    _held_chars: int = field(default=0, init=False)

    async def add(self, text: str) -> None:
        self._held.append(text)
        self._held_chars += len(text)
        # So many characters are as many bytes at least: what is cut off is in the file.
        if self._held_chars > self.hold_chars:
            await self._flush()

    async def finish(self, *, needed: bool) -> str | None:
        """Return the file's path, or `None` when there is none."""
        if not needed:
            return None
        await self._flush()
        return self.file.path

    async def _flush(self) -> None:
        text = "".join(self._held)
        self._held, self._held_chars = [], 0
        await self.in_thread(lambda: self.file.append(text))
