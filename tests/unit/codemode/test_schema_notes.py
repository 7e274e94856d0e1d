import pytest

from codespace.codemode.schema_notes import note


@pytest.mark.parametrize(
    ("schema", "text"),
    [
        (True, ""),
        ({"description": " Says it. "}, "Says it."),
        ({"description": 5, "default": [1, 2]}, "(default [1, 2])"),
        ({"description": "N.", "minimum": 0, "maximum": 9.5}, "N. (at least 0; at most 9.5)"),
        ({"format": "date-time", "deprecated": True}, "(format date-time; deprecated)"),
        ({"default": None, "pattern": "x" * 100, "minimum": True}, ""),
        ({"default": "x" * 100}, ""),
    ],
)
def test_a_property_is_told_with_its_bounds(schema: object, text: str) -> None:
    assert note(schema) == text
