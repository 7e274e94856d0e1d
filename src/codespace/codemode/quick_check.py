"""A fast yes for values that plainly fit a plain schema (pure).

A compiled check that says yes is right; one that says no, or a schema that has none, leaves the
judgement to `schema_check`, which takes many times as long.
"""

import operator
from collections.abc import Callable, Mapping, Sequence
from typing import cast

from codespace.codemode.json_values import Json, as_list, as_object_or_none, as_several
from codespace.codemode.references import References

Check = Callable[[object], bool]

SUBSCHEMAS_MAX = 300
"""Subschemas of one check, references followed."""
DEPTH_MAX = 30
"""Levels of subschemas; one that refers to itself has more."""

_ANNOTATIONS = frozenset(
    (
        "$comment",
        "$defs",
        "$schema",
        "default",
        "definitions",
        "deprecated",
        "description",
        "examples",
        "format",
        "readOnly",
        "title",
        "writeOnly",
    )
)


_PLAIN_OBJECT = frozenset(("type", "properties", "required", "additionalProperties"))


class _TooMuchError(Exception):
    """The schema has something that a quick check does not know, or is too large."""


def quick_check(schema: object) -> Check | None:
    """Return a check for `schema`, or None when it is not plain enough."""
    try:
        return _Compiler(schema).compile(schema)
    except _TooMuchError:
        return None


class _Compiler:
    def __init__(self, root: object) -> None:
        self._references = References(root)
        self._left = SUBSCHEMAS_MAX
        self._depth = 0
        self._keywords: Mapping[str, Callable[[object, Json], Check | None]] = {
            "type": _type,
            "enum": _enum,
            "const": lambda value, _: _enum([value], {}),
            "minimum": lambda value, _: _bound(value, operator.ge),
            "maximum": lambda value, _: _bound(value, operator.le),
            "exclusiveMinimum": lambda value, _: _bound(value, operator.gt),
            "exclusiveMaximum": lambda value, _: _bound(value, operator.lt),
            "minLength": lambda value, _: _length(value, operator.ge),
            "maxLength": lambda value, _: _length(value, operator.le),
            "minItems": lambda value, _: _count(value, operator.ge),
            "maxItems": lambda value, _: _count(value, operator.le),
            "required": _required,
            "properties": self._properties,
            "additionalProperties": self._additional,
            "items": lambda value, _: self._items(value),
            "allOf": lambda value, _: _all(self._several(value)),
            "anyOf": lambda value, _: _any(self._several(value)),
            "$ref": lambda value, _: self._reference(value),
        }

    def compile(self, schema: object) -> Check:
        self._left -= 1
        self._depth += 1
        if self._left < 0 or self._depth > DEPTH_MAX:
            raise _TooMuchError
        check = self._compile(schema)
        self._depth -= 1
        return check

    def _compile(self, schema: object) -> Check:
        if isinstance(schema, bool):
            return (lambda value: True) if schema else (lambda value: False)  # noqa: ARG005 -- they are checks
        given = as_object_or_none(schema)
        if given is None:
            raise _TooMuchError
        words = given.keys() - _ANNOTATIONS
        more = given.get("additionalProperties", True)
        if words <= _PLAIN_OBJECT and given.get("type") == "object" and isinstance(more, bool):
            return self._plain_object(given, more=more)
        checks = [self._keyword(name, given) for name in given if name in words]
        return _all([check for check in checks if check is not None])

    def _plain_object(self, schema: Json, *, more: bool) -> Check:
        # What nearly every schema of arguments and results is: one function in place of four.
        properties = as_object_or_none(schema.get("properties", {}))
        needed = as_list(schema.get("required", []))
        if properties is None or not isinstance(schema.get("required", []), list):
            raise _TooMuchError
        parts = {name: self.compile(each) for name, each in properties.items()}
        names = {name for name in needed if isinstance(name, str)}
        if len(names) < len(set(map(str, needed))):
            raise _TooMuchError
        members = [
            (
                name,
                _exact(properties.get(name)) | (_NEVER if name in names else _OPTIONAL),
                parts.get(name, _anything),
            )
            for name in [*names, *(parts.keys() - names)]
        ]
        known = None if more else parts.keys()

        def check(value: object) -> bool:
            found = as_object_or_none(value)
            if found is None:
                return False
            for name, kinds, accepts in members:
                each = found.get(name, _ABSENT)
                if type(each) not in kinds and (each is _ABSENT or not accepts(each)):
                    return False
            return known is None or found.keys() <= known

        return check

    def _keyword(self, name: str, schema: Json) -> Check | None:
        maker = self._keywords.get(name)
        if maker is None:
            raise _TooMuchError
        return maker(schema[name], schema)

    def _several(self, schemas: object) -> list[Check]:
        return [self.compile(each) for each in _nonempty(schemas)]

    def _reference(self, reference: object) -> Check:
        if not isinstance(reference, str) or not reference.startswith("#/"):
            raise _TooMuchError
        return self.compile(self._references.find(reference))

    def _items(self, schema: object) -> Check:
        check, kinds = self.compile(schema), _exact(schema)
        if not kinds:
            return lambda value: all(map(check, as_list(value)))

        def check_all(value: object) -> bool:
            items = as_list(value)
            return kinds.issuperset(map(type, items)) or all(map(check, items))

        return check_all

    def _properties(self, value: object, schema: Json) -> Check:
        given = as_object_or_none(value)
        if given is None:
            raise _TooMuchError
        checks = [(name, self.compile(each)) for name, each in given.items()]

        def check(value: object) -> bool:
            found = as_object_or_none(value)
            if found is not None:
                for name, accepts in checks:
                    if name in found and not accepts(found[name]):
                        return False
            return True

        return check

    def _additional(self, value: object, schema: Json) -> Check | None:
        if value is True:
            return None
        known = as_object_or_none(schema.get("properties", {}))
        if known is None or "patternProperties" in schema:
            raise _TooMuchError
        rest = self.compile(value)

        def check(value: object) -> bool:
            found = as_object_or_none(value)
            return found is None or all(rest(found[name]) for name in found if name not in known)

        return check


def _type(value: object, schema: Json) -> Check:
    words = as_several(value)
    checks = [_TYPES.get(word) if isinstance(word, str) else None for word in words]
    known = [check for check in checks if check is not None]
    if not known or len(known) != len(checks):
        raise _TooMuchError
    return known[0] if len(known) == 1 else _any(known)


class _Absent:
    """The type of a member that an object does not have."""


_ABSENT = _Absent()
_OPTIONAL: frozenset[type] = frozenset((_Absent,))
_NEVER: frozenset[type] = frozenset()


def _exact(schema: object) -> frozenset[type]:
    """Return the types whose instances all fit, where a look at the type is enough."""
    given = as_object_or_none(schema)
    if given is None or given.keys() - _ANNOTATIONS != {"type"}:
        return _NEVER
    words = as_several(given["type"])
    return frozenset(kind for word in words for kind in _EXACT.get(str(word), ()))


_EXACT: Mapping[str, Sequence[type]] = {
    "string": (str,),
    "number": (int, float),
    "integer": (int,),
    "boolean": (bool,),
    "null": (type(None),),
    "array": (list,),
    "object": (dict,),
}


def _anything(value: object) -> bool:
    return True


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _is_integer(value: object) -> bool:
    if isinstance(value, int):
        return not isinstance(value, bool)
    return isinstance(value, float) and value.is_integer()


_TYPES: Mapping[str, Check] = {
    "string": lambda value: isinstance(value, str),
    "number": _is_number,
    "integer": _is_integer,
    "boolean": lambda value: isinstance(value, bool),
    "null": lambda value: value is None,
    "array": lambda value: isinstance(value, list),
    "object": lambda value: isinstance(value, dict),
}


def _enum(value: object, schema: Json) -> Check:
    options = _nonempty(value)
    if not all(option is None or isinstance(option, str | int | float) for option in options):
        raise _TooMuchError
    # To Python True is 1; to JSON it is not.
    known = {(isinstance(option, bool), option) for option in options}
    return lambda value: (
        (value is None or isinstance(value, str | int | float))
        and (isinstance(value, bool), value) in known
    )


def _bound(limit: object, holds: Callable[[float, float], bool]) -> Check:
    if isinstance(limit, bool) or not isinstance(limit, int | float):
        raise _TooMuchError
    return lambda value: (
        not isinstance(value, int | float) or isinstance(value, bool) or holds(value, limit)
    )


def _length(limit: object, holds: Callable[[int, int], bool]) -> Check:
    if isinstance(limit, bool) or not isinstance(limit, int):
        raise _TooMuchError
    return lambda value: not isinstance(value, str) or holds(len(value), limit)


def _count(limit: object, holds: Callable[[int, int], bool]) -> Check:
    if isinstance(limit, bool) or not isinstance(limit, int):
        raise _TooMuchError
    return lambda value: (
        not isinstance(value, list) or holds(len(as_list(cast("object", value))), limit)
    )


def _required(value: object, schema: Json) -> Check | None:
    names = as_list(value)
    if not isinstance(value, list) or not all(isinstance(name, str) for name in names):
        raise _TooMuchError

    def check(value: object) -> bool:
        found = as_object_or_none(value)
        if found is not None:
            for name in names:
                if name not in found:
                    return False
        return True

    return check if names else None


def _nonempty(value: object) -> Sequence[object]:
    found = as_list(value)
    if not found:
        raise _TooMuchError
    return found


def _all(checks: list[Check]) -> Check:
    if len(checks) == 1:
        return checks[0]

    def check(value: object) -> bool:
        for each in checks:  # noqa: SIM110 -- `all` would make a generator for each value
            if not each(value):
                return False
        return True

    return check


def _any(checks: list[Check]) -> Check:
    return lambda value: any(check(value) for check in checks)
