"""JSON of unknown making, looked at without trust (pure).

These run for every part of every value, so they return what they were given without a `cast`,
which would be a call.
"""

from collections.abc import Iterable, Mapping, Sequence
from math import isfinite

Json = Mapping[str, object]

DEPTH_MAX = 100
"""Parsers that clients use refuse JSON of 128 levels, and the envelope has some of its own."""

_NOTHING: Mapping[str, object] = {}


def as_object(value: object) -> Json:
    """Return `value` if it is an object, else an empty one."""
    return value if isinstance(value, dict) else _NOTHING  # pyright: ignore[reportUnknownVariableType] -- JSON


def as_object_or_none(value: object) -> Json | None:
    """Return `value` if it is an object."""
    return value if isinstance(value, dict) else None  # pyright: ignore[reportUnknownVariableType] -- JSON


def as_list(value: object) -> Sequence[object]:
    """Return `value` if it is an array, else an empty one."""
    return value if isinstance(value, list) else ()  # pyright: ignore[reportUnknownVariableType] -- JSON


def as_several(value: object) -> Sequence[object]:
    """Return `value` if it is an array, else an array of it alone."""
    return value if isinstance(value, list) else (value,)  # pyright: ignore[reportUnknownVariableType] -- JSON


def as_text(value: object) -> str:
    """Return `value` if it is a string, else an empty one."""
    return value if isinstance(value, str) else ""


def is_too_deep(value: object) -> bool:
    """Say whether arrays and objects are nested deeper than clients can take."""
    level: Iterable[object] = (value,)
    for _ in range(DEPTH_MAX):
        level = [part for each in level for part in _parts(each) if _holds(part)]
        if not level:
            return False
    return True


def has_only_numbers_of_json(value: object) -> bool:
    """Say that there is no NaN and no infinity in it."""
    waiting = [value]
    while waiting:
        each = waiting.pop()
        if isinstance(each, float) and not isfinite(each):
            return False
        waiting += _parts(each)
    return True


def _holds(value: object) -> bool:
    return isinstance(value, dict | list)


def _parts(value: object) -> Iterable[object]:
    members = as_object_or_none(value)
    return as_list(value) if members is None else members.values()
