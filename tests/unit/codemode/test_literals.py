import pytest

from codespace.codemode.literals import ENUM_MAX, constant, enumeration
from codespace.codemode.typescript import write


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ("a", '"a"'),
        (True, "true"),
        (None, "null"),
        (-3, "-3"),
        (10**20, "number"),
        (1.5, "1.5"),
        (float("inf"), "number"),
        ("x" * 500, "string"),
        ([1, ["a"]], '[1, ["a"]]'),
        (list(range(50)), "unknown[]"),
        ({"k": {"v": False}}, "{ k: { v: false } }"),
        ([[[[[1]]]]], "[[[[unknown]]]]"),
    ],
)
def test_a_value_is_a_type(value: object, text: str) -> None:
    assert write(constant(value)) == text


def test_a_long_enumeration_says_how_much_is_missing() -> None:
    text = write(enumeration([f"v{number}" for number in range(ENUM_MAX + 40)]))

    assert '"v0" | "v1"' in text
    assert "string /* 40 more */" in text
    assert "v70" not in text
