"""One HTTP connection: how long a client may take to say what it wants, and how many there may be.

uvicorn waits for ever for the rest of a request; a few hundred half-said ones would use up the
gateway's descriptors. It also writes the head, the body and the end of an answer apart; here they
leave together when they are there together.
"""

import asyncio
from dataclasses import dataclass
from typing import Any, ClassVar

import h11
from uvicorn.protocols.http.h11_impl import H11Protocol


@dataclass(frozen=True, slots=True)
class Patience:
    """What is granted to clients, together and each."""

    connections: int = 512
    """How many may be open at once; one more is closed unheard."""
    sessions: int = 500
    """How many MCP sessions may be open at once; one more is answered 503."""
    header_seconds: float = 10
    """From the start of a connection, or of a later request on it, to the end of its headers."""
    body_seconds: float = 120
    """From the end of the headers to the end of the body."""


GRANTED = Patience()
GATHER_SECONDS = 0.001
"""How long a piece of an answer waits for the next one. The last one never does."""
GATHER_BYTES = 64 * 1024
"""More than this does not wait."""


def protocol_for(patience: Patience) -> type[H11Protocol]:
    """Return uvicorn's HTTP/1.1 protocol with these bounds."""
    return type("BoundedProtocol", (_BoundedProtocol,), {"patience": patience})


class _BoundedProtocol(H11Protocol):
    patience: ClassVar[Patience]

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._deadline: asyncio.TimerHandle | None = None
        self._waits_for: object = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # pyright: ignore[reportIncompatibleMethodOverride] -- as uvicorn has it
        super().connection_made(transport)
        self.transport: asyncio.Transport = Gathering(transport, self.loop)
        if len(self.connections) > self.patience.connections:
            transport.abort()
        else:
            self._expect(h11.IDLE)

    def connection_lost(self, exc: Exception | None) -> None:
        self._expect(None)
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        self._expect(self.conn.their_state)

    def on_response_complete(self) -> None:
        if isinstance(self.transport, Gathering):
            self.transport.flush()
        super().on_response_complete()
        # Until more comes, uvicorn's own clock for an idle connection runs.
        state = self.conn.their_state
        self._expect(None if state is h11.IDLE else state)

    def _expect(self, state: object) -> None:
        """Start the clock of a new state; more bytes within one state win no more time."""
        if state is self._waits_for:
            return
        self._waits_for = state
        if self._deadline is not None:
            self._deadline.cancel()
            self._deadline = None
        if state is h11.IDLE:
            self._deadline = self.loop.call_later(self.patience.header_seconds, self._close)
        elif state is h11.SEND_BODY:
            self._deadline = self.loop.call_later(self.patience.body_seconds, self._close)

    def _close(self) -> None:
        self.transport.close()


class Gathering(asyncio.Transport):
    """A transport whose writes leave with one system call when they follow close on each other."""

    def __init__(self, below: asyncio.Transport, loop: asyncio.AbstractEventLoop) -> None:
        super().__init__()
        self._below = below
        self._loop = loop
        self._held: list[bytes | bytearray | memoryview] = []
        self._bytes = 0
        self._timer: asyncio.TimerHandle | None = None

    def write(self, data: bytes | bytearray | memoryview) -> None:
        """Take `data`, to send it soon."""
        if not data:
            return
        self._held.append(data)
        self._bytes += len(data)
        if self._bytes > GATHER_BYTES:
            self.flush()
        elif self._timer is None:
            self._timer = self._loop.call_later(GATHER_SECONDS, self.flush)

    def flush(self) -> None:
        """Send what was taken, unless the client has gone."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        held, self._held, self._bytes = self._held, [], 0
        if held and not self._below.is_closing():
            self._below.write(held[0] if len(held) == 1 else b"".join(held))

    def close(self) -> None:
        """Send what was taken, and close."""
        self.flush()
        self._below.close()

    def is_closing(self) -> bool:
        """Say whether the connection is closed, or about to be."""
        return self._below.is_closing()

    def resume_reading(self) -> None:
        """Read from the client again."""
        self._below.resume_reading()

    def abort(self) -> None:
        """Close, and send nothing more."""
        self._below.abort()
