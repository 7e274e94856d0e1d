import pytest

from codespace.codemode.references import SCANNED_MAX, References, every_object, reference_of

LEAF = {"type": "string"}
ROOT: dict[str, object] = {
    "$defs": {
        "a": LEAF,
        "b/c~d": LEAF,
        "with space": LEAF,
        "named": {"$anchor": "here", "type": "null"},
        "other": {"$id": "other.json", "$defs": {"x": LEAF}},
        "old": {"id": "#old"},
    },
    "items": [True, LEAF],
}


@pytest.mark.parametrize(
    "reference",
    [
        "#/$defs/a",
        "#/%24defs/a",
        "#/$defs/b~1c~0d",
        "#/$defs/with%20space",
        "#/items/1",
        "other.json#/$defs/x",
    ],
)
def test_a_reference_leads_to_its_schema(reference: str) -> None:
    assert References(ROOT).find(reference) is LEAF


def test_names_lead_to_schemas_too() -> None:
    references = References(ROOT)

    assert references.find("#") is ROOT
    assert references.find("") is ROOT
    assert references.find("#here") == {"$anchor": "here", "type": "null"}
    assert references.find("#old") == {"id": "#old"}


@pytest.mark.parametrize(
    "reference",
    [
        None,
        5,
        "#/none",
        "#/items/9",
        "#/items/x",
        "#/$defs/a/type/x",
        "#none",
        "http://[x#/a",
        "#/items/" + "9" * 9999,
    ],
)
def test_a_reference_to_nowhere_leads_nowhere(reference: object) -> None:
    assert References(ROOT).find(reference) is None


def test_the_keyword_may_be_any_of_three() -> None:
    assert reference_of({"$dynamicRef": "#n"}) == "#n"
    assert reference_of({"$ref": "#a", "$dynamicRef": "#n"}) == "#a"
    assert reference_of({}) is None


def test_looking_around_ends_also_in_a_huge_schema() -> None:
    assert len(list(every_object([{"a": 1} for _ in range(SCANNED_MAX * 2)]))) < SCANNED_MAX
