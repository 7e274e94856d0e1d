"""A quick yes must never be wrong: jsonschema is asked about each."""

from typing import cast

import pytest
from hypothesis import given
from hypothesis import strategies as st
from jsonschema import Draft202012Validator
from referencing import Registry

from codespace.codemode.quick_check import quick_check
from doubles.json_schemas import values

scalars = st.none() | st.booleans() | st.integers(-3, 3) | st.sampled_from([0.5, 1.0, "", "a", "b"])
small = st.recursive(
    scalars,
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from("ab"), inner, max_size=2)
    ),
    max_leaves=5,
)
types = st.sampled_from(["string", "number", "integer", "boolean", "null", "array", "object"])


def _schemas(inner: st.SearchStrategy[object]) -> st.SearchStrategy[object]:
    keywords: dict[str, st.SearchStrategy[object]] = {
        "type": types | st.lists(types, min_size=1, max_size=3, unique=True),
        "properties": st.dictionaries(st.sampled_from("ab"), inner, max_size=2),
        "required": st.lists(st.sampled_from("ab"), max_size=2, unique=True),
        "additionalProperties": inner,
        "items": inner,
        "enum": st.lists(scalars, min_size=1, max_size=3),
        "const": scalars,
        "minimum": st.integers(-2, 2),
        "exclusiveMaximum": st.integers(-2, 2),
        "minLength": st.integers(0, 2),
        "maxItems": st.integers(0, 2),
        "anyOf": st.lists(inner, min_size=1, max_size=2),
        "allOf": st.lists(inner, min_size=1, max_size=2),
        "$ref": st.sampled_from(["#/$defs/x"]),
        "$defs": st.fixed_dictionaries({"x": inner}),
        "description": st.just("words"),
    }
    return st.lists(st.sampled_from(sorted(keywords)), max_size=4, unique=True).flatmap(
        lambda names: st.fixed_dictionaries({name: keywords[name] for name in names})
    )


schemas: st.SearchStrategy[object] = st.recursive(st.booleans(), _schemas, max_leaves=6)


@given(schemas, st.lists(small | values, min_size=1, max_size=6))
def test_a_quick_yes_is_also_a_yes_of_jsonschema(schema: object, tried: list[object]) -> None:
    check = quick_check(schema)
    judge = Draft202012Validator(cast("dict[str, object]", schema), registry=Registry())

    for value in tried:
        if check is not None and check(value):
            assert judge.is_valid(value)  # pyright: ignore[reportUnknownMemberType, reportArgumentType] -- it has no types


ISSUE = {
    "type": "object",
    "properties": {
        "title": {"type": "string", "minLength": 1, "description": "The title."},
        "labels": {"type": "array", "items": {"$ref": "#/$defs/Label"}},
        "limit": {"anyOf": [{"type": "integer", "maximum": 9}, {"type": "null"}], "default": None},
    },
    "required": ["title"],
    "additionalProperties": False,
    "$defs": {"Label": {"enum": ["bug", "docs"]}},
}


@pytest.mark.parametrize(
    ("value", "fits"),
    [
        ({"title": "t", "labels": ["bug"], "limit": 9}, True),
        ({"title": "t", "limit": None}, True),
        ({"title": ""}, False),
        ({"title": "t", "labels": ["other"]}, False),
        ({"title": "t", "limit": 10}, False),
        ({"title": "t", "limit": True}, False),
        ({"title": "t", "more": 1}, False),
        ({"labels": []}, False),
        ([], False),
    ],
)
def test_the_usual_schema_has_a_quick_check(value: object, fits: bool) -> None:  # noqa: FBT001 -- a column of the table
    check = quick_check(ISSUE)

    assert check is not None
    assert check(value) is fits


@pytest.mark.parametrize(
    "schema",
    [
        {"pattern": "a"},
        {"oneOf": [True]},
        {"$ref": "#"},
        {"$ref": "#/$defs/x", "$defs": {"x": {"items": {"$ref": "#/$defs/x"}}}},
        {"$ref": "elsewhere.json"},
        {"type": "file"},
        {"type": []},
        {"enum": [[1]]},
        {"required": "a"},
        {"properties": 5},
        {"minimum": "1"},
        {"anyOf": []},
        {"$id": "x"},
        "nonsense",
    ],
)
def test_a_schema_that_is_not_plain_has_none(schema: object) -> None:
    assert quick_check(schema) is None
