"""One HTTP connection: how long a client may take to say what it wants, and how many there may be.

uvicorn waits for ever for the rest of a request; a few hundred half-said ones would use up the
gateway's descriptors.
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
