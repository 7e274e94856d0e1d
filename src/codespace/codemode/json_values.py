"""JSON of unknown making, looked at without trust (pure)."""

from collections.abc import Mapping, Sequence
from typing import cast

Json = Mapping[str, object]

_NOTHING: Mapping[str, object] = {}


def as_object(value: object) -> Json:
    """Return `value` if it is an object, else an empty one."""
    return cast("Json", value) if isinstance(value, dict) else _NOTHING


def as_object_or_none(value: object) -> Json | None:
    """Return `value` if it is an object."""
    return cast("Json", value) if isinstance(value, dict) else None


def as_list(value: object) -> Sequence[object]:
    """Return `value` if it is an array, else an empty one."""
    return cast("list[object]", value) if isinstance(value, list) else ()


def as_several(value: object) -> Sequence[object]:
    """Return `value` if it is an array, else an array of it alone."""
    return cast("list[object]", value) if isinstance(value, list) else (value,)


def as_text(value: object) -> str:
    """Return `value` if it is a string, else an empty one."""
    return value if isinstance(value, str) else ""
