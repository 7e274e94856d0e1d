"""The word that was probably meant, for messages about one that is not known."""

import difflib
from collections.abc import Iterable

_LOOKED_AT_CHARS = 100


def near(word: str, known: Iterable[str], *, most: int = 1) -> list[str]:
    """Return the known words most like `word`, the best first; none when none is like it.

    Upper and lower case are the same.
    """
    folded = {each.casefold(): each for each in known}
    like = difflib.get_close_matches(word[:_LOOKED_AT_CHARS].casefold(), folded, n=most)
    return [folded[each] for each in like]


def meant(word: str, known: Iterable[str]) -> str:
    """Return a question to put behind a word that is not known, or nothing."""
    found = near(word, known)
    return f" (did you mean {found[0]}?)" if found else ""
