"""A file as lines: texts and endings apart, and back with some lines replaced.

Which lines are replaced is decided in `placing`.
"""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

_ENDING = re.compile("(\r\n|\n|\r)")


@dataclass(frozen=True, slots=True)
class Lines:
    """A file's lines.

    Attributes:
        texts: the lines without their endings.
        preferred: the file's first ending, whatever the majority is; LF if it has none.
        endings: the ending of each line, empty for a last line without one; `None` when all are
            the preferred one.
    """

    texts: list[str]
    preferred: str
    endings: list[str] | None = None

    def between(self, start: int, stop: int) -> str:
        """Return the lines from `start` to before `stop` as text, each with an ending."""
        texts = self.texts[start:stop]
        if not texts:
            return ""
        if self.endings is None:
            return self.preferred.join(texts) + self.preferred
        endings = self.endings[start:stop]
        return "".join(
            [text + (ending or self.preferred) for text, ending in zip(texts, endings, strict=True)]
        )


@dataclass(frozen=True, slots=True)
class Edit:
    """The lines from `start` to before `stop` become `texts`. Indexes count from 0."""

    start: int
    stop: int
    texts: Sequence[str]


def split(text: str) -> Lines:
    """Cut a file's text at CRLF, LF and CR, and at nothing else."""
    ending = _only_ending(text)
    if ending is not None:
        texts, endings = text.split(ending), None
    else:
        parts = _ENDING.split(text)
        texts, endings, ending = parts[0::2], [*parts[1::2], ""], parts[1]
    if texts[-1] == "":
        texts.pop()
    return Lines(texts, ending, endings and endings[: len(texts)])


def rewritten(lines: Lines, edits: Iterable[Edit]) -> str:
    """Return the text with the edits made. Every line has an ending afterwards.

    Edits do not overlap. Those that start at the same line come out in the order given.
    """
    pieces: list[str] = []
    kept = 0
    for edit in sorted(edits, key=lambda edit: edit.start):
        pieces.append(lines.between(kept, edit.start))
        pieces += [text + lines.preferred for text in edit.texts]
        kept = edit.stop
    pieces.append(lines.between(kept, len(lines.texts)))
    return "".join(pieces)


def _only_ending(text: str) -> str | None:
    if "\r" not in text:
        return "\n"
    pairs = text.count("\r\n")
    return "\r\n" if pairs == text.count("\r") == text.count("\n") else None
