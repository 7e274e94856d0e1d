import pytest

from codespace.domain.unicode_text import Place, broken_text

HALF = "\ud83d"


@pytest.mark.parametrize(
    "arguments", [{}, {"a": "é 😀"}, {"a": [1, None, {"b": "x"}]}, {"é": {"b": ["c"]}}]
)
def test_whole_text_is_fine_wherever_it_stands(arguments: dict[str, object]) -> None:
    assert broken_text(arguments) is None


@pytest.mark.parametrize(
    ("arguments", "place"),
    [
        ({"a": HALF}, ("a",)),
        ({"a": "x", "b": ["y", HALF]}, ("b", 1)),
        ({"a": {"b": {"c": HALF}}}, ("a", "b", "c")),
        ({"a": {HALF: "x"}}, ("a", HALF)),
    ],
)
def test_half_a_surrogate_pair_is_found_where_it_stands(
    arguments: dict[str, object], place: Place
) -> None:
    assert broken_text(arguments) == place
