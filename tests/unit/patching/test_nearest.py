"""Where lines that are not in a file almost stand."""

import pytest

from codespace.patching.matching import Finder
from codespace.patching.nearest import Nearest, nearest


def _nearest(lines: list[str], pattern: list[str], start: int = 0, *, eof: bool = False) -> Nearest:
    return nearest(Finder(lines, pattern), pattern, start, eof=eof)


def test_the_place_where_most_lines_agree_is_the_nearest():
    lines = ["a", "x", "b", "c", "d", "e", "a", "y"]
    assert _nearest(lines, ["a", "z", "c", "d", "e"]) == Nearest(1, 0, "a", "x")
    assert _nearest(lines, ["b", "c", "z", "e"]) == Nearest(2, 2, "z", "d")


def test_among_equals_the_place_that_agrees_longest_from_its_beginning_wins():
    lines = ["x", "q", "c", "a", "b", "y"]
    assert _nearest(lines, ["a", "b", "c"]) == Nearest(3, 2, "c", "y")
    assert _nearest(["q", "b", "a", "r"], ["a", "b"]) == Nearest(2, 1, "b", "r")


def test_among_complete_equals_the_first_place_wins():
    assert _nearest(["a", "x", "a", "y"], ["a", "b"]) == Nearest(0, 1, "b", "x")


def test_a_forgotten_line_is_found():
    assert _nearest(["a", "b", "c", "d", "e"], ["a", "b", "d", "e"]) == Nearest(0, 2, "d", "c")


def test_agreement_is_as_loose_as_the_search():
    assert _nearest(["\t\u201ca\u201d  ", "b"], ['"a"', "c"]) == Nearest(0, 1, "c", "b")


def test_a_place_may_reach_behind_the_end_of_the_file():
    assert _nearest(["x", "a", "b"], ["a", "b", "c"]) == Nearest(1, 2, "c", None)


def test_places_above_the_start_do_not_count():
    assert _nearest(["a", "b", "q", "a", "x"], ["a", "b"], 1) == Nearest(3, 1, "b", "x")
    assert _nearest(["q", "b"], ["a", "b"], 1) == Nearest(1, 0, "a", "b")


def test_blank_lines_do_not_vote():
    lines = ["", "z", "", "", "q", "k", "w"]
    assert _nearest(lines, ["", "k", "", ""]) == Nearest(4, 0, "", "q")


def test_without_an_equal_line_a_similar_one_shows_the_place():
    lines = ["import os", "", "def total(items):", "    return sum(items)"]
    assert _nearest(lines, ["", "def total(values):"]) == Nearest(
        1, 1, "def total(values):", "def total(items):"
    )


def test_the_most_similar_line_shows_the_place():
    lines = ["let value = first;", "let value = second;", "let value = third;"]
    assert _nearest(lines, ["let value = seconds;"]).place == 1


def test_without_any_similar_line_the_place_is_where_the_search_began():
    assert _nearest(["a", "b", "c"], ["zzz"], 1) == Nearest(1, 0, "zzz", "b")
    assert _nearest(["a"], ["zzz"], 1) == Nearest(1, 0, "zzz", None)
    assert _nearest([], ["zzz"]) == Nearest(0, 0, "zzz", None)


def test_only_blank_lines_that_are_missing_are_told():
    assert _nearest(["a", "b"], ["", ""]) == Nearest(0, 0, "", "a")


def test_with_the_end_of_file_mark_the_only_place_is_the_end():
    assert _nearest(["a", "b", "c"], ["a", "x"], eof=True) == Nearest(1, 0, "a", "b")
    assert _nearest(["a", "b"], ["b", "x"], 1, eof=True) == Nearest(1, 1, "x", None)
    assert _nearest(["a"], ["a", "b"], eof=True) == Nearest(0, 1, "b", None)


def test_details_count_from_one_and_cut_long_texts():
    place = Nearest(4, 2, "x" * 500, "y" * 500)
    assert place.details == {
        "line": 5,
        "matched_lines": 2,
        "expected": "x" * 200 + "…",
        "found": "y" * 200 + "…",
    }
    assert Nearest(0, 0, "x", None).details["found"] is None


@pytest.mark.parametrize("width", [1, 2, 1_000])
def test_repeats_do_not_make_the_search_long(width: int):
    """The time limit of the runner is the bound: without caps this takes minutes."""
    lines = ["a" * width, "b" * width] * 50_000
    pattern = ["a" * width, "b" * width] * 10_000 + ["c"]
    found = _nearest(lines, pattern)
    assert found == Nearest(0, 20_000, "c", "a" * width)


def test_long_lines_do_not_make_the_comparison_long():
    """As above."""
    lines = ["q w e r t y " * 5_000 + str(number) for number in range(100)]
    assert _nearest(lines, ["q w e r t y " * 5_000 + "x"]).place == 0
