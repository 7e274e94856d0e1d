"""Whether a value fits a JSON Schema, judged by jsonschema; where it does not, and why.

Importing it is most of a cold start, so `checking` does that when a value first needs it. A schema
may be hostile, and so may the value: work and regular expressions are bounded, nothing is fetched,
and a schema that cannot be used checks nothing.
"""

import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextvars import ContextVar
from dataclasses import dataclass
from itertools import islice
from typing import Protocol, cast

from jsonschema import Draft202012Validator, validators
from jsonschema.exceptions import UnknownType, ValidationError
from referencing import Registry
from referencing.exceptions import Unresolvable

from codespace.codemode.json_values import Json, as_list, as_object, as_several
from codespace.codemode.misfit import SHOWN_MAX, Misfit, place

WORK_MAX = 200_000
"""Keywords that one check may look at: some seconds at worst, on a thread of its own."""
REFERENCE_COST = 10
"""A reference counts as so many keywords: finding its target takes that much longer."""
AT_ONCE_MAX = 200
"""The same for a check that holds up others: a few milliseconds."""
PATTERN_CHARS_MAX = 200
PATTERN_LOOPS_MAX = 2
MATCHED_CHARS_MAX = 1_000
"""A longer text is taken to match: a match may take time that grows with its square."""
SHOWN_CHARS = 200
DESCENTS_MAX = 20


class _Error(Protocol):
    """What is used of a ValidationError, which has no types of its own."""

    context: Sequence["_Error"]
    absolute_path: Iterable[object]
    absolute_schema_path: Iterable[object]
    validator: object
    validator_value: object
    instance: object


class _Validator(Protocol):
    """What is used of jsonschema's validators, which have no types of their own."""

    VALIDATORS: Mapping[str, "Keyword"]

    def __call__(self, schema: object, *, registry: object) -> "_Validator": ...

    def iter_errors(self, instance: object) -> Iterator[_Error]: ...

    def descend(
        self, instance: object, schema: object, *, path: object, schema_path: object = None
    ) -> Iterable[_Error]: ...


Keyword = Callable[[_Validator, object, object, Json], Iterable[_Error] | None]

_extend = cast(
    "Callable[[_Validator, Mapping[str, Keyword]], _Validator]",
    validators.extend,  # pyright: ignore[reportUnknownMemberType] -- it has no types
)
_validator_for = cast("Callable[[object, object], _Validator]", validators.validator_for)

_DOUBTFUL = frozenset({"oneOf", "not", "if", "contains", "dependentSchemas"})
"""Keywords that can fail because a part of them is fulfilled."""

_BROKEN = (
    ArithmeticError,
    AttributeError,
    LookupError,
    RecursionError,
    TypeError,
    UnknownType,
    Unresolvable,
    ValueError,
    re.error,
)
_LOOP = re.compile(r"[*+]|\{\d*,\}")


class _TooMuchWorkError(Exception):
    """The check would take too long."""


@dataclass(slots=True)
class _Work:
    left: int
    skipped: bool = False
    """A regular expression was not tried, so its keyword counts as fulfilled."""


_work: ContextVar[_Work] = ContextVar("work")


class SchemaCheck:
    """One schema, ready to judge values."""

    def __init__(self, schema: object) -> None:
        self._validator = _validator(schema)

    def misfits(self, value: object) -> list[Misfit]:
        """Return the first places where `value` does not fit; none for an unusable schema."""
        return self._judged(value, WORK_MAX) or []

    def misfits_at_once(self, value: object) -> list[Misfit] | None:
        """Return the same if that takes a few milliseconds; None: it takes longer."""
        return self._judged(value, AT_ONCE_MAX)

    def _judged(self, value: object, most: int) -> list[Misfit] | None:
        if self._validator is None:
            return []
        work = _Work(most)
        token = _work.set(work)
        try:
            errors = list(islice(self._validator.iter_errors(value), SHOWN_MAX))
        except _TooMuchWorkError:
            return None
        except _BROKEN:
            return []
        finally:
            _work.reset(token)
        sure = [each for each in errors if not (work.skipped and _doubtful(each))]
        return list(dict.fromkeys(misfit for each in sure for misfit in _told(each)))


def _validator(schema: object) -> _Validator | None:
    try:
        base = _validator_for(schema, Draft202012Validator)
        own = {**base.VALIDATORS, **_OWN}
        bounded = _extend(
            base, {name: _bounded(keyword, _cost(name)) for name, keyword in own.items()}
        )
        return bounded(schema, registry=_nothing_fetched())
    except _BROKEN:
        return None


def _nothing_fetched() -> object:
    return Registry()  # pyright: ignore[reportUnknownVariableType, reportUnknownArgumentType] -- a registry of nothing


def _cost(name: str) -> int:
    return REFERENCE_COST if name.endswith("Ref") or name == "$ref" else 1


def _bounded(keyword: Keyword, cost: int) -> Keyword:
    def run(
        validator: _Validator, value: object, instance: object, schema: Json
    ) -> Iterable[_Error] | None:
        work = _work.get()
        work.left -= cost
        if work.left < 0:
            raise _TooMuchWorkError
        return keyword(validator, value, instance, schema)

    return run


def _pattern(
    validator: _Validator, value: object, instance: object, schema: Json
) -> Iterator[_Error]:
    if isinstance(instance, str) and not _matches(value, instance):
        yield _plain_error()


def _pattern_properties(
    validator: _Validator, value: object, instance: object, schema: Json
) -> Iterator[_Error]:
    for pattern, subschema in as_object(value).items():
        for name, each in as_object(instance).items():
            if _matches(pattern, name):
                yield from validator.descend(each, subschema, path=name, schema_path=pattern)


def _additional_properties(
    validator: _Validator, value: object, instance: object, schema: Json
) -> Iterator[_Error]:
    known = as_object(schema.get("properties"))
    patterns = as_object(schema.get("patternProperties"))
    for name, each in as_object(instance).items():
        if name in known or any(_matches(pattern, name) for pattern in patterns):
            continue
        if value is False:
            yield _plain_error(name)
        else:
            yield from validator.descend(each, value, path=name)


def _unique_items(
    validator: _Validator, value: object, instance: object, schema: Json
) -> Iterator[_Error]:
    items = as_list(instance)
    if value is True and len({_canonical(each) for each in items}) < len(items):
        yield _plain_error()


_OWN: dict[str, Keyword] = {
    "pattern": _pattern,
    "patternProperties": _pattern_properties,
    "additionalProperties": _additional_properties,
    "uniqueItems": _unique_items,
}


def _matches(pattern: object, text: str) -> bool:
    if isinstance(pattern, str) and len(text) <= MATCHED_CHARS_MAX and _plain(pattern):
        try:
            return re.search(pattern, text) is not None
        except (re.error, RecursionError, OverflowError):
            pass
    _work.get().skipped = True
    return True


def _plain(pattern: str) -> bool:
    # A repeated group can make the engine try for ever; two loops cost the square at most.
    repeated = re.search(r"\)[*+?{]", pattern)
    return (
        not repeated
        and len(pattern) <= PATTERN_CHARS_MAX
        and len(_LOOP.findall(pattern)) <= PATTERN_LOOPS_MAX
    )


def _plain_error(*path: str) -> _Error:
    return cast("_Error", ValidationError("", path=path))


def _canonical(value: object) -> str:
    return json.dumps(value, sort_keys=True)


def _doubtful(error: _Error) -> bool:
    return not _DOUBTFUL.isdisjoint(str(part) for part in error.absolute_schema_path)


def _told(error: _Error) -> Iterator[Misfit]:
    for _ in range(DESCENTS_MAX):
        if not error.context:
            break
        # Of the alternatives, the one that got furthest was most likely meant.
        error = max(error.context, key=lambda each: len(list(each.absolute_path)))
    path = list(error.absolute_path)
    if error.validator == "required":
        have = as_object(error.instance)
        for name in as_list(error.validator_value):
            if name not in have:
                yield Misfit(place([*path, name]), "is required")
    elif error.validator in (None, "additionalProperties"):
        yield Misfit(place(path), "is not known here")
    else:
        yield Misfit(place(path), _demand(str(error.validator), error.validator_value))


def _demand(keyword: str, value: object) -> str:
    match keyword:
        case "type":
            return f"must be {' or '.join(str(word) for word in as_several(value))}"
        case "enum":
            return f"must be one of {_shown(value)}"
        case "const":
            return f"must be {_shown(value)}"
        case "anyOf" | "oneOf" | "not":
            return f"does not fit {keyword}"
        case _:
            return f"breaks {keyword}: {_shown(value)}"


def _shown(value: object) -> str:
    text = json.dumps(value, ensure_ascii=False, default=str)
    return text if len(text) <= SHOWN_CHARS else text[: SHOWN_CHARS - 1] + "…"
