"""Mistakes are told where they are made, with what was expected and what was given."""

import pytest

from codespace.codemode.misuse import require, require_all, require_callable, require_schema


def given() -> None:
    """Stand for a function that is given in place of something else."""


@pytest.mark.parametrize(
    ("value", "said"),
    [
        (given, "the function given"),
        (int, "the type int"),
        (b"x", "bytes: b'x'"),
        (True, "bool: True"),
        (None, "NoneType: None"),
        ("x" * 1000, "str: 'xxx"),
    ],
)
def test_what_was_given_is_named(value: object, said: str) -> None:
    with pytest.raises(TypeError, match=f"it must be a number, not {said}") as caught:
        require(value, (int, float), what="it must be a number")
    assert len(str(caught.value)) < 120


def test_what_cannot_be_called_is_no_function() -> None:
    with pytest.raises(TypeError, match="a function, not str: 'f'"):
        require_callable("f", what="a function")


def test_what_fits_passes() -> None:
    require(1.5, (int, float), what="")
    require_callable(given, what="")
    require_all([1, 2], int, what="")
    require_all((), int, what="")


@pytest.mark.parametrize("values", [[1, "2"], "12", 5, None, {1: 2}, iter([1])])
def test_a_list_of_something_else_is_none(values: object) -> None:
    with pytest.raises(TypeError, match="must be numbers, not "):
        require_all(values, int, what="they must be numbers")


NOPE = {"type": "nope"}


@pytest.mark.parametrize(
    "schema",
    [
        NOPE,
        {"type": ["object", "nope"]},
        {"type": 5},
        {"properties": {"a": NOPE}},
        {"items": {"anyOf": [{}, NOPE]}},
        {"additionalProperties": NOPE},
        {"$defs": {"a": {"prefixItems": [True, NOPE]}}},
    ],
)
def test_a_type_that_is_none_is_refused_wherever_it_stands(schema: object) -> None:
    with pytest.raises(ValueError, match=r"^it has the type .* there are object, array, "):
        require_schema(schema, what="it")


@pytest.mark.parametrize(
    "schema",
    [
        {},
        {"type": ["object", "null"], "properties": {"type": {"type": "string"}}},
        {"enum": [NOPE], "const": NOPE, "default": NOPE, "examples": [NOPE]},
        {"additionalProperties": False, "items": True, "x-own": NOPE},
    ],
)
def test_data_and_unknown_keywords_in_a_schema_are_nobodys_matter(schema: object) -> None:
    require_schema(schema, what="it")


@pytest.mark.parametrize("schema", [5, [], "object", True])
def test_what_is_no_object_is_no_schema(schema: object) -> None:
    with pytest.raises(TypeError, match="it must be a JSON Schema"):
        require_schema(schema, what="it")
