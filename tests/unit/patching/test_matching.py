"""Finding lines in a file: the passes, and agreement with a slow and plain search."""

from collections.abc import Callable, Sequence

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from codespace.patching.matching import Finder, folded, same
from codespace.patching.whitespace import rtrim, trim

_TO_DASH = [*range(0x2010, 0x2016), 0x2212]
_TO_BLANK = [0xA0, *range(0x2002, 0x200B), 0x202F, 0x205F, 0x3000]
_EXPECTED_FOLDS = {
    **dict.fromkeys(_TO_DASH, "-"),
    **dict.fromkeys(range(0x2018, 0x201C), "'"),
    **dict.fromkeys(range(0x201C, 0x2020), '"'),
    **dict.fromkeys(_TO_BLANK, " "),
}


def _seek(lines: Sequence[str], pattern: Sequence[str], start: int = 0, *, eof: bool = False):
    return Finder(list(lines), pattern).seek(pattern, start, eof=eof)


def _slow_seek(
    lines: Sequence[str], pattern: Sequence[str], start: int, *, eof: bool
) -> int | None:
    """The rule, word by word."""
    if not pattern:
        return start
    if len(pattern) > len(lines):
        return None
    last = len(lines) - len(pattern)
    first = max(start, last) if eof else start
    passes: list[Callable[[str], str]] = [same, rtrim, trim, folded]
    for transform in passes:
        for candidate in range(first, last + 1):
            window = lines[candidate : candidate + len(pattern)]
            if [transform(line) for line in window] == [transform(text) for text in pattern]:
                return candidate
    return None


def test_the_loosest_pass_maps_exactly_the_listed_characters():
    code_points = (code for code in range(0x10000) if not 0xD800 <= code < 0xE000)
    mapped = {code: folded(f"x{chr(code)}x")[1] for code in code_points}
    assert {code: to for code, to in mapped.items() if to != chr(code)} == _EXPECTED_FOLDS


def test_the_loosest_pass_trims_first():
    assert folded("\u2003\u2014 a \u2001") == "- a"
    assert folded(" a  b ") == "a  b"


@pytest.mark.parametrize(
    ("line", "pattern"),
    [("a", "a"), ("a \t", "a"), ("a", "a  "), ("  a", "\ta"), ("\u201ca\u201d", ' "a"')],
)
def test_each_pass_finds_what_it_forgives(line: str, pattern: str):
    assert _seek(["x", line], [pattern]) == 1


@pytest.mark.parametrize(
    ("line", "pattern"),
    [("a b", "a  b"), ("A", "a"), ("\x1ca", "a"), ("\ufeffa", "a"), ("a\u2026", "a...")],
)
def test_no_pass_forgives_more(line: str, pattern: str):
    assert _seek(["x", line], [pattern]) is None


@pytest.mark.parametrize(
    ("lines", "hit"),
    [
        (["  a ", "a ", "a", "a"], 2),
        (["  a ", "a ", "a\t"], 1),
        (["\u00a0a\u2212", "  a-"], 1),
        (["  a ", "\ta"], 0),
    ],
)
def test_a_strict_match_below_beats_a_loose_one_above(lines: list[str], hit: int):
    assert _seek(lines, ["a-" if "a-" in lines[-1] else "a"]) == hit


def test_an_empty_pattern_stands_at_the_start():
    assert _seek(["a"], [], 1, eof=True) == 1


def test_a_pattern_longer_than_the_rest_is_not_found():
    assert _seek(["a"], ["a", "b"]) is None
    assert _seek(["a", "b"], ["a", "b"], 1) is None
    assert _seek([], ["a"]) is None


def test_with_the_end_of_file_mark_only_the_end_matches():
    assert _seek(["a", "b", "a"], ["a"], eof=True) == 2
    assert _seek(["a", "b"], ["a"], eof=True) is None
    assert _seek(["a", "b"], ["a", "b"], 1, eof=True) is None


def test_many_near_misses_do_not_hide_the_match():
    lines = ["a", "b"] * 50 + ["a", "c"]
    assert _seek(lines, ["a", "c"]) == 100


def test_a_finder_answers_many_searches():
    lines = ["a", "b ", "\tc", "d\u2014", "a", "e"]
    finder = Finder(lines, ["a", "b", "c", "d-", "e", "missing"])
    assert finder.seek(["missing"], 0) is None
    assert finder.seek(["a"], 0) == 0
    assert finder.seek(["b", "c"], 0) == 1
    assert finder.seek(["d-", "a"], 1) == 3
    assert finder.seek(["a"], 5) is None
    assert finder.seek(["e"], 5) == 5


def test_more_distinct_lines_than_characters_are_told_apart():
    lines = [str(number) for number in range(20)]
    finder = Finder(lines, [*lines, "missing"], alphabet=3)
    assert finder.seek(["missing"], 0) is None
    for number in range(19):
        assert finder.seek(lines[number : number + 2], 0) == number
    assert finder.seek(["5", "7"], 0) is None


def test_occurrences_are_loose_ordered_and_limited():
    finder = Finder(["a", " a", "b", "a "], ["a", "c"])
    assert finder.occurrences("a", 0, 10) == [0, 1, 3]
    assert finder.occurrences("a", 1, 1) == [1]
    assert finder.occurrences("c", 0, 10) == []


WORDS = st.sampled_from(["a", "a ", " a", "b", "", " ", "a\u2014", "a-", "\u00a0a", "\x1ca"])


@given(
    lines=st.lists(WORDS, max_size=12),
    patterns=st.lists(st.lists(WORDS, max_size=3), min_size=1, max_size=4),
    start=st.integers(0, 12),
    eof=st.booleans(),
    alphabet=st.sampled_from([1, 2, 1_000]),
)
@example(lines=["a"] * 40, patterns=[["b"], ["a", "a"]], start=30, eof=False, alphabet=1)
def test_every_search_agrees_with_the_plain_one(
    lines: list[str], patterns: list[list[str]], start: int, *, eof: bool, alphabet: int
):
    start = min(start, len(lines))
    wanted = [text for pattern in patterns for text in pattern]
    finder = Finder(lines, wanted, alphabet=alphabet)
    for pattern in patterns:
        assert finder.seek(pattern, start, eof=eof) == _slow_seek(lines, pattern, start, eof=eof)
