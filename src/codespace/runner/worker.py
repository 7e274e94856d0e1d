"""The worker process: serves a runner to the one gateway that started it, and ends with it.

It is handed execution requests and nothing else: no token, no database, no environment of the
gateway's. Its commands die with it as they do with a gateway that runs them itself.
"""

import asyncio
import contextlib
import logging
import os
import signal
import socket
import sys

import uvloop

from codespace.domain.errors import CodeSpaceError, ErrorCode
from codespace.runner.api import Runner, RunnerLostError, StartRequest
from codespace.runner.channel import Channel
from codespace.runner.frames import FrameTooLongError, ProtocolError
from codespace.runner.handshake import Invitation, introduce, is_process, ready, unable
from codespace.runner.keeper import prctl_function
from codespace.runner.local import LocalRunner
from codespace.runner.messages import (
    Answer,
    Cancel,
    Cancelled,
    Close,
    Done,
    Json,
    Read,
    Request,
    Resize,
    Status,
    Terminate,
    Write,
    answer_json,
    request_of,
)

SOCKET_NAME = "runner"

_PR_SET_PDEATHSIG = 1
_PR_SET_DUMPABLE = 4
_PR_SET_CHILD_SUBREAPER = 36
_INVITATION_BYTES = 4_096
_CONNECT_SECONDS = 15.0
_ANSWER_SECONDS = 2.0

log = logging.getLogger(__name__)


def main() -> None:
    """Serve until the gateway is gone, or says that it is enough."""
    # First of all: from here on the kernel ends this process with the gateway.
    prctl = prctl_function()
    prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    # What loses its launcher stays here, and only what loses this worker goes to the gateway.
    prctl(_PR_SET_CHILD_SUBREAPER, 1)
    prctl(_PR_SET_DUMPABLE, 0)  # commands of the same user neither trace us nor read our memory
    _log_tersely()
    try:
        invitation = Invitation.opened(sys.stdin.buffer.read(_INVITATION_BYTES))
        if os.getppid() != invitation.gateway:
            return
        connected = connect(invitation)
    except (OSError, ProtocolError) as error:
        log.error("the worker does not reach its gateway: %s", type(error).__name__)  # noqa: TRY400 -- the trace has nothing more
        sys.exit(1)
    uvloop.run(_work(connected, invitation.nonce))


def connect(invitation: Invitation) -> socket.socket:
    """Return the connection to the gateway that sent the invitation.

    Raises:
        OSError: nobody listens there.
        ProtocolError: somebody else does.
    """
    connected = socket.socket(socket.AF_UNIX)
    try:
        connected.settimeout(_CONNECT_SECONDS)
        directory = os.open(invitation.directory, os.O_PATH | os.O_DIRECTORY)
        try:
            # The directory's own path may be longer than an address can be.
            connected.connect(f"/proc/self/fd/{directory}/{SOCKET_NAME}")
        finally:
            os.close(directory)
    except BaseException:
        connected.close()
        raise
    if not is_process(connected, invitation.gateway):
        connected.close()
        raise ProtocolError("somebody else listens in the gateway's place")
    return connected


async def _work(connected: socket.socket, nonce: str) -> None:
    channel = await Channel.over(connected)
    try:
        terms = await introduce(channel, nonce)
    except (RunnerLostError, ProtocolError) as error:
        log.error("the worker was not taken in: %s", error)  # noqa: TRY400 -- the trace has nothing more
        return
    try:
        runner = await LocalRunner.open(limits=terms.limits, containment=terms.containment)
    except (CodeSpaceError, OSError) as error:
        with contextlib.suppress(RunnerLostError):
            await channel.send(unable(error))
            await channel.lost.wait()
        return
    service = Service(runner, channel)
    channel.listen(service.take)
    with contextlib.suppress(RunnerLostError):
        await channel.send(ready(runner.facts))
    await channel.lost.wait()
    await runner.close()


class Service:
    """Answers each request in a task of its own, so that one that waits holds nobody up."""

    def __init__(self, runner: Runner, channel: Channel) -> None:
        self._runner = runner
        self._channel = channel
        self._tasks: dict[int, asyncio.Task[None]] = {}

    def take(self, message: Json) -> None:
        """Take a message of the gateway's.

        Raises:
            ProtocolError: it is no request, or its number is in use.
        """
        number, request = request_of(message)
        asked = self._tasks.get(number)
        if isinstance(request, Cancel):
            # After its first step: a task that never began would not answer.
            asyncio.get_running_loop().call_soon(self._cancel, number)
            return
        if asked is not None:
            raise ProtocolError("the number of a request twice")
        self._tasks[number] = asyncio.create_task(self._serve(number, request))

    def _cancel(self, number: int) -> None:
        task = self._tasks.get(number)
        if task is not None:
            task.cancel()

    async def _serve(self, number: int, request: Request) -> None:
        try:
            answer = await self._answer(request)
            # No cancellation from here on: what was done is told.
            del self._tasks[number]
            await self._tell(number, answer)
        except asyncio.CancelledError:
            self._tasks.pop(number, None)
            await self._tell(number, Cancelled())

    async def _answer(self, request: Request) -> Answer:
        try:
            return await self._done(request)
        except CodeSpaceError as error:
            return error
        except Exception as error:
            # The gateway has to be told something in any case.
            log.exception("a request failed")
            return _internal(error)

    async def _done(self, request: Request) -> Answer:
        runner = self._runner
        match request:
            case Read(process_id, cursor, max_bytes, wait_ms):
                return await runner.read(process_id, cursor, max_bytes=max_bytes, wait_ms=wait_ms)
            case Status(process_id, wait_ms):
                return await runner.status(process_id, wait_ms=wait_ms)
            case StartRequest():
                await runner.start(request)
            case Write(process_id, data, close):
                await runner.write(process_id, data, close=close)
            case Resize(process_id, rows, cols):
                await runner.resize(process_id, rows, cols)
            case Terminate(process_id):
                await runner.terminate(process_id)
            case Close():
                await self._close()
            case Cancel():
                raise RuntimeError("a cancellation is no request")
        return Done()

    async def _close(self) -> None:
        others = [task for task in self._tasks.values() if task is not asyncio.current_task()]
        await self._runner.close()
        if others:  # who waits for an end is told of it before the connection goes
            await asyncio.wait(others, timeout=_ANSWER_SECONDS)

    async def _tell(self, number: int, answer: Answer) -> None:
        with contextlib.suppress(RunnerLostError):
            try:
                await self._channel.send(answer_json(number, answer))
            except FrameTooLongError as error:
                await self._channel.send(answer_json(number, _internal(error)))


def _internal(error: Exception) -> CodeSpaceError:
    return CodeSpaceError(
        ErrorCode.INTERNAL,
        f"The worker process failed ({type(error).__name__}); see the server's log.",
    )


class _Terse(logging.Formatter):
    """Says of exceptions only the type, and nothing of what other libraries say."""

    def format(self, record: logging.LogRecord) -> str:
        own = record.name.startswith("codespace.")
        text = record.getMessage() if own else f"at {record.module}:{record.lineno}"
        kind = record.exc_info[0] if record.exc_info else None
        what = "" if kind is None else f" ({kind.__qualname__})"
        return f"{self.formatTime(record)} {record.levelname} {record.name} {text}{what}"


def _log_tersely() -> None:
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(_Terse())
    logging.getLogger().handlers[:] = [handler]
