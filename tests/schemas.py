"""JSON Schema as a judge: whether a value fits, and values that do."""

import json
from collections.abc import Mapping
from typing import Protocol, cast

from hypothesis import strategies as st
from jsonschema import Draft202012Validator

Schema = Mapping[str, object]


ANYTHING: Schema = {"anyOf": [{"type": "null"}, {"type": "string"}, {"type": "integer"}]}
"""What stands for the parts of a value whose schema says nothing of them."""


class _Validator(Protocol):
    def is_valid(self, instance: object) -> bool: ...


def fits(schema: Schema, value: object) -> bool:
    """Say whether a value fits a schema, by a judge that is not ours."""
    try:
        json.dumps(value, allow_nan=False)
    except ValueError:
        return False  # NaN and infinity are no JSON
    return cast("_Validator", Draft202012Validator(dict(schema))).is_valid(value)


def values(schema: Schema) -> st.SearchStrategy[object]:
    """Return values that fit a schema of the kinds that our arguments have.

    Raises:
        NotImplementedError: the schema has a kind that nobody taught this function.
    """
    if "anyOf" in schema:
        return st.one_of(*(values(option) for option in cast("list[Schema]", schema["anyOf"])))
    match schema.get("type"):
        case "null":
            return st.none()
        case "boolean":
            return st.booleans()
        case "integer":
            lowest, highest = (cast("int", schema.get(key)) for key in ("minimum", "maximum"))
            whole = st.integers(lowest, highest)
            # JSON Schema calls 1.0 an integer, too.
            return whole | whole.filter(lambda number: abs(number) < 2**53).map(float)
        case "string":
            return _texts(schema)
        case "number":
            return st.integers() | st.floats(allow_nan=False, allow_infinity=False)
        case "array":
            return st.lists(values(cast("Schema", schema.get("items", ANYTHING))), max_size=3)
        case "object" if "properties" in schema:
            return _objects(schema)
        case "object":
            inner = values(_members(schema))
            return st.dictionaries(_texts({}), inner, max_size=3).map(lambda made: made)
        case kind:
            raise NotImplementedError(kind)


def _members(schema: Schema) -> Schema:
    inner = schema.get("additionalProperties", ANYTHING)
    return ANYTHING if inner is True else cast("Schema", inner)


def _objects(schema: Schema) -> st.SearchStrategy[object]:
    properties = cast("Mapping[str, Schema]", schema["properties"])
    required = set(cast("list[str]", schema.get("required", [])))
    return st.fixed_dictionaries(
        {name: values(inner) for name, inner in properties.items() if name in required},
        optional={
            name: values(inner) for name, inner in properties.items() if name not in required
        },
    ).map(lambda made: made)


def _texts(schema: Schema) -> st.SearchStrategy[object]:
    if "enum" in schema:
        return st.sampled_from(cast("list[object]", schema["enum"]))
    if "pattern" in schema:
        return st.from_regex(str(schema["pattern"]).replace("$", r"\Z"))
    least, most = (cast("int", schema.get(key, 0)) for key in ("minLength", "maxLength"))
    return st.text(min_size=least, max_size=min(most or 20, 20))
