"""A file as lines, and back."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from codespace.patching.lines import Edit, rewritten, split

TEXTS = st.text(alphabet="a\n\r\x0b\x85\u2028 ")


@pytest.mark.parametrize(
    ("text", "texts"),
    [
        ("", []),
        ("\n", [""]),
        ("\r", [""]),
        ("\r\n", [""]),
        ("\n\r", ["", ""]),
        ("a\nb\n", ["a", "b"]),
        ("a\nb", ["a", "b"]),
        ("a\r\nb\r\n", ["a", "b"]),
        ("a\r\nb", ["a", "b"]),
        ("a\rb\r\nc\n\rd", ["a", "b", "c", "", "d"]),
        ("a\r\r\nb", ["a", "", "b"]),
        ("a\x0bb\x0cc\x1cd\x85e\u2028f", ["a\x0bb\x0cc\x1cd\x85e\u2028f"]),
        ("\ufeffa\n", ["\ufeffa"]),
    ],
)
def test_crlf_lf_and_cr_end_a_line_and_nothing_else_does(text: str, texts: list[str]):
    assert split(text).texts == texts


@pytest.mark.parametrize(
    ("text", "preferred"),
    [
        ("", "\n"),
        ("a", "\n"),
        ("a\nb\r\nc\r\n", "\n"),
        ("a\r\nb\nc\n", "\r\n"),
        ("a\rb\nc\n", "\r"),
        ("a\r\nb", "\r\n"),
    ],
)
def test_the_first_ending_is_preferred(text: str, preferred: str):
    assert split(text).preferred == preferred


@pytest.mark.parametrize(
    ("before", "edit", "after"),
    [
        ("a\r\nb\r\nc\r\n", Edit(1, 2, ["B", "B2"]), "a\r\nB\r\nB2\r\nc\r\n"),
        ("a\r\nb\nc\r\nd\n", Edit(2, 3, ["C", "C2"]), "a\r\nb\nC\r\nC2\r\nd\n"),
        ("x\ny\r\nz\n", Edit(1, 2, ["Y"]), "x\nY\nz\n"),
        ("a\rb\rc", Edit(1, 2, ["B"]), "a\rB\rc\r"),
        ("x\ry\nz\r\nw", Edit(1, 2, ["Y", "Y2"]), "x\rY\rY2\rz\r\nw\r"),
        ("a\nb", Edit(0, 1, ["A"]), "A\nb\n"),
        ("a\r\nb", Edit(0, 0, []), "a\r\nb\r\n"),
        ("\ufeffa\nb\n", Edit(1, 2, ["B"]), "\ufeffa\nB\n"),
        ("\ufeffa\nb\n", Edit(0, 1, []), "b\n"),
        ("a\nb\n", Edit(0, 2, []), ""),
        ("a\r\nb\n", Edit(0, 2, []), ""),
        ("", Edit(0, 0, ["a"]), "a\n"),
        ("a", Edit(1, 1, ["b"]), "a\nb\n"),
        ("a\r\n", Edit(1, 1, ["b\rc"]), "a\r\nb\rc\r\n"),
    ],
)
def test_an_edit_takes_the_preferred_ending_and_the_rest_keeps_its_own(
    before: str, edit: Edit, after: str
):
    assert rewritten(split(before), [edit]) == after


def test_edits_are_made_by_their_place_and_in_the_given_order_at_one_place():
    edits = [Edit(3, 3, ["x"]), Edit(0, 1, ["A"]), Edit(3, 3, ["y"]), Edit(2, 3, ["C"])]
    assert rewritten(split("a\nb\nc\n"), edits) == "A\nb\nC\nx\ny\n"


@given(TEXTS)
def test_without_an_edit_only_a_missing_last_ending_is_added(text: str):
    lines = split(text)
    complete = text == "" or text.endswith(("\n", "\r"))
    assert rewritten(lines, []) == (text if complete else text + lines.preferred)


@given(TEXTS)
def test_splitting_agrees_with_universal_newlines(text: str):
    expected = text.replace("\r\n", "\n").replace("\r", "\n").split("\n")
    assert split(text).texts == (expected if expected[-1] else expected[:-1])
