"""Messages as frames on a stream: four bytes of length, then one JSON object. Pure: no socket.

What may be in a message is messages.py's affair.
"""

import json
from collections.abc import Iterator, Mapping
from typing import cast

from codespace.domain.sizes import MIB

FRAME_MAX_BYTES = 16 * MIB
"""Of one message's JSON. The longest command line and environment that a kernel takes fit in."""

_LENGTH_BYTES = 4


class ProtocolError(Exception):
    """The other side said what it never says: whatever it is, it is not to be talked to."""


class FrameTooLongError(Exception):
    """A message of ours does not fit into a frame; nothing of it was sent."""


def frame(message: Mapping[str, object]) -> bytes:
    """Return a message as it is sent.

    Raises:
        FrameTooLongError: its JSON is longer than `FRAME_MAX_BYTES`.
    """
    # ASCII, so that what is broken Unicode arrives as it is, and is refused where it always is.
    body = json.dumps(message, separators=(",", ":")).encode("ascii")
    if len(body) > FRAME_MAX_BYTES:
        raise FrameTooLongError
    return len(body).to_bytes(_LENGTH_BYTES, "big") + body


class FrameReader:
    """Puts a stream's pieces together again. After a `ProtocolError` it is of no more use."""

    def __init__(self) -> None:
        self._held = bytearray()
        self._wanted = _LENGTH_BYTES

    @property
    def held_bytes(self) -> int:
        """How much of a message that is not complete is kept."""
        return len(self._held)

    def feed(self, data: bytes) -> Iterator[Mapping[str, object]]:
        """Take a piece, and yield the messages that it completes.

        Raises:
            ProtocolError: a length out of bounds, or a body that is no JSON object.
        """
        self._held += data
        while len(self._held) >= self._wanted:
            length = int.from_bytes(self._held[:_LENGTH_BYTES], "big")
            if not 0 < length <= FRAME_MAX_BYTES:
                raise ProtocolError(f"a frame of {length} bytes")
            end = _LENGTH_BYTES + length
            if len(self._held) < end:
                self._wanted = end
                return
            body = bytes(memoryview(self._held)[_LENGTH_BYTES:end])
            del self._held[:end]
            self._wanted = _LENGTH_BYTES
            yield _object(body)


def _object(body: bytes) -> Mapping[str, object]:
    try:
        value = cast("object", json.loads(body))
    except (ValueError, RecursionError):
        raise ProtocolError("a frame that is no JSON") from None
    if not isinstance(value, dict):
        raise ProtocolError("a frame that is no JSON object")
    return cast("dict[str, object]", value)
