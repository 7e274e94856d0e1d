"""The end of a text that arrives in pieces, in bounded memory. Pure."""

from dataclasses import dataclass, field


@dataclass(slots=True)
class Tail:
    """Keeps the last `max_lines` lines, and of these at most the last `max_bytes` of UTF-8."""

    max_bytes: int
    max_lines: int
    _kept: bytearray = field(default_factory=bytearray, init=False)
    _dropped: bool = field(default=False, init=False)

    def add(self, text: str) -> None:
        """Take the next piece."""
        self._kept += text.encode("utf-8", "replace")
        if len(self._kept) > 2 * self.max_bytes:  # amortised: one move for each max_bytes
            del self._kept[: len(self._kept) - self.max_bytes]
            self._dropped = True

    @property
    def truncated(self) -> bool:
        """Whether the text had more than `text` returns."""
        return self._dropped or self._start() > 0

    def text(self) -> str:
        """Return the end that is kept, from the start of a character or of a line."""
        return self._kept[self._start() :].decode()

    def _start(self) -> int:
        kept = self._kept
        start = max(0, len(kept) - self.max_bytes)
        while start < len(kept) and kept[start] & 0xC0 == 0x80:  # noqa: PLR2004 -- UTF-8's own bits
            start += 1
        return max(start, _start_of_last_lines(kept, self.max_lines))


def _start_of_last_lines(data: bytearray, count: int) -> int:
    at = len(data) - 1 if data.endswith(b"\n") else len(data)
    for _ in range(count):
        at = data.rfind(b"\n", 0, at)
        if at < 0:
            return 0
    return at + 1
