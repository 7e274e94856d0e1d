"""The type of results that were seen, for tools that promise none (pure)."""

from collections.abc import Mapping
from functools import reduce
from itertools import islice
from typing import cast

from codespace.codemode.typescript import (
    NULL,
    UNKNOWN,
    Array,
    Atom,
    Field,
    Record,
    Type,
    choice,
)

DEPTH_MAX = 5
FIELDS_MAX = 40
"""An object with more properties is taken for a map."""
ITEMS_MAX = 20
"""Items of an array that are looked at."""


def shape_of(value: object, depth: int = 0) -> Type:
    """Return the type of `value`, as far down as a reader wants to know."""
    if value is None:
        return NULL
    if isinstance(value, bool):
        return Atom("boolean")
    if isinstance(value, str):
        return Atom("string")
    if isinstance(value, int | float):
        return Atom("number")
    if depth >= DEPTH_MAX:
        return UNKNOWN
    if isinstance(value, Mapping):
        return _object(cast("Mapping[str, object]", value), depth)
    if isinstance(value, list | tuple):
        seen = islice(cast("list[object]", value), ITEMS_MAX)
        items = [shape_of(each, depth + 1) for each in seen]
        return Array(reduce(merged, items) if items else UNKNOWN)
    return UNKNOWN


def merged(first: Type, second: Type) -> Type:
    """Return a type that admits what was seen as `first` and as `second`."""
    if first == second:
        return first
    if isinstance(first, Record) and isinstance(second, Record):
        return _merged_records(first, second)
    if isinstance(first, Array) and isinstance(second, Array):
        if UNKNOWN in (first.item, second.item):  # one of them was empty
            return first if second.item == UNKNOWN else second
        return Array(merged(first.item, second.item))
    return choice([first, second])


def _object(value: Mapping[str, object], depth: int) -> Type:
    types = [(name, shape_of(each, depth + 1)) for name, each in islice(value.items(), FIELDS_MAX)]
    if len(value) > FIELDS_MAX:
        return Record((), reduce(merged, (kind for _, kind in types)))
    return Record(tuple(Field(name, kind, required=True) for name, kind in types))


def _merged_records(first: Record, second: Record) -> Type:
    if first.others is not None or second.others is not None:
        return first if first.others is not None else second
    left = {field.name: field for field in first.fields}
    right = {field.name: field for field in second.fields}
    fields = [_merged_field(left.get(name), right.get(name)) for name in {**left, **right}]
    return Record(tuple(fields[:FIELDS_MAX]))


def _merged_field(first: Field | None, second: Field | None) -> Field:
    if first is None or second is None:
        found = cast("Field", first or second)
        return Field(found.name, found.type, required=False)
    both_required = first.required and second.required
    return Field(first.name, merged(first.type, second.type), required=both_required)
