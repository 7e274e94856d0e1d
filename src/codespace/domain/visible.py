"""Text as a person has to see it before they agree to it: nothing in it hides or turns around."""

import unicodedata
from collections.abc import Mapping
from typing import cast

_UNSEEN = frozenset({"Cc", "Cf", "Cn", "Co", "Cs", "Zl", "Zp", "Zs"})
_BLANK = frozenset("\u034f\u115f\u1160\u17b4\u17b5\u180b\u180c\u180d\u180f\u2800\u3164\uffa0")
"""Characters that are no spaces and no controls, and yet are shown as nothing."""


def visible(text: str, *, lines: bool = True) -> str:
    """Return the text with every control, bidi and zero-width character written as `<U+202E>`.

    Line feeds and tabs stay where `lines` are expected. A space other than the ordinary one is
    written out, too, since it separates no words.
    """
    kept = " \n\t" if lines else " "
    if text.isascii() and text.isprintable():
        return text
    return "".join(
        f"<U+{ord(character):04X}>" if character not in kept and _unseen(character) else character
        for character in text
    )


def visible_json(value: object, *, lines: bool = False) -> object:
    """Return a JSON value with each text in it made visible."""
    if isinstance(value, str):
        return visible(value, lines=lines)
    if isinstance(value, list):
        return [visible_json(item) for item in cast("list[object]", value)]
    if isinstance(value, Mapping):
        members = cast("Mapping[str, object]", value)
        return {visible(key, lines=False): visible_json(item) for key, item in members.items()}
    return value


def _unseen(character: str) -> bool:
    return (
        unicodedata.category(character) in _UNSEEN
        or character in _BLANK
        # Variation selectors.
        or "\ufe00" <= character <= "\ufe0f"
        or "\U000e0100" <= character <= "\U000e01ef"
    )
