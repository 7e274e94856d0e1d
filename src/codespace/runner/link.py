"""Requests to one worker, many at a time, each known by its number, over one channel."""

import asyncio
import contextlib
import itertools
import logging
from collections.abc import Generator
from typing import TypeVar

import anyio

from codespace.domain.errors import CodeSpaceError, ErrorCode
from codespace.domain.ids import ProcessId
from codespace.runner.api import ProcessState, RunnerLostError, StartRequest
from codespace.runner.channel import Channel
from codespace.runner.frames import FRAME_MAX_BYTES, FrameTooLongError
from codespace.runner.messages import (
    Answer,
    Cancel,
    Done,
    Json,
    Request,
    Status,
    Terminate,
    answer_of,
    request_json,
)

_UNDO_SECONDS = 20.0
_LOOK_MS = 1_000
ANSWER_SECONDS = 20.0
"""How long an answer may take beyond the time that the request itself allows for."""
_SECOND_LOOK_SECONDS = 2.0

log = logging.getLogger(__name__)

A = TypeVar("A", bound=Answer)


class NotSentError(RunnerLostError):
    """The worker was lost before it was asked: certainly nothing happened."""


class Link:
    """The gateway's side of the conversation. `fail` ends all that still waits."""

    def __init__(self, channel: Channel) -> None:
        self._channel = channel
        self._numbers = itertools.count(1)
        self._waiting: dict[int, asyncio.Future[Answer]] = {}
        self._failed = False
        channel.listen(self._take)

    async def ask(self, request: Request, kind: type[A], *, wait_ms: int = 0) -> A:
        """Send a request and return its answer, which is of `kind`; a refusal is raised.

        When the caller is cancelled the worker is told, and nobody waits for what it says. A worker
        that does not answer, long after the `wait_ms` that the request takes, is given up.

        Raises:
            CodeSpaceError: as the worker's runner does.
            RunnerLostError: the worker was lost; what was asked for may have happened.
        """
        number, coming = await self._send(request)
        try:
            with self._patience(coming, wait_ms):
                return self._checked(await coming, kind)
        except asyncio.CancelledError:
            await self._cancel(number)
            raise
        finally:
            self._waiting.pop(number, None)

    async def start(self, request: StartRequest, *, wait_ms: int = 0) -> None:
        """Start a command; when the caller is cancelled, return once nothing of it is left.

        Raises:
            CodeSpaceError: as `Runner.start`.
            NotSentError: certainly nothing was started, and another worker may be asked.
            RunnerLostError: it may have been started.
        """
        number, coming = await self._send(request)
        try:
            with self._patience(coming, wait_ms):
                self._checked(await asyncio.shield(coming), Done)
        except asyncio.CancelledError:
            await self._undo(number, coming, request.process_id)
            raise
        finally:
            self._waiting.pop(number, None)

    def fail(self) -> None:
        """Let everybody who waits or still asks know that the worker is lost."""
        self._failed = True
        for coming in self._waiting.values():
            if not coming.done():
                coming.set_exception(RunnerLostError())

    async def _send(self, request: Request) -> tuple[int, asyncio.Future[Answer]]:
        if self._failed:
            raise NotSentError
        number = next(self._numbers)
        coming: asyncio.Future[Answer] = asyncio.get_running_loop().create_future()
        self._waiting[number] = coming
        try:
            await self._channel.send(request_json(number, request))
        except BaseException as error:
            del self._waiting[number]
            if isinstance(error, FrameTooLongError):
                raise _too_long() from error
            if isinstance(error, RunnerLostError):
                raise NotSentError from error
            raise
        return number, coming

    @contextlib.contextmanager
    def _patience(self, coming: asyncio.Future[Answer], wait_ms: int) -> Generator[None]:
        loop = asyncio.get_running_loop()
        timer: list[asyncio.TimerHandle] = []

        def expire(again: float) -> None:
            if coming.done():
                return
            if again:
                # It may be this process that did not run: then the answer is there to be read.
                timer[:] = [loop.call_later(again, expire, 0.0)]
                return
            log.error("the worker process does not answer; it is ended")
            self._channel.end()

        seconds = wait_ms / 1_000 + ANSWER_SECONDS
        timer.append(loop.call_later(seconds, expire, _SECOND_LOOK_SECONDS))
        try:
            yield
        finally:
            timer[0].cancel()

    async def _cancel(self, number: int) -> None:
        with contextlib.suppress(RunnerLostError), anyio.CancelScope(shield=True):
            await self._channel.send(request_json(number, Cancel()))

    async def _undo(
        self, number: int, coming: asyncio.Future[Answer], process_id: ProcessId
    ) -> None:
        with anyio.CancelScope(shield=True), anyio.move_on_after(_UNDO_SECONDS):
            await self._cancel(number)
            # The worker leaves nothing of what it cancels; but it may have been done before that.
            with contextlib.suppress(RunnerLostError, CodeSpaceError):
                if not isinstance(await coming, Done):
                    return
                await self.ask(Terminate(process_id), Done)
                while (
                    await self.ask(Status(process_id, _LOOK_MS), ProcessState, wait_ms=_LOOK_MS)
                ).running:
                    pass

    def _take(self, message: Json) -> None:
        number, answer = answer_of(message)
        coming = self._waiting.get(number)
        if coming is not None and not coming.done():
            coming.set_result(answer)

    def _checked(self, answer: Answer, kind: type[A]) -> A:
        if isinstance(answer, CodeSpaceError):
            raise answer
        if not isinstance(answer, kind):
            self._channel.end()  # it does not know what it was asked
            raise RunnerLostError
        return answer


def _too_long() -> CodeSpaceError:
    return CodeSpaceError(
        ErrorCode.LIMIT_EXCEEDED,
        "This is more than one call can bring to the worker process; send less of it.",
        details={"limit": "frame_max_bytes", "maximum": FRAME_MAX_BYTES},
    )
