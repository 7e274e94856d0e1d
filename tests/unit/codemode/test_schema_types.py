import pytest

from codespace.codemode.schema_types import SCHEMAS_MAX, SchemaReader
from codespace.codemode.typescript import write


def _text(schema: object) -> str:
    return write(SchemaReader("t").read(schema))


@pytest.mark.parametrize(
    ("schema", "text"),
    [
        (True, "unknown"),
        (False, "never"),
        ({}, "unknown"),
        ("nonsense", "unknown"),
        ({"type": "integer"}, "number"),
        ({"type": ["string", "null"]}, "string | null"),
        ({"type": "file"}, "unknown"),
        ({"type": {"a": 1}}, "unknown"),
        ({"type": "string", "nullable": True}, "string | null"),
        ({"enum": ["a", 1, None]}, '"a" | 1 | null'),
        ({"type": "string", "const": "x"}, '"x"'),
        ({"items": {"type": "string"}}, "string[]"),
        ({"type": "array"}, "unknown[]"),
        ({"prefixItems": [{"type": "string"}], "items": False, "minItems": 1}, "[string]"),
        (
            {"items": [{"type": "string"}], "additionalItems": {"type": "null"}},
            "[string?, ...null[]]",
        ),
        (
            {"properties": {"a": {"type": "string"}}, "required": ["a", "b"]},
            "{ a: string; b: unknown }",
        ),
        (
            {"type": "object", "additionalProperties": {"type": "number"}},
            "{ [key: string]: number }",
        ),
        ({"type": "object", "additionalProperties": False}, "Record<string, never>"),
        (
            {"patternProperties": {"^x": {"type": "string"}}, "additionalProperties": False},
            "{ [key: string]: string }",
        ),
        ({"anyOf": [{"type": "string"}, {"type": "number"}]}, "string | number"),
        ({"allOf": [{"required": ["a"]}, {"required": ["b"]}]}, "{ a: unknown } & { b: unknown }"),
        (
            {"properties": {"a": True}, "anyOf": [{"required": ["a"]}]},
            "{ a?: unknown } & { a: unknown }",
        ),
        ({"$ref": "#/$defs/x", "$defs": {"x": {"type": "string"}}}, "string"),
        ({"$ref": "#/$defs/x", "$defs": {"x": True}}, "unknown"),
        ({"$ref": "#/nowhere"}, "unknown"),
        ({"$ref": "#"}, "unknown"),
    ],
)
def test_a_schema_reads_as_a_type(schema: object, text: str) -> None:
    assert _text(schema) == text


def test_what_refers_to_itself_is_named_once() -> None:
    reader = SchemaReader("t")
    tree = {"$defs": {"n": {"items": {"$ref": "#/$defs/n"}}}, "$ref": "#/$defs/n"}

    assert write(reader.read(tree)) == "t_n"
    assert {name: write(kind) for name, kind in reader.aliases.items()} == {"t_n": "t_n[]"}


def test_a_schema_is_read_up_to_a_number_of_parts() -> None:
    many = {f"p{number}": {"type": "string"} for number in range(SCHEMAS_MAX + 100)}

    text = _text({"properties": many})

    assert "p10?: string" in text
    assert f"p{SCHEMAS_MAX + 50}?: unknown" in text


def test_a_schema_is_read_down_to_a_depth() -> None:
    deep: dict[str, object] = {"type": "string"}
    for _ in range(100):
        deep = {"items": deep}

    assert "unknown[]" in _text(deep)


def test_what_is_itself_beside_itself_says_only_the_rest() -> None:
    reader = SchemaReader("t")
    schema = {"additionalProperties": {"$ref": "#"}, "allOf": [{"$ref": "#"}]}

    assert write(reader.read(schema)) == "t_Root"
    assert {name: write(kind) for name, kind in reader.aliases.items()} == {
        "t_Root": "{ [key: string]: t_Root }"
    }


def test_a_circle_of_names_is_cut_where_it_closes() -> None:
    reader = SchemaReader("t")
    schema = {
        "properties": {"b": {"$ref": "#/$defs/b"}},
        "allOf": [{"$ref": "#/$defs/b"}],
        "$defs": {"b": {"anyOf": [{"$ref": "#"}, {"type": "null"}]}},
    }

    reader.read(schema)

    assert write(reader.aliases["t_Root"]) == "{ b?: t_Root | null }"
