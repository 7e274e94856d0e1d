"""Where lines that are not in a file almost stand, so that a patch can be mended in one step.

The work is bounded, whatever the file: a good place is good enough here.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from itertools import islice

from codespace.patching.matching import Finder, folded
from codespace.patching.refusal import cut

_VOTERS = 400
_VOTES_OF_ONE_LINE = 100
_TIES = 20
_LIKE_LINES = 2_000
_LIKE_RATIO = 0.6


@dataclass(frozen=True, slots=True)
class Nearest:
    """A place, and the first line there that differs.

    `place` is the index in the file of the first line that the pattern would take; of the
    pattern's lines, the first `agreeing` are there. `found` is `None` where the file ends.
    """

    place: int
    agreeing: int
    expected: str
    found: str | None

    @property
    def details(self) -> dict[str, object]:
        """The place as a client sees it; lines count from 1, long texts are cut."""
        return {
            "line": self.place + 1,
            "matched_lines": self.agreeing,
            "expected": cut(self.expected),
            "found": None if self.found is None else cut(self.found),
        }


def nearest(finder: Finder, pattern: Sequence[str], start: int, *, eof: bool) -> Nearest:
    """Return the place at or after `start` that needs the least mending.

    Only for a pattern that `finder` did not find there: some line differs.
    """
    if eof:
        place = max(start, len(finder.lines) - len(pattern))
    else:
        place = _voted(finder, pattern, start)
        if place is None:
            place = _alike(finder.lines, pattern, start)
    agreeing = _agreeing(finder.lines, pattern, place)
    at = place + agreeing
    return Nearest(
        place=place,
        agreeing=agreeing,
        expected=pattern[agreeing],
        found=finder.lines[at] if at < len(finder.lines) else None,
    )


def _voted(finder: Finder, pattern: Sequence[str], start: int) -> int | None:
    """Let each line of the pattern vote for the places that would put it right."""
    votes: Counter[int] = Counter()
    for index, text in enumerate(pattern[:_VOTERS]):
        # Blank lines are everywhere: they would outvote the lines that say something.
        if folded(text):
            hits = finder.occurrences(text, start + index, _VOTES_OF_ONE_LINE)
            votes.update([hit - index for hit in hits])
    if not votes:
        return None
    most = max(votes.values())
    ties = islice((place for place in sorted(votes) if votes[place] == most), _TIES)
    return max(ties, key=lambda place: _agreeing(finder.lines, pattern[:_VOTERS], place))


def _alike(lines: Sequence[str], pattern: Sequence[str], start: int) -> int:
    """Return the place that puts the pattern's longest line at the line most like it."""
    index = max(range(len(pattern)), key=lambda index: len(folded(pattern[index])))
    matcher: SequenceMatcher[str] = SequenceMatcher(autojunk=False)
    matcher.set_seq2(cut(folded(pattern[index])))
    best, place = _LIKE_RATIO, start
    for number, line in enumerate(lines[start + index : start + index + _LIKE_LINES], start):
        matcher.set_seq1(cut(folded(line)))
        # The two cheap bounds come first; the exact ratio is quadratic.
        if matcher.real_quick_ratio() > best and matcher.quick_ratio() > best:
            ratio = matcher.ratio()
            if ratio > best:
                best, place = ratio, number
    return place


def _agreeing(lines: Sequence[str], pattern: Sequence[str], place: int) -> int:
    count = 0
    for line, text in zip(lines[place : place + len(pattern)], pattern, strict=False):
        if folded(line) != folded(text):
            break
        count += 1
    return count
