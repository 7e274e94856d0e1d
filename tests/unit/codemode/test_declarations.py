"""Declarations are what a script's author reads; the real compiler reads them here."""

from pathlib import Path
from typing import cast

import pytest
from hypothesis import Phase, given, settings

from codespace.codemode.declarations import (
    CHARS_MAX,
    Declaration,
    Listed,
    catalogue_text,
    declare,
    together,
    tokens,
)
from codespace.codemode.json_values import Json
from codespace.codemode.typescript import Atom, Field, Record
from doubles.json_schemas import schemas
from programs.compiler import complaints

LABEL: Json = {"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]}
NODE: Json = {
    "type": "object",
    "properties": {
        "children": {"type": "array", "items": {"$ref": "#/$defs/Node"}},
        "parent": {"anyOf": [{"$ref": "#/$defs/Node"}, {"type": "null"}]},
    },
}


def _inputs(**properties: object) -> Json:
    return {"type": "object", "properties": properties}


def _huge() -> Json:
    layer: dict[str, object] = {"type": "string"}
    definitions: dict[str, object] = {}
    for number in range(60):
        definitions[f"d{number}"] = layer
        twice = {"$ref": f"#/$defs/d{number}"}
        layer = {"type": "object", "properties": {"left": twice, "right": twice}}
    wide = {f"p{number}": {"type": "string", "description": "word " * 50} for number in range(5000)}
    return {"type": "object", "properties": {"tree": layer, **wide}, "$defs": definitions}


def _deep() -> Json:
    schema: dict[str, object] = {"type": "string"}
    for _ in range(400):
        schema = {"type": "array", "items": schema}
    return schema


HORRORS: dict[str, object] = {
    "boolean true": True,
    "boolean false": False,
    "refers to itself": {"$ref": "#"},
    "refers to itself beside itself": {"anyOf": [{"$ref": "#"}, {"type": "string"}]},
    "refers to itself through a map": {"additionalProperties": {"$ref": "#"}},
    "a circle of two": {
        "$ref": "#/$defs/a",
        "$defs": {"a": {"$ref": "#/$defs/b"}, "b": {"allOf": [{"$ref": "#/$defs/a"}]}},
    },
    "a reference to nowhere": {"properties": {"a": {"$ref": "#/$defs/none"}}},
    "a reference elsewhere": {"properties": {"a": {"$ref": "https://example.com/s.json#/x"}}},
    "a reference that is no text": {"$ref": 5},
    "a reference that is no address": {"$ref": "http://[broken#/%zz"},
    "an index beyond digits": {"$ref": "#/anyOf/" + "9" * 6000},
    "recursion": {"$ref": "#/$defs/Node", "$defs": {"Node": NODE}},
    "dynamic recursion": {"$dynamicAnchor": "n", "properties": {"kid": {"$dynamicRef": "#n"}}},
    "nothing but required": {"required": ["a", 5, "b"]},
    "keywords of the wrong kind": {"type": 5, "properties": [1], "required": "a", "enum": {}},
    "a comment that ends comments": _inputs(a={"description": "*/ } evil /* \u2028 \ud800"}),
    "names that are no names": _inputs(**{"x-y": True, "": True, 'q"\n': True, "*/": True}),
    "values of every kind": {"enum": ["a", 1, -1.5, True, None, [1, [2]], {"k": "v"}, 10**30]},
    "a long enumeration": {"enum": [f"value {number}" for number in range(500)]},
    "not a number": {"const": float("nan")},
    "a tuple that is open": {"prefixItems": [{"type": "string"}], "items": {"type": "number"}},
    "a tuple that is closed": {"prefixItems": [{"enum": ["a", "b"]}, True], "items": False},
    "an old tuple": {"items": [{"type": "string"}], "additionalItems": False, "minItems": 3},
    "a tuple of negative size": {"prefixItems": [True], "minItems": -3},
    "both kinds of properties": {
        "properties": {"a": {"type": "string"}},
        "additionalProperties": {"type": "number"},
        "patternProperties": {"^x": {"type": "boolean"}},
    },
    "tuples and arrays of both kinds of properties": {
        "prefixItems": [
            {"properties": {"a": {"type": "array"}}, "additionalProperties": {"type": "number"}}
        ],
        "items": {"properties": {"b": True}, "additionalProperties": {"type": "string"}},
    },
    "any of, one of, all of": {
        "allOf": [{"properties": {"a": {"const": 1}}}, {"required": ["b"]}],
        "anyOf": [{"type": "string"}, {"type": ["array", "null"]}],
        "oneOf": [],
    },
    "itself, inside and beside": {
        "additionalProperties": {"$ref": "#"},
        "allOf": [{"$ref": "#"}],
    },
    "itself beside itself, by way of another": {
        "properties": {"b": {"$ref": "#/$defs/b"}},
        "allOf": [{"$ref": "#/$defs/b"}],
        "$defs": {"b": {"anyOf": [{"$ref": "#"}, {"type": "null"}]}},
    },
    "very deep": _deep(),
    "very large": _huge(),
}


@pytest.mark.parametrize("schema", HORRORS.values(), ids=HORRORS.keys())
def test_a_horror_from_the_wild_is_still_declared_in_few_words(schema: object) -> None:
    found = declare("t", input_schema=cast("Json", schema), output_schema=cast("Json", schema))

    assert "t(" in found.signature
    assert found.chars <= CHARS_MAX


@pytest.mark.slow
def test_all_declarations_are_typescript_to_the_real_compiler(tmp_path: Path) -> None:
    made = [
        declare(name, description=title, input_schema=cast("Json", schema), output_schema=NODE)
        for title, schema in HORRORS.items()
        for name in ("plain", "new", "constructor", "delete", "日本語")
    ]

    @settings(max_examples=400, phases=[Phase.generate], database=None)
    @given(schemas, schemas)
    def make(first: object, second: object) -> None:
        made.append(
            declare("t", input_schema=cast("Json", first), output_schema=cast("Json", second))
        )

    make()
    texts = [each.text for each in made]

    verdicts = complaints(texts, tmp_path)
    assert len(verdicts) == len(texts)
    assert [(text, said) for text, said in zip(texts, verdicts, strict=True) if said] == []


def test_an_argument_object_reads_as_its_author_meant_it() -> None:
    schema = {
        "type": "object",
        "properties": {
            "city": {"type": "string", "description": "The city.", "minLength": 1},
            "unit": {"enum": ["celsius", "fahrenheit"], "default": "celsius"},
            "days": {"type": ["integer", "null"], "minimum": 1, "maximum": 14},
        },
        "required": ["city"],
    }

    found = declare("get_forecast", description="Weather.", input_schema=schema)

    assert found.text == (
        "declare const tools: {\n"
        "  /** Weather. */\n"
        "  get_forecast(args: {\n"
        "    /** The city. (min length 1) */\n"
        "    city: string;\n"
        '    /** (default "celsius") */\n'
        '    unit?: "celsius" | "fahrenheit";\n'
        "    /** (at least 1; at most 14) */\n"
        "    days?: number | null;\n"
        "  }): Promise<unknown>;\n"
        "};\n"
    )


@pytest.mark.parametrize(
    ("schema", "parameters"),
    [
        (None, "(args?: Record<string, unknown>)"),
        ({"type": "object"}, "(args?: Record<string, unknown>)"),
        ({"type": "object", "properties": {}}, "()"),
        ({"type": "object", "additionalProperties": False}, "()"),
        (_inputs(a={"type": "string"}), "(args?: { a?: string })"),
        (LABEL, "(args: { name: string })"),
        ({"$ref": "#/$defs/x", "$defs": {"x": LABEL}}, "(args: { name: string })"),
        (
            {"anyOf": [{"required": ["a"]}, {"required": ["b"]}]},
            "(args: { a: unknown } | { b: unknown })",
        ),
    ],
)
def test_arguments_may_be_left_out_only_where_nothing_is_required(
    schema: Json | None, parameters: str
) -> None:
    assert declare("t", input_schema=schema).signature == f"  t{parameters}: Promise<unknown>;\n"


def test_a_type_that_refers_to_itself_gets_a_name() -> None:
    found = declare("walk", input_schema={"$ref": "#/$defs/Node", "$defs": {"Node": NODE}})

    assert found.aliases == (
        "type walk_Node = { children?: walk_Node[]; parent?: walk_Node | null };\n",
    )
    assert found.signature == "  walk(args?: walk_Node): Promise<unknown>;\n"


def test_a_long_type_that_is_used_twice_is_written_once() -> None:
    person = _inputs(**{f"field_{number}": {"type": "string"} for number in range(6)})
    schema = {
        **_inputs(author={"$ref": "#/$defs/P"}, editor={"$ref": "#/$defs/P"}),
        "$defs": {"P": person},
    }

    found = declare("t", input_schema=schema)

    assert found.text.count("field_3") == 1
    assert "{ author?: t_P; editor?: t_P }" in found.text


def test_input_and_output_may_use_one_name_for_two_types() -> None:
    other = {"type": "object", "properties": {"x": {"$ref": "#/$defs/Node"}}}

    found = declare(
        "t",
        input_schema={"$ref": "#/$defs/Node", "$defs": {"Node": NODE}},
        output_schema={"$ref": "#/$defs/Node", "$defs": {"Node": other}},
    )

    assert found.aliases[1] == "type t_Node_2 = { x?: t_Node_2 };\n"


def test_an_observed_result_is_marked_and_gives_way_to_a_schema() -> None:
    seen = Record((Field("total", Atom("number"), required=True),))

    assert "Promise</* observed */ { total: number }>" in declare("t", observed=seen).text
    assert "observed" not in declare("t", observed=seen, output_schema=LABEL).text


def _listed(namespace: str, name: str, words: int) -> Listed:
    return Listed(namespace, declare(name, description="word " * words))


def test_a_catalogue_within_its_budget_shows_everything_in_the_given_order() -> None:
    listed = [
        _listed("b", "mcp__b__one", 3),
        _listed("", "read", 3),
        _listed("a", "mcp__a__two", 3),
    ]

    text = catalogue_text(listed, 3000)

    assert text == together(each.declaration for each in listed)


def test_a_catalogue_over_its_budget_keeps_own_tools_and_says_how_to_find_the_rest() -> None:
    servers = [_listed("hub", f"mcp__hub__t{number}", number) for number in range(60)]
    own = [_listed("", f"own_{number}", 40) for number in range(20)]

    text = catalogue_text([*own, *servers], 1500)

    assert all(f"own_{number}(" in text for number in range(20))
    assert "mcp__hub__t0(" in text
    assert "mcp__hub__t59(" not in text
    assert "tools of hub (" in text
    assert "searchTools" in text
    assert tokens(text) <= 1600


def test_own_tools_stand_in_the_catalogue_whatever_the_budget() -> None:
    assert "read(" in catalogue_text([_listed("", "read", 70), _listed("s", "mcp__s__t", 1)], 10)


def test_one_declaration_stands_by_itself() -> None:
    alone = Declaration(("type A = string;\n",), "  t(): Promise<A>;\n")

    assert alone.text == "type A = string;\ndeclare const tools: {\n  t(): Promise<A>;\n};\n"
