"""Nothing hides in what a person agrees to."""

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from codespace.domain.visible import visible, visible_json


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("ls -l", "ls -l"),
        ("größer — 漢字 🙂", "größer — 漢字 🙂"),
        ("a\tb\nc", "a\tb\nc"),
        ("safe\rrm -rf", "safe<U+000D>rm -rf"),
        ("\x1b[2K\x07\x00\x7f\x9b", "<U+001B>[2K<U+0007><U+0000><U+007F><U+009B>"),
        ("abc\u202egpj.exe\u202c", "abc<U+202E>gpj.exe<U+202C>"),
        ("\u2066x\u2069\u200f\u061c", "<U+2066>x<U+2069><U+200F><U+061C>"),
        ("a\u200bb\u200d\u2060\ufeff", "a<U+200B>b<U+200D><U+2060><U+FEFF>"),
        ("rm\u00a0-rf\u3000/", "rm<U+00A0>-rf<U+3000>/"),
        ("a\u2028b\u2029", "a<U+2028>b<U+2029>"),
        ("\u3164\u115f\u2800\u034f", "<U+3164><U+115F><U+2800><U+034F>"),
        ("x\ufe0f\U000e0101\U000e0041", "x<U+FE0F><U+E0101><U+E0041>"),
        ("\ue000\ud800", "<U+E000><U+D800>"),
    ],
)
def test_what_would_not_be_seen_is_written_out(text: str, shown: str) -> None:
    assert visible(text) == shown


def test_on_one_line_a_line_feed_is_written_out_too() -> None:
    assert visible("a\nb\tc", lines=False) == "a<U+000A>b<U+0009>c"


@given(st.text())
def test_nothing_is_left_that_controls_or_turns_around(text: str) -> None:
    for character in visible(text, lines=False):
        assert unicodedata.category(character) not in {"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"}
    assert visible(visible(text)) == visible(text)


def test_each_text_in_a_json_value_is_made_visible() -> None:
    value = {"a\u200b": ["x\n", 1, None, {"b": "\u202e"}], "c": True}
    assert visible_json(value) == {
        "a<U+200B>": ["x<U+000A>", 1, None, {"b": "<U+202E>"}],
        "c": True,
    }
    assert visible_json("x\n", lines=True) == "x\n"
