"""Mistakes of who writes a harness, told where they were made and not in the first call (pure)."""

from collections.abc import Iterator, Mapping, Sequence
from typing import cast

from codespace.codemode.json_values import as_list, as_object, as_several

_TYPES = ("object", "array", "string", "number", "integer", "boolean", "null")
_MAPS = ("properties", "patternProperties", "$defs", "definitions", "dependentSchemas")
_LISTS = ("allOf", "anyOf", "oneOf", "prefixItems")
_SINGLE = ("items", "additionalProperties", "not", "if", "then", "else", "contains")
_LOOKED_AT_MAX = 10_000


def require(value: object, kinds: type | tuple[type, ...], *, what: str) -> None:
    """Let only a value of these kinds pass; `what` says what it should be.

    Raises:
        TypeError: it is another one. True and False are no numbers.
    """
    if isinstance(value, bool) or not isinstance(value, kinds):
        raise TypeError(f"{what}, not {_named(value)}")


def require_callable(value: object, *, what: str) -> None:
    """Let only what can be called pass; `what` says what it should be.

    Raises:
        TypeError: it cannot.
    """
    if not callable(value):
        raise TypeError(f"{what}, not {_named(value)}")


def require_all(values: object, kind: type, *, what: str) -> None:
    """Let only a sequence of values of one kind pass; `what` says what it should be.

    Raises:
        TypeError: it is none, or one of them is of another kind.
    """
    if isinstance(values, str) or not isinstance(values, Sequence):
        raise TypeError(f"{what}, not {_named(values)}")
    for value in cast("Sequence[object]", values):
        require(value, kind, what=what)


def require_schema(schema: object, *, what: str) -> None:
    """Let only what can be a JSON Schema pass; `what` says whose it is.

    Raises:
        TypeError: it is no object.
        ValueError: a type in it is none, so that it would check nothing.
    """
    require(schema, Mapping, what=f"{what} must be a JSON Schema, which is an object")
    waiting: list[object] = [schema]
    looked_at = 0
    while waiting and looked_at < _LOOKED_AT_MAX:
        looked_at += 1
        each = waiting.pop()
        for name in as_several(as_object(each).get("type", [])):
            if name not in _TYPES:
                raise ValueError(f"{what} has the type {name!r}; there are {', '.join(_TYPES)}")
        waiting += _parts(each)


def _parts(schema: object) -> Iterator[object]:
    keywords = as_object(schema)
    for name in _MAPS:
        yield from as_object(keywords.get(name)).values()
    for name in _LISTS:
        yield from as_list(keywords.get(name))
    yield from (keywords[name] for name in _SINGLE if name in keywords)


def _named(value: object) -> str:
    kind = type(value).__name__
    name: object = getattr(value, "__name__", None)
    return f"the {kind} {name}" if isinstance(name, str) else f"{kind}: {value!r:.60}"
