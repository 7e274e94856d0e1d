"""The Runner in this process: the handles, their limits, and the choice of the containment."""

import asyncio
import functools
import os
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Self

import anyio
import anyio.to_thread

from codespace.domain.errors import CodeSpaceError, ErrorCode
from codespace.domain.ids import ProcessId
from codespace.domain.limits import Limits
from codespace.runner.api import (
    Containment,
    OutputChunk,
    ProcessState,
    RunnerFacts,
    StartRequest,
)
from codespace.runner.command import check_arguments, open_root, resolve_program
from codespace.runner.kept import KeptTree
from codespace.runner.launchers import end_orphaned_launchers
from codespace.runner.namespace import NamespaceTree
from codespace.runner.orphans import Adoption
from codespace.runner.process import ManagedProcess
from codespace.runner.sandbox import ProbeResult, probe
from codespace.runner.spawn import Command, Spawned, spawn_in_namespace, spawn_with_keeper
from codespace.runner.tree import OnEnd, Tree

_CLOSE_SECONDS = 10.0
_CHOSEN = "The keeper was chosen by the operator."


class LocalRunner:
    """Implements `codespace.runner.api.Runner` on the event loop that opened it.

    Make one with `open` and end it with `close`, or use `running` as an async context manager.
    All calls come from that loop: a command dies with the thread that started it.
    """

    def __init__(self, limits: Limits, facts: RunnerFacts, launcher: str | None) -> None:
        self._limits = limits
        self._facts = facts
        self._launcher = launcher
        self._loop = asyncio.get_running_loop()
        self._processes: dict[ProcessId, ManagedProcess] = {}
        self._ended_at: dict[ProcessId, float] = {}  # oldest end first
        self._adoption = Adoption()
        self._keepers: set[int] = set()
        self._closing = False

    @classmethod
    async def open(
        cls, *, limits: Limits | None = None, containment: Containment | None = None
    ) -> Self:
        """Return a runner, after proving which containment works here.

        `None` takes the PID namespace where it works and the keeper elsewhere; naming one takes
        just that. What a killed gateway left, half-made launchers and hindered keepers, is ended
        first.

        Raises:
            CodeSpaceError: PROCESS_SPAWN_FAILED when the named containment does not work here.
        """
        result, _ = await anyio.to_thread.run_sync(_prove, containment)
        if containment is Containment.PID_NAMESPACE and not result.works:
            raise CodeSpaceError(
                ErrorCode.PROCESS_SPAWN_FAILED,
                f"A PID namespace cannot be made here: {result.reason} {result.mend}",
            )
        return cls(limits or Limits(), _facts(result), result.path if result.works else None)

    @classmethod
    @asynccontextmanager
    async def running(
        cls, *, limits: Limits | None = None, containment: Containment | None = None
    ) -> AsyncGenerator[Self]:
        """Open a runner for the block, and end all its processes after it."""
        runner = await cls.open(limits=limits, containment=containment)
        try:
            yield runner
        finally:
            with anyio.CancelScope(shield=True):
                await runner.close()

    @property
    def facts(self) -> RunnerFacts:
        """The containment in use, and why not the stronger one."""
        return self._facts

    async def start(self, request: StartRequest) -> None:
        """Start a command; return once it runs. When the caller is cancelled, nothing is left.

        Raises:
            CodeSpaceError: INVALID_COMMAND, LIMIT_EXCEEDED, FILE_OPERATION_FAILED for the root,
                PROCESS_SPAWN_FAILED; in every case nothing was started.
        """
        check_arguments(request.argv, self._limits)
        self._check_slot(request.process_id)
        process = self._spawn(request)
        self._processes[request.process_id] = process
        try:
            await process.begin()
        except BaseException:
            # Also when the caller went away: nothing may be left that nobody holds.
            process.kill()
            with anyio.CancelScope(shield=True), anyio.move_on_after(_CLOSE_SECONDS):
                await process.wait_ended()
            self._drop(request.process_id)
            raise

    async def read(
        self, process_id: ProcessId, cursor: int, *, max_bytes: int, wait_ms: int = 0
    ) -> OutputChunk:
        """Return output from `cursor` on; wait for something new or the end."""
        if cursor < 0:
            raise CodeSpaceError(
                ErrorCode.INVALID_ARGUMENT,
                "A cursor is not negative; begin with 0.",
                details={"path": "cursor"},
            )
        process = self._process(process_id)
        return await process.read(cursor, max_bytes=max_bytes, wait_ms=self._bounded(wait_ms))

    async def status(self, process_id: ProcessId, *, wait_ms: int = 0) -> ProcessState:
        """Return the state; wait for the end."""
        return await self._process(process_id).state(wait_ms=self._bounded(wait_ms))

    async def write(self, process_id: ProcessId, data: bytes, *, close: bool) -> None:
        """Write all of `data` to stdin within the limits, then close it if asked to.

        Raises:
            CodeSpaceError: PROCESS_NOT_FOUND, and as `StandardInput.write`.
        """
        await self._process(process_id).write(data, close=close)

    async def resize(self, process_id: ProcessId, rows: int, cols: int) -> None:
        """Set the size of a process's terminal.

        Raises:
            CodeSpaceError: INVALID_ARGUMENT, NOT_A_TTY, PROCESS_EXITED.
        """
        process = self._process(process_id)
        largest = self._limits.tty_max_size
        if not (1 <= rows <= largest and 1 <= cols <= largest):
            raise CodeSpaceError(
                ErrorCode.INVALID_ARGUMENT,
                f"A terminal has 1 to {largest} rows and columns.",
                details={"path": "rows" if not 1 <= rows <= largest else "cols"},
            )
        process.resize(rows, cols)

    async def terminate(self, process_id: ProcessId) -> None:
        """Ask the subtree to end and see to it; return at once. Good also after the end."""
        self._process(process_id).stop("terminated")

    async def close(self) -> None:
        """End every process, return when all are gone; afterwards nothing starts."""
        self._closing = True
        living = [process for process in self._processes.values() if process.running]
        for process in living:
            process.kill()
        with anyio.move_on_after(_CLOSE_SECONDS):
            for process in living:
                await process.wait_ended()
        if not any(process.running for process in living):
            self._adoption.end()
        for process_id in list(self._ended_at):
            self._drop(process_id)

    def _spawn(self, request: StartRequest) -> ManagedProcess:
        directory = open_root(request.root)
        try:
            command = Command(request, resolve_program(request, directory), directory)
            if self._launcher is None:
                self._adoption.begin()
                spawned = spawn_with_keeper(command)
            else:
                spawned = spawn_in_namespace(command, self._launcher)
        except OSError as error:
            raise CodeSpaceError(
                ErrorCode.PROCESS_SPAWN_FAILED,
                f"The system could not start a process: {error.strerror}; try again later.",
            ) from error
        finally:
            os.close(directory)
        return ManagedProcess(
            request,
            spawned,
            functools.partial(self._own, request),
            limits=self._limits,
            on_end=functools.partial(self._note_end, request.process_id),
        )

    def _own(self, request: StartRequest, spawned: Spawned, on_end: OnEnd) -> Tree:
        if self._launcher is None:
            return KeptTree(spawned, on_end, self._keepers)
        return NamespaceTree(spawned, request.root, on_end)

    def _check_slot(self, process_id: ProcessId) -> None:
        live = sum(process.running for process in self._processes.values())
        if self._closing:
            raise _no_slot("The server is shutting down; it starts nothing any more.")
        if process_id in self._processes:
            raise _no_slot("The process id is in use; give each command its own.")
        if live >= self._limits.max_processes:
            raise _no_slot(
                f"{live} processes run already, which is the most; end one or wait for its end."
            )

    def _process(self, process_id: ProcessId) -> ManagedProcess:
        self._forget_old()
        process = self._processes.get(process_id)
        if process is None:
            raise CodeSpaceError(
                ErrorCode.PROCESS_NOT_FOUND,
                "No such process; it never was, or it ended and was forgotten since.",
            )
        return process

    def _note_end(self, process_id: ProcessId) -> None:
        self._ended_at[process_id] = self._loop.time()
        self._forget_old()

    def _forget_old(self) -> None:
        oldest = self._loop.time() - self._limits.finished_process_kept_ms / 1_000
        surplus = len(self._ended_at) - self._limits.finished_processes_kept
        for at, (process_id, ended_at) in enumerate(list(self._ended_at.items())):
            if at >= surplus and ended_at >= oldest:
                break
            self._drop(process_id)

    def _drop(self, process_id: ProcessId) -> None:
        self._ended_at.pop(process_id, None)
        process = self._processes.pop(process_id, None)
        if process is not None:
            process.forget()

    def _bounded(self, wait_ms: int) -> int:
        return min(wait_ms, self._limits.wait_max_ms)


def _prove(containment: Containment | None) -> tuple[ProbeResult, int]:
    ended = end_orphaned_launchers()
    if containment is Containment.KEEPER:
        return ProbeResult(works=False, reason=_CHOSEN), ended
    return probe(), ended


def _facts(result: ProbeResult) -> RunnerFacts:
    if result.works:
        return RunnerFacts(Containment.PID_NAMESPACE)
    return RunnerFacts(Containment.KEEPER, result.reason)


def _no_slot(message: str) -> CodeSpaceError:
    return CodeSpaceError(ErrorCode.PROCESS_SPAWN_FAILED, message)
