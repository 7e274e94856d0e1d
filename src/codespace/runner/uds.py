"""The Runner in a worker process behind a private socket: `LocalRunner`, one process further away.

A lost worker takes its processes with it. Whoever waited is told once they are gone; the next
command gets a new worker, which knows nothing of the handles of the one before.
"""

import asyncio
import contextlib
import logging
import os
import socket
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Self

import anyio

from codespace.domain.errors import CodeSpaceError, ErrorCode
from codespace.domain.ids import ProcessId
from codespace.domain.limits import Limits
from codespace.runner.api import (
    Containment,
    OutputChunk,
    ProcessState,
    RunnerFacts,
    RunnerLostError,
    StartRequest,
)
from codespace.runner.channel import Channel
from codespace.runner.child import Child, Door, new_nonce, open_door
from codespace.runner.frames import ProtocolError
from codespace.runner.handshake import Terms, welcome
from codespace.runner.link import Link, NotSentError
from codespace.runner.messages import Close, Done, Read, Resize, Status, Terminate, Write
from codespace.runner.orphans import Adoption

_BEGIN_SECONDS = 20.0
_END_SECONDS = 10.0
_CLOSE_SECONDS = 15.0

log = logging.getLogger(__name__)


class UdsRunner:
    """Implements `codespace.runner.api.Runner` on the event loop that opened it.

    Make one with `open` and end it with `close`, or use `running` as an async context manager.
    """

    def __init__(self, terms: Terms, search_path: str) -> None:
        self._terms = terms
        self._search_path = search_path
        self._adoption = Adoption()
        self._turn = anyio.Lock()
        self._worker: _Worker | None = None
        self._facts: RunnerFacts | None = None
        self._closing = False

    @classmethod
    async def open(
        cls,
        *,
        limits: Limits | None = None,
        containment: Containment | None = None,
        search_path: str = os.defpath,
    ) -> Self:
        """Return a runner whose worker is there, and has proven which containment works.

        `containment` is as `LocalRunner.open` has it; on `search_path` the worker finds bubblewrap.

        Raises:
            CodeSpaceError: PROCESS_SPAWN_FAILED: there is no worker to be had.
        """
        runner = cls(Terms(limits or Limits(), containment), search_path)
        runner._adoption.begin()
        try:
            worker = await runner._at_hand()
        except BaseException:
            runner._adoption.end()
            raise
        # A later worker does not fall back to less than what was said of this one.
        runner._facts = worker.facts
        runner._terms = replace(runner._terms, containment=worker.facts.containment)
        return runner

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
        if self._facts is None:
            raise RuntimeError("the runner was not opened")
        return self._facts

    @property
    def worker_pid(self) -> int | None:
        """The living worker, for operators and tests."""
        worker = self._worker
        return worker.child.pid if worker is not None and worker.is_there else None

    async def start(self, request: StartRequest) -> None:
        """Start a command, in a new worker if the last one was lost; return once it runs.

        When the caller is cancelled, nothing is left.

        Raises:
            CodeSpaceError: as `LocalRunner.start`; in every case nothing was started.
            RunnerLostError: it may have been started; by now, nothing of it is left.
        """
        limit = self._terms.limits.process_start_ms
        worker = await self._at_hand()
        try:
            await worker.link.start(request, wait_ms=limit)
        except NotSentError:
            await (await self._at_hand()).link.start(request, wait_ms=limit)

    async def read(
        self, process_id: ProcessId, cursor: int, *, max_bytes: int, wait_ms: int = 0
    ) -> OutputChunk:
        """Return output from `cursor` on; wait for something new or the end."""
        link = await self._of(process_id)
        request = Read(process_id, cursor, max_bytes, wait_ms)
        return await link.ask(request, OutputChunk, wait_ms=wait_ms)

    async def status(self, process_id: ProcessId, *, wait_ms: int = 0) -> ProcessState:
        """Return the state; wait for the end. A lost worker's process is not known any more."""
        link = await self._of(process_id)
        try:
            return await link.ask(Status(process_id, wait_ms), ProcessState, wait_ms=wait_ms)
        except RunnerLostError:
            # Whoever asks for a lease may rely on it: what was lost is gone, and not just unheard.
            raise _no_process() from None

    async def write(self, process_id: ProcessId, data: bytes, *, close: bool) -> None:
        """Write all of `data` to stdin within the limits, as `LocalRunner.write`."""
        link, limit = await self._of(process_id), self._terms.limits.stdin_timeout_ms
        await link.ask(Write(process_id, data, close), Done, wait_ms=limit)

    async def resize(self, process_id: ProcessId, rows: int, cols: int) -> None:
        """Set the size of a process's terminal, as `LocalRunner.resize`."""
        await (await self._of(process_id)).ask(Resize(process_id, rows, cols), Done)

    async def terminate(self, process_id: ProcessId) -> None:
        """Ask the subtree to end and see to it; return at once. Good also after the end."""
        await (await self._of(process_id)).ask(Terminate(process_id), Done)

    async def close(self) -> None:
        """End every process and the worker; return when all are gone. Nothing starts afterwards."""
        self._closing = True
        async with self._turn:
            worker, self._worker = self._worker, None
            if worker is None:
                return
            with contextlib.suppress(RunnerLostError, CodeSpaceError):
                with anyio.move_on_after(_CLOSE_SECONDS):
                    await worker.link.ask(Close(), Done)
            worker.channel.end()
            await worker.over.wait()
            self._adoption.end()

    async def _of(self, process_id: ProcessId) -> Link:
        """Return the link to the worker that may know the process; for nothing else is one made."""
        worker = self._worker
        if worker is None:
            raise _no_process()
        if not worker.is_there:
            await worker.over.wait()
            raise _no_process()
        return worker.link

    async def _at_hand(self) -> "_Worker":
        worker = self._worker
        if worker is not None and worker.is_there and not self._closing:
            return worker
        async with self._turn:
            if self._closing:
                raise CodeSpaceError(
                    ErrorCode.PROCESS_SPAWN_FAILED,
                    "The server is shutting down; it starts nothing any more.",
                )
            worker = self._worker
            if worker is not None and worker.is_there:
                return worker
            if worker is not None:
                await worker.over.wait()
            self._worker = await _hire(self._terms, self._search_path)
            return self._worker


class _Worker:
    """A worker that was taken in, until nothing of it is left."""

    def __init__(self, child: Child, channel: Channel, facts: RunnerFacts) -> None:
        self.child = child
        self.channel = channel
        self.facts = facts
        self.link = Link(channel)
        self.over = anyio.Event()
        """Set once the process and all that it started are gone, and nobody waits any more."""
        self._ending = asyncio.create_task(self._end())

    @property
    def is_there(self) -> bool:
        """Whether it can be asked; one that was found dead is done with at once."""
        if self.channel.lost.is_set():
            return False
        if self.child.has_ended:
            self.channel.end()
            return False
        return True

    async def _end(self) -> None:
        await self.channel.lost.wait()
        try:
            await _clear(self.child)
        finally:
            self.link.fail()
            self.over.set()


async def _hire(terms: Terms, search_path: str) -> _Worker:
    """Start a worker and take it in.

    Raises:
        CodeSpaceError: PROCESS_SPAWN_FAILED; nothing is left of it.
    """
    nonce = new_nonce()
    try:
        with anyio.fail_after(_BEGIN_SECONDS), open_door() as door:
            child = Child.start(door.directory, nonce, search_path)
            try:
                return await _taken_in(door, child, nonce, terms)
            except BaseException:
                with anyio.CancelScope(shield=True):
                    await _clear(child)
                raise
    except (OSError, ProtocolError, RunnerLostError) as error:
        what = str(error) if isinstance(error, ProtocolError) else type(error).__name__
        log.error("no worker process came up: %s", what)  # noqa: TRY400 -- the trace has nothing more
        raise CodeSpaceError(
            ErrorCode.PROCESS_SPAWN_FAILED,
            "The worker process did not come up, so nothing was started; try again, or the operator"
            " can look into the server's log.",
        ) from error


async def _taken_in(door: Door, child: Child, nonce: str, terms: Terms) -> _Worker:
    channel = await Channel.over(await _arrival(door, child))
    try:
        return _Worker(child, channel, await welcome(channel, nonce, terms))
    except BaseException:
        channel.end()
        raise


async def _arrival(door: Door, child: Child) -> socket.socket:
    coming = asyncio.ensure_future(door.admit(child.pid))
    ending = asyncio.ensure_future(child.ended())
    try:
        await asyncio.wait((coming, ending), return_when=asyncio.FIRST_COMPLETED)
        if not coming.done():
            raise RunnerLostError
        return coming.result()
    finally:
        coming.cancel()
        ending.cancel()


async def _clear(child: Child) -> None:
    child.kill()
    with anyio.move_on_after(_END_SECONDS) as patience:
        await child.ended()
        await child.cleared()
    if patience.cancelled_caught:
        log.error("something of a lost worker process could not be ended")


def _no_process() -> CodeSpaceError:
    return CodeSpaceError(
        ErrorCode.PROCESS_NOT_FOUND,
        "No such process; it never was, or the worker process that ran it is gone.",
    )
