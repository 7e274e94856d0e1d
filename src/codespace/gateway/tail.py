"""The end of a text that arrives in pieces, in bounded memory. Pure."""

from dataclasses import dataclass, field


@dataclass(slots=True)
class Tail:
    """Keeps the last `max_lines` lines, and of these at most the last `max_bytes` of UTF-8."""

    max_bytes: int
    max_lines: int
    truncated: bool = False
    _kept: bytearray = field(default_factory=bytearray)

    def add(self, text: str) -> None:
        """Take the next piece."""
        self._kept += text.encode("utf-8", "replace")
        if len(self._kept) > 2 * self.max_bytes:  # amortised: one move for each max_bytes
            del self._kept[: len(self._kept) - self.max_bytes - 1]
            self.truncated = True

    def text(self) -> str:
        """Return the end that is kept, from the start of a character or of a line."""
        kept = bytes(self._kept)
        start = max(0, len(kept) - self.max_bytes)
        while start < len(kept) and kept[start] & 0xC0 == 0x80:  # noqa: PLR2004 -- UTF-8's own bits
            start += 1
        start = max(start, _start_of_last_lines(kept, self.max_lines))
        self.truncated = self.truncated or start > 0
        return kept[start:].decode("utf-8", "replace")


def _start_of_last_lines(data: bytes, count: int) -> int:
    at = len(data) - 1 if data.endswith(b"\n") else len(data)
    for _ in range(count):
        at = data.rfind(b"\n", 0, at)
        if at < 0:
            return 0
    return at + 1
