"""`bash`: run a shell text to its end, keep the end of its output, file what was cut."""

import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass

import anyio
import anyio.abc
import anyio.to_thread

from codespace.domain.errors import CodeSpaceError
from codespace.domain.ids import ProcessId
from codespace.domain.limits import Limits
from codespace.domain.workspace import Workspace
from codespace.gateway.processes import CommandOptions, Processes
from codespace.gateway.tail import Tail
from codespace.runner.api import ProcessState
from codespace.workspace.outputs import OutputFile

SHELL = ("bash", "-c")


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
    error: CodeSpaceError | None = None


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

    async def run(self, workspace: Workspace, text: str, *, timeout_ms: int | None) -> ShellOutcome:
        """Run `text` with bash and return once its whole subtree has ended.

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
            except CodeSpaceError as error:
                waiting.error = error
            finally:
                waiting.done.set()

        self.tasks.start_soon(collect)
        await waiting.done.wait()
        if waiting.error is not None:
            raise waiting.error
        if waiting.outcome is None:
            raise RuntimeError("the collecting task was cut short")
        return waiting.outcome

    async def _collect(
        self, workspace: Workspace, process_id: ProcessId, began: float
    ) -> ShellOutcome:
        tail = Tail(self.limits.bash_output_max_bytes, self.limits.bash_output_max_lines)
        spool = _Spool(
            OutputFile(workspace.root, f"{process_id}.txt", self.limits.bash_full_output_max_bytes),
            self.limits,
            self._in_thread,
        )
        cursor, eof = 0, False
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
            state = await runner.status(process_id)
        output = tail.text()
        path = await spool.finish(needed=tail.truncated)
        return ShellOutcome(
            process_id, output, tail.truncated, path, state, time.monotonic() - began
        )

    async def _in_thread(self, work: Callable[[], None]) -> None:
        await anyio.to_thread.run_sync(work, limiter=self.limiter)


@dataclass(slots=True)
class _Spool:
    """Holds the output in memory until it is sure that it needs a file."""

    file: OutputFile
    limits: Limits
    in_thread: Callable[[Callable[[], None]], Awaitable[None]]
    held: list[str] | None = None
    held_bytes: int = 0
    opened: bool = False

    async def add(self, text: str) -> None:
        held = self.held or []
        held.append(text)
        self.held, self.held_bytes = held, self.held_bytes + len(text)
        if self.held_bytes > self.limits.bash_output_max_bytes:
            await self._flush()

    async def finish(self, *, needed: bool) -> str | None:
        """Close the file and return its path, or `None` when there is none."""
        if needed:
            await self._flush()
        if not self.opened:
            return None
        await self.in_thread(self.file.close)
        return self.file.path

    async def _flush(self) -> None:
        text, self.held, self.held_bytes, self.opened = "".join(self.held or []), None, 0, True
        await self.in_thread(lambda: self.file.append(text))
