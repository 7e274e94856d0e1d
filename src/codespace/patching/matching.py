"""Finding lines in a file: four passes, each less strict than the one before.

What is sought, and from where, is left to `placing`.
"""

import sys
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress

from codespace.patching.whitespace import rtrim, trim

_FOLDED = str.maketrans(
    {
        **dict.fromkeys("\u2010\u2011\u2012\u2013\u2014\u2015\u2212", "-"),
        **dict.fromkeys("\u2018\u2019\u201a\u201b", "'"),
        **dict.fromkeys("\u201c\u201d\u201e\u201f", '"'),
        **dict.fromkeys("\u00a0\u2002\u2003\u2004\u2005\u2006\u2007\u2008\u2009\u200a", " "),
        **dict.fromkeys("\u202f\u205f\u3000", " "),
    }
)


def same(text: str) -> str:
    """Return `text`: the strictest pass compares lines as they are."""
    return text


def folded(text: str) -> str:
    """Return `text` as the loosest pass compares it: trimmed, dashes, quotes and blanks plain."""
    text = trim(text)
    return text if text.isascii() else text.translate(_FOLDED)


_PASSES = (same, rtrim, trim, folded)
_DIRECT_TRIES = 16


class Finder:
    """Answers where a pattern stands in the lines of one file.

    A search first looks directly, which is enough for most patches. From the first time that
    this fails, tables are used, so that many chunks in a large file stay cheap: in each pass a
    line becomes one character, a pattern a word, and the search one of a word in a text, which
    the interpreter does in about linear time. Only the lines of `wanted` get a character of their
    own. The table of a pass is made when a search first needs it.
    """

    def __init__(
        self, lines: list[str], wanted: Iterable[str], *, alphabet: int = sys.maxunicode
    ) -> None:
        """Take a file's line texts.

        Args:
            lines: the texts, without endings.
            wanted: every text that any pattern will hold.
            alphabet: how many characters may be used; beyond it lines share one.
        """
        self.lines = lines
        self._direct = True
        self._wanted = tuple(wanted)
        self._alphabet = alphabet
        self._tables: list[_Table] = []

    def seek(self, pattern: Sequence[str], start: int, *, eof: bool = False) -> int | None:
        """Return the first line at or after `start` where the pattern stands, or `None`.

        A strict match anywhere beats a looser one above it. With `eof` only the very end of the
        file can match. An empty pattern stands at `start`.
        """
        if not pattern:
            return start
        last = len(self.lines) - len(pattern)
        first = max(start, last) if eof else start
        if first > last:
            return None
        if self._direct:
            hit = self._look(list(pattern), first, last)
            if hit is not None:
                return hit
            self._direct = False
        for number in range(len(_PASSES)):
            hit = self._table(number).find(pattern, first)
            if hit is not None:
                return hit
        return None

    def _look(self, pattern: list[str], first: int, last: int) -> int | None:
        lines = self.lines
        with suppress(ValueError):
            for _ in range(_DIRECT_TRIES):
                first = lines.index(pattern[0], first, last + 1)
                if lines[first : first + len(pattern)] == pattern:
                    return first
                first += 1
        return None

    def occurrences(self, text: str, start: int, limit: int) -> list[int]:
        """Return the first lines at or after `start` that the loosest pass takes for `text`."""
        table = self._table(len(_PASSES) - 1)
        found: list[int] = []
        hit = table.find([text], start)
        while hit is not None and len(found) < limit:
            found.append(hit)
            hit = table.find([text], hit + 1)
        return found

    def _table(self, number: int) -> "_Table":
        while len(self._tables) <= number:
            fold = _PASSES[len(self._tables)]
            self._tables.append(_Table(self.lines, self._wanted, fold, self._alphabet))
        return self._tables[number]


class _Table:
    """The lines of the file in one pass, as one text with one character a line."""

    def __init__(
        self,
        lines: list[str],
        wanted: Iterable[str],
        fold: Callable[[str], str],
        alphabet: int,
    ) -> None:
        self._fold = fold
        self._lines = lines if fold is same else [fold(line) for line in lines]
        distinct = dict.fromkeys(map(fold, wanted))
        self._codes = {text: chr(1 + rank % alphabet) for rank, text in enumerate(distinct)}
        code = self._codes.get
        self._text = "".join([code(line, "\0") for line in self._lines])
        self._present = frozenset(self._text)

    def find(self, pattern: Sequence[str], first: int) -> int | None:
        texts = [self._fold(text) for text in pattern]
        word = "".join([self._codes[text] for text in texts])
        if not self._present.issuperset(word):
            return None
        hit = self._text.find(word, first)
        # With more distinct lines than characters, the same word can stand for other lines.
        while hit >= 0 and self._lines[hit : hit + len(texts)] != texts:
            hit = self._text.find(word, hit + 1)
        return None if hit < 0 else hit
