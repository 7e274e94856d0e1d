"""JSON Schemas as found in the wild, and worse, made by Hypothesis."""

from hypothesis import strategies as st

texts = st.text(max_size=12)
names = st.sampled_from(
    ["a", "b", "id", "x-y", "new", "constructor", "__proto__", "", "then", "日本", "*/", "a\nb"]
)
numbers = st.integers() | st.floats()
values = st.recursive(
    st.none() | st.booleans() | numbers | texts,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(names, inner, max_size=3),
    max_leaves=6,
)
references = st.sampled_from(
    [
        "#",
        "#/$defs/a",
        "#/$defs/b",
        "#/$defs/x-y",
        "#/definitions/a",
        "#/properties/a",
        "#/$defs/a/items",
        "#/$defs/missing",
        "#anchor",
        "https://elsewhere.example/schema.json",
        "#/%24defs/a",
        "",
    ]
)
types = st.sampled_from(
    ["string", "number", "integer", "boolean", "null", "array", "object", "file", "any"]
)


def _objects(inner: st.SearchStrategy[object]) -> st.SearchStrategy[object]:
    some = st.lists(inner, max_size=3)
    named = st.dictionaries(names, inner, max_size=3)
    sound: dict[str, st.SearchStrategy[object]] = {
        "type": types | st.lists(types, max_size=3),
        "$ref": references,
        "$dynamicRef": references,
        "$anchor": st.just("anchor"),
        "properties": named,
        "required": st.lists(names, max_size=3),
        "additionalProperties": inner,
        "patternProperties": named,
        "items": inner | some,
        "prefixItems": some,
        "minItems": st.integers(-1, 4),
        "anyOf": some,
        "oneOf": some,
        "allOf": some,
        "enum": st.lists(values, max_size=4),
        "const": values,
        "default": values,
        "nullable": st.booleans(),
        "description": texts | st.sampled_from(["*/ evil /*", "a\r\nb\u2028c", "\ud800"]),
        "minimum": numbers,
        "pattern": texts,
        "$defs": named,
        "definitions": named,
    }
    keywords = st.sampled_from(sorted(sound))
    sane = st.lists(keywords, max_size=5, unique=True).flatmap(
        lambda chosen: st.fixed_dictionaries({name: sound[name] for name in chosen})
    )
    broken = st.dictionaries(keywords, values, max_size=4)
    return sane | sane | sane | broken


schemas: st.SearchStrategy[object] = st.recursive(
    st.booleans()
    | st.fixed_dictionaries({"type": types})
    | st.fixed_dictionaries({"$ref": references}),
    _objects,
    max_leaves=12,
)
