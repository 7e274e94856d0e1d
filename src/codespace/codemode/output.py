"""What a script writes, in order, and its cut to what a model should read (pure)."""

from collections.abc import Iterable, Sequence
from itertools import groupby

from codespace.codemode.outcome import ImageItem, Item, TextItem

MARK_CHARS = 160
"""Room that is kept for the line that stands for what was cut."""


def joined(items: Iterable[Item]) -> list[Item]:
    """Return the items with neighbouring texts as one, on lines of their own."""
    found: list[Item] = []
    for textual, group in groupby(items, lambda item: isinstance(item, TextItem)):
        if textual:
            texts = [item.text for item in group if isinstance(item, TextItem)]
            found.append(TextItem("\n".join(texts)))
        else:
            found.extend(group)
    return found


def text_of(items: Iterable[Item]) -> str:
    """Return all text of the items; an image is a line that says so."""
    return "\n".join(item.text if isinstance(item, TextItem) else "[image]" for item in items)


def total_chars(items: Iterable[Item]) -> int:
    """Return how many characters the texts have."""
    return sum(len(item.text) for item in items if isinstance(item, TextItem))


def cut(items: Sequence[Item], limit: int, *, path: str | None = None) -> list[Item]:
    """Return the items with at most `limit` characters of text: their start and their end.

    A line in between says how much is missing, and where the whole is if `path` is given. Images
    all stay.
    """
    total = total_chars(items)
    if total <= limit:
        return list(items)
    head, tail = _shares(limit)
    where = f"; the whole output is in {path}" if path else ""
    mark = f"[… {total - head - tail} characters of output are left out here{where} …]"
    kept: list[Item] = []
    position = 0
    for item in items:
        if isinstance(item, ImageItem):
            kept.append(item)
            continue
        start, position = position, position + len(item.text)
        kept.extend(_around(item.text, start, (head, total - tail), mark))
    return joined(kept)


def kept_chars(total: int, limit: int) -> int:
    """Return how many of `total` characters `cut` leaves, without its own line."""
    return total if total <= limit else sum(_shares(limit))


def _shares(limit: int) -> tuple[int, int]:
    room = max(0, limit - MARK_CHARS)
    return room - room // 2, room // 2


def _around(text: str, start: int, gap: tuple[int, int], mark: str) -> list[Item]:
    # What is left of a text that begins at `start` when `gap` is cut out of the whole.
    left = text[: max(0, gap[0] - start)]
    right = text[max(0, gap[1] - start) :] if start + len(text) > gap[1] else ""
    holds_gap = start <= gap[0] < start + len(text)
    parts = [left, mark if holds_gap else "", right]
    return [TextItem(part) for part in parts if part]
