"""One side of the connection between gateway and worker: whole messages in, whole messages out.

It ends at the first thing that is no message. What messages mean is for those who listen.
"""

import asyncio
import logging
import socket
from collections.abc import Callable, Iterable
from typing import Self, cast

import anyio

from codespace.runner.api import RunnerLostError
from codespace.runner.frames import FrameReader, ProtocolError, frame
from codespace.runner.messages import Json

log = logging.getLogger(__name__)


class Channel(asyncio.Protocol):
    """Messages over a connected socket, on the loop that opened it. Make one with `over`."""

    def __init__(self) -> None:
        self._reader = FrameReader()
        self._transport: asyncio.Transport | None = None
        self._room: anyio.Event | None = None
        self._listener: Callable[[Json], None] | None = None
        self._coming: asyncio.Future[Json] | None = None
        self.lost = anyio.Event()
        """Set once nothing comes and goes any more."""

    @classmethod
    async def over(cls, connected: socket.socket) -> Self:
        """Return the channel over a socket, which it owns from now on."""
        connected.settimeout(0)
        loop = asyncio.get_running_loop()
        _, channel = await loop.create_unix_connection(cls, sock=connected)
        return channel

    def listen(self, listener: Callable[[Json], None]) -> None:
        """Hand every message from now on to `listener`, which may raise `ProtocolError`."""
        self._listener = listener

    async def receive(self) -> Json:
        """Return one message; for an opening in which each side waits for the other.

        Raises:
            RunnerLostError: the connection ended first.
        """
        coming: asyncio.Future[Json] = asyncio.get_running_loop().create_future()
        if self.lost.is_set():
            raise RunnerLostError

        def take(message: Json) -> None:
            self._listener = None
            if not coming.done():
                coming.set_result(message)

        self._listener, self._coming = take, coming
        return await coming

    async def send(self, message: Json) -> None:
        """Send one message, after waiting for room.

        Raises:
            RunnerLostError: nothing was sent, since the connection has ended.
            FrameTooLongError: nothing was sent.
        """
        data = frame(message)
        while self._room is not None:
            await self._room.wait()
        if self._transport is None or self._transport.is_closing():
            raise RunnerLostError
        self._transport.write(data)

    def end(self) -> None:
        """End the connection at once; good more than once."""
        if self._transport is not None:
            self._transport.abort()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Begin."""
        self._transport = cast("asyncio.Transport", transport)

    def data_received(self, data: bytes) -> None:
        """Put messages together and hand them over."""
        if self._transport is not None and not self._transport.is_closing():
            self._hand_over(self._reader.feed(data))

    def pause_writing(self) -> None:
        """Let senders wait."""
        self._room = anyio.Event()

    def resume_writing(self) -> None:
        """Let senders go on."""
        room, self._room = self._room, None
        if room is not None:
            room.set()

    def connection_lost(self, exc: Exception | None) -> None:
        """Tell everybody who waits."""
        self.resume_writing()
        self.lost.set()
        if self._coming is not None and not self._coming.done():
            self._coming.set_exception(RunnerLostError())

    def _hand_over(self, messages: Iterable[Json]) -> None:
        try:
            for message in messages:
                (self._listener or _unexpected)(message)
        except ProtocolError as error:
            log.error("the connection between gateway and worker ends: %s", error)  # noqa: TRY400 -- the trace has nothing more
            self.end()


def _unexpected(message: Json) -> None:
    raise ProtocolError("a message that nobody waits for")
