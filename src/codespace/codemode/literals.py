"""Values of a JSON Schema (`const`, `enum`) as TypeScript types (pure)."""

import json
import math
from collections.abc import Sequence
from typing import cast

from codespace.codemode.json_values import Json, as_object
from codespace.codemode.typescript import (
    UNKNOWN,
    Array,
    Atom,
    Field,
    Record,
    Tuple,
    Type,
    choice,
    literal,
)
from codespace.domain.sizes import JSON_INTEGER_MAX

ENUM_MAX = 60
"""An enumeration shows this many of its values, and how many more there are."""
CHARS_MAX = 200
ITEMS_MAX = 20
DEPTH_MAX = 4


def constant(value: object, depth: int = 0) -> Type:
    """Return the type that `value` alone has, or a wider one where that would be too long."""
    match value:
        case None | bool():
            return Atom(json.dumps(value))
        case str():
            return Atom(literal(value) if len(value) <= CHARS_MAX else "string")
        case int():
            return Atom(str(value) if abs(value) <= JSON_INTEGER_MAX else "number")
        case float():
            return Atom(repr(value) if math.isfinite(value) else "number")
        case list() if depth < DEPTH_MAX:
            return _items(cast("list[object]", value), depth)
        case dict() if depth < DEPTH_MAX:
            return _fields(as_object(cast("object", value)), depth)
        case _:
            return UNKNOWN


def enumeration(values: Sequence[object]) -> Type:
    """Return the type of a value that is one of `values`."""
    shown = [constant(value) for value in values[:ENUM_MAX]]
    more = len(values) - ENUM_MAX
    if more > 0:
        word = "string" if all(isinstance(value, str) for value in values) else "unknown"
        shown.append(Atom(f"{word} /* {more} more */"))
    return choice(shown)


def _items(values: list[object], depth: int) -> Type:
    if len(values) > ITEMS_MAX:
        return Array(UNKNOWN)
    items = tuple(constant(value, depth + 1) for value in values)
    return Tuple(items, required=len(items), rest=None)


def _fields(value: Json, depth: int) -> Type:
    fields = [Field(name, constant(each, depth + 1), required=True) for name, each in value.items()]
    return Record(tuple(fields)) if len(fields) <= ITEMS_MAX else Record(())
