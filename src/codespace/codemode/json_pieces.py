"""A value out of a long JSON text, piece by piece (pure): nobody is held up by the whole of it."""

import json
from collections.abc import Generator

PIECE = 8_192
"""Characters that are decoded at once: well below a millisecond's work."""

Pieces = Generator[int, None, tuple[object, int]]
"""Yields how far it has come, and returns a value and where its text ends."""

_decode = json.JSONDecoder().raw_decode


def decoded(text: str, at: int = 0) -> Pieces:
    """Decode the value that begins at `at`. There are no blanks in the text.

    A text of its own counts as one piece, however long it is: it is only copied.

    Raises:
        ValueError: it is no JSON.
    """
    opening = text[at : at + 1]
    if opening not in ("[", "{"):
        return _decode(text, at)
    try:
        value, size = _decode(text[at : at + PIECE])
    except ValueError:
        yield at  # it goes on behind the piece
    else:
        return value, at + size
    return (yield from _array(text, at + 1) if opening == "[" else _object(text, at + 1))


def _array(text: str, at: int) -> Pieces:
    items: list[object] = []
    told = at
    while True:
        item, at = yield from decoded(text, at)
        items.append(item)
        if _ends(text, at, "]"):
            return items, at + 1
        at += 1
        if at - told > PIECE:
            told = at
            yield at


def _object(text: str, at: int) -> Pieces:
    members: dict[str, object] = {}
    told = at
    while True:
        name, at = _decode(text, at)
        if not isinstance(name, str) or text[at : at + 1] != ":":
            raise ValueError("an object's member has no name")
        members[name], at = yield from decoded(text, at + 1)
        if _ends(text, at, "}"):
            return members, at + 1
        at += 1
        if at - told > PIECE:
            told = at
            yield at


def _ends(text: str, at: int, closing: str) -> bool:
    following = text[at : at + 1]
    if following not in (closing, ","):
        raise ValueError(f"expected {closing} or a comma at {at}")
    return following == closing
