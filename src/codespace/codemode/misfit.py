"""A place where a value does not fit its schema (pure). It names the place, never the value."""

from collections.abc import Iterable, Sequence
from typing import NamedTuple

SHOWN_MAX = 20
PART_CHARS = 100


class Misfit(NamedTuple):
    """One place."""

    path: str
    """Names and numbers joined by dots; empty for the value as a whole."""
    problem: str

    @property
    def sentence(self) -> str:
        """The place and what is wrong there."""
        return f"{self.path or 'the value'} {self.problem}"


def place(parts: Iterable[object]) -> str:
    """Return a path. A property's name may be anything, so it is escaped and cut."""
    return ".".join(repr(str(part)[:PART_CHARS])[1:-1] for part in parts)


def details_of(misfits: Sequence[Misfit]) -> dict[str, object]:
    """Return the places as the details of an error."""
    shown = [{"path": each.path, "problem": each.problem} for each in misfits[:SHOWN_MAX]]
    return {"path": misfits[0].path, "problems": shown}
