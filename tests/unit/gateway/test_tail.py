"""The end of a text in bounded memory, against a reference that keeps everything."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from codespace.gateway.tail import Tail

PIECES = st.lists(st.text(st.sampled_from("ab\né€😀"), max_size=12), max_size=12)


def naive(text: str, max_bytes: int, max_lines: int) -> str:
    """Return the end of a whole text: so many characters from its end as fit, then its lines."""
    kept = text
    while len(kept.encode()) > max_bytes:
        kept = kept[1:]
    return "".join(kept.splitlines(keepends=True)[-max_lines:])


def tail_of(*pieces: str, max_bytes: int = 8, max_lines: int = 100) -> Tail:
    tail = Tail(max_bytes, max_lines)
    for piece in pieces:
        tail.add(piece)
    return tail


@given(pieces=PIECES, max_bytes=st.integers(1, 20), max_lines=st.integers(1, 5))
def test_the_tail_of_pieces_is_the_end_of_the_whole(
    pieces: list[str], max_bytes: int, max_lines: int
) -> None:
    tail = tail_of(*pieces, max_bytes=max_bytes, max_lines=max_lines)
    whole = "".join(pieces)
    assert tail.text() == naive(whole, max_bytes, max_lines)
    assert tail.truncated is (tail.text() != whole)


@given(pieces=PIECES, max_bytes=st.integers(1, 20))
def test_no_more_is_kept_than_twice_what_is_asked_for(pieces: list[str], max_bytes: int) -> None:
    tail = Tail(max_bytes, 3)
    for piece in pieces:
        tail.add(piece)
        assert len(tail._kept) <= 2 * max_bytes  # pyright: ignore[reportPrivateUsage] -- the memory itself is the claim


@given(pieces=PIECES, max_bytes=st.integers(1, 20), max_lines=st.integers(1, 5))
def test_looking_changes_nothing(pieces: list[str], max_bytes: int, max_lines: int) -> None:
    looked, silent = Tail(max_bytes, max_lines), Tail(max_bytes, max_lines)
    for piece in pieces:
        looked.add(piece)
        silent.add(piece)
        assert looked.text() == looked.text()
        assert looked.truncated is looked.truncated
    assert (looked.text(), looked.truncated) == (silent.text(), silent.truncated)


@pytest.mark.parametrize("text", ["", "a", "12345678", "1234567\n", "é" * 4, "😀😀"])
def test_what_fits_exactly_is_whole(text: str) -> None:
    tail = tail_of(text)
    assert (tail.text(), tail.truncated) == (text, False)


def test_one_byte_more_is_cut() -> None:
    tail = tail_of("123456789")
    assert (tail.text(), tail.truncated) == ("23456789", True)


def test_a_character_is_never_split() -> None:
    assert tail_of("€€€").text() == "€€"
    assert tail_of("😀😀x").text() == "😀x"
    assert tail_of("😀", max_bytes=3).text() == ""
    assert tail_of("😀", max_bytes=3).truncated


@pytest.mark.parametrize(
    ("text", "lines", "kept"),
    [
        ("a\nb\n", 2, "a\nb\n"),
        ("a\nb", 2, "a\nb"),
        ("a\nb\n", 1, "b\n"),
        ("a\nb", 1, "b"),
        ("\n\n\n", 2, "\n\n"),
        ("\n", 1, "\n"),
        ("a\n\n", 1, "\n"),
        ("abc", 1, "abc"),
        ("a\r\nb\r\n", 1, "b\r\n"),
    ],
)
def test_the_last_lines_are_kept_whole(text: str, lines: int, kept: str) -> None:
    tail = tail_of(text, max_lines=lines)
    assert (tail.text(), tail.truncated) == (kept, kept != text)


def test_what_was_once_dropped_stays_told() -> None:
    tail = tail_of("x" * 100)
    assert tail.truncated
    tail.add("\n")
    assert (tail.text(), tail.truncated) == ("xxxxxxx\n", True)


def test_half_a_character_does_not_break_it() -> None:
    assert tail_of("a\ud800b").text() == "a?b"
