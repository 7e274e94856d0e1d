"""Hostile schemas and values cost little; places are named, values never."""

import time
from typing import cast

import pytest
from hypothesis import given

from codespace.codemode.misfit import Misfit, details_of, place
from codespace.codemode.schema_check import SchemaCheck
from doubles.json_schemas import schemas, values


def _nested(depth: int) -> object:
    value: object = 1
    for _ in range(depth):
        value = [value]
    return value


@pytest.mark.parametrize(
    ("schema", "value", "path", "problem"),
    [
        ({"type": "integer"}, "secret", "", "must be integer"),
        ({"type": ["integer", "null"]}, "secret", "", "must be integer or null"),
        ({"required": ["a", "b"]}, {"a": 1}, "b", "is required"),
        (
            {"properties": {"a": {"items": {"type": "string"}}}},
            {"a": ["x", 5]},
            "a.1",
            "must be string",
        ),
        ({"enum": ["a", "b"]}, "secret", "", 'must be one of ["a", "b"]'),
        ({"const": 5}, "secret", "", "must be 5"),
        ({"additionalProperties": False}, {"sec.ret": 1}, "sec.ret", "is not known here"),
        ({"minimum": 3}, 2, "", "breaks minimum: 3"),
        ({"pattern": "^[a-z]+$"}, "SECRET", "", 'breaks pattern: "^[a-z]+$"'),
        ({"uniqueItems": True}, [{"a": 1}, {"a": 1}], "", "breaks uniqueItems: true"),
        (
            {"oneOf": [{"type": "string"}, {"properties": {"a": {"enum": [1]}}}]},
            {"a": 5},
            "a",
            "must be one of [1]",
        ),
        ({"not": {}}, 1, "", "does not fit not"),
    ],
)
def test_a_misfit_names_the_place_and_never_the_value(
    schema: object, value: object, path: str, problem: str
) -> None:
    assert SchemaCheck(schema).misfits(value)[0] == Misfit(path, problem)


@pytest.mark.parametrize(
    "schema",
    [
        "nonsense",
        None,
        {"$ref": "#"},
        {"$ref": "#/nowhere"},
        {"$ref": "https://example.invalid/schema.json"},
        {"$schema": [], "type": "string"},
        {"type": 5},
        {"type": "file"},
        {"properties": [1]},
        {"minimum": "a"},
    ],
)
def test_a_schema_that_cannot_be_used_checks_nothing(schema: object) -> None:
    assert SchemaCheck(schema).misfits({"a": 1}) == []
    assert SchemaCheck(schema).misfits(5) == []


@given(schemas, values)
def test_no_schema_and_no_value_make_it_fail(schema: object, value: object) -> None:
    SchemaCheck(schema).misfits(value)


TWICE = {"items": {"$ref": "#/$defs/a"}}
HOSTILE: dict[str, tuple[object, object]] = {
    "a loop in a loop": ({"pattern": "^(a+)+$"}, "a" * 60 + "b"),
    "a loop for each property": ({"patternProperties": {"(x*)*y": True}}, {"x" * 60: 1}),
    "a pattern on a long text": ({"pattern": ".*.*="}, "a" * 300_000),
    "alternatives of alternatives": (
        {"$ref": "#/$defs/a", "$defs": {"a": {"type": "array", "anyOf": [TWICE, TWICE]}}},
        _nested(60),
    ),
    "many items to compare": ({"uniqueItems": True}, [{"n": number} for number in range(30_000)]),
}


@pytest.mark.parametrize(("schema", "value"), HOSTILE.values(), ids=HOSTILE.keys())
def test_a_hostile_schema_cannot_take_long(schema: object, value: object) -> None:
    started = time.thread_time()

    SchemaCheck(schema).misfits(value)

    assert time.thread_time() - started < 20  # without the bounds: days


def test_a_pattern_that_was_not_tried_refuses_nobody() -> None:
    schema = {"oneOf": [{"pattern": "^(a|b)+$"}, {"maxLength": 100}]}

    assert SchemaCheck(schema).misfits("xyz") == []


def test_old_drafts_are_known() -> None:
    schema = {
        "$schema": "http://json-schema.org/draft-04/schema#",
        "minimum": 3,
        "exclusiveMinimum": True,
    }

    assert SchemaCheck(schema).misfits(3) == [Misfit("", "breaks minimum: 3")]


def test_details_have_the_first_place_and_a_few_more() -> None:
    many = [Misfit(place(["a", number]), "is wrong") for number in range(50)]
    details = details_of(many)

    assert details["path"] == "a.0"
    assert len(cast("list[object]", details["problems"])) == 20
    assert place(["a\n", "x" * 500]) == "a\\n." + "x" * 100
    assert Misfit("", "is wrong").sentence == "the value is wrong"


def test_at_once_a_check_gives_up_sooner() -> None:
    check = SchemaCheck({"items": {"type": "integer"}})

    assert check.misfits_at_once([1, 2]) == []
    assert [each.path for each in check.misfits_at_once([1, "x"]) or []] == ["1"]
    assert check.misfits_at_once([*range(5_000), "x"]) is None
    assert [each.path for each in check.misfits([*range(5_000), "x"])] == ["5000"]
