"""The kept window of a process's output and its byte cursors. Pure: no descriptor, no clock.

Who reads the descriptor, and when to stop reading it, is the pump's affair (pump.py).
"""

import codecs
import json

from codespace.runner.api import OutputChunk

SMALLEST_READ = 4
"""The longest UTF-8 character: any smaller read might never get on."""

_JSON_GROWTH = 2
_ORPHANS_MAX = SMALLEST_READ - 1
_CLASS_MASK = 0b1100_0000
_CONTINUATION = 0b1000_0000


class OutputWindow:
    """The last bytes of an output that only grows.

    Unpaced, the oldest bytes fall out when more than `kept_bytes` came. Paced, a byte stays until
    some read has asked for what follows it; `room` then says how much may be fed at all.
    """

    def __init__(self, kept_bytes: int, *, paced: bool = False) -> None:
        self._kept_bytes = kept_bytes
        self._paced = paced
        self._bytes = bytearray()
        self._begin = 0  # the cursor of the first byte that is still stored
        self._asked = 0
        self.ended = False

    @property
    def total(self) -> int:
        """How many bytes the output had so far."""
        return self._begin + len(self._bytes)

    @property
    def retained_from(self) -> int:
        """The first cursor that can still be read; never inside a character that lost its start."""
        floor = self._floor()
        if floor == 0:
            return 0
        highest = min(floor + _ORPHANS_MAX, self._asked if self._paced else self.total)
        while floor < highest and _continues_character(self._bytes[floor - self._begin]):
            floor += 1
        return floor

    @property
    def room(self) -> int:
        """How many bytes may be fed now without losing one that must be kept."""
        if not self._paced:
            return self._kept_bytes
        return max(0, self._kept_bytes - (self.total - self._asked))

    def feed(self, data: bytes) -> None:
        """Append output, and let fall out what need not be kept."""
        self._bytes += data
        # Trimming at twice the size makes one move of the rest pay for many appends.
        if len(self._bytes) > 2 * self._kept_bytes:
            self._trim()

    def end(self) -> None:
        """Say that nothing more will come."""
        self.ended = True

    def ask(self, cursor: int) -> None:
        """Note that a reader has everything before `cursor`."""
        self._asked = max(self._asked, min(cursor, self.total))

    def read(self, cursor: int, max_bytes: int, *, exited: bool) -> OutputChunk:
        """Return text from `cursor` on, cut to `max_bytes` and to twice that once it is JSON.

        A cursor before the window is moved up, one beyond the end is moved back. `eof` needs the
        process to have `exited`, too: one that only closed its output goes on.
        """
        retained_from = self.retained_from
        start = min(max(cursor, retained_from), self.total)
        text, used = self._decode(start, max(max_bytes, SMALLEST_READ))
        reached = start + used
        return OutputChunk(
            cursor=reached,
            text=text,
            eof=exited and self.ended and reached == self.total,
            output_lost=retained_from > 0,
            retained_from=retained_from,
        )

    def _decode(self, start: int, size: int) -> tuple[str, int]:
        json_max = _JSON_GROWTH * size + len('""')
        offset = start - self._begin
        while True:
            raw = bytes(memoryview(self._bytes)[offset : offset + size])
            final = self.ended and start + len(raw) == self.total
            text, used = codecs.utf_8_decode(raw, "replace", final)
            json_size = len(json.dumps(text, ensure_ascii=False).encode())
            if json_size <= json_max or size <= SMALLEST_READ:
                return text, used
            size = max(SMALLEST_READ, len(raw) * json_max // json_size)

    def _floor(self) -> int:
        floor = max(0, self.total - self._kept_bytes)
        return min(floor, self._asked) if self._paced else floor

    def _trim(self) -> None:
        floor = self._floor()
        del self._bytes[: floor - self._begin]
        self._begin = floor


def _continues_character(byte: int) -> bool:
    return byte & _CLASS_MASK == _CONTINUATION
