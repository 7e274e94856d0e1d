"""The kept window: cursors, eviction, characters, back-pressure."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from codespace.runner.output import OutputWindow

KEPT = 16
CHARACTERS = "a\n\0é€😀"
SENTENCES = st.text(alphabet=CHARACTERS, max_size=60)
PIECES = st.lists(st.binary(max_size=12), max_size=12)


def filled(data: bytes, kept: int = KEPT, *, paced: bool = False) -> OutputWindow:
    window = OutputWindow(kept, paced=paced)
    window.feed(data)
    return window


def test_a_new_window_is_empty_and_not_at_its_end():
    chunk = OutputWindow(KEPT).read(0, 100, exited=False)
    assert (chunk.cursor, chunk.text, chunk.eof) == (0, "", False)
    assert (chunk.output_lost, chunk.retained_from) == (False, 0)


def test_the_returned_cursor_is_the_one_to_ask_with_next():
    window = filled(b"abcdef")
    first = window.read(0, 4, exited=False)
    second = window.read(first.cursor, 4, exited=False)
    assert (first.text, first.cursor, second.text, second.cursor) == ("abcd", 4, "ef", 6)


def test_the_oldest_bytes_fall_out_and_the_loss_shows_from_then_on():
    window = filled(b"0123456789abcdef")
    assert not window.read(0, 100, exited=False).output_lost
    window.feed(b"XY")
    from_start, from_end = window.read(0, 100, exited=False), window.read(18, 100, exited=False)
    assert from_start.text == "23456789abcdefXY"
    assert from_start.retained_from == from_end.retained_from == 2
    assert from_start.output_lost
    assert from_end.output_lost


def test_a_cursor_beyond_the_end_is_moved_back_to_it():
    chunk = filled(b"abc").read(1_000, 100, exited=False)
    assert (chunk.cursor, chunk.text) == (3, "")


def test_one_piece_larger_than_the_window_leaves_its_end():
    window = filled(bytes(range(97, 123)) * 4)
    assert window.total == 104
    assert window.read(0, 100, exited=False).text == "klmnopqrstuvwxyz"


@pytest.mark.parametrize("text", ["é" * 20, "€" * 20, "😀" * 20, "a" + "😀" * 9])
def test_eviction_inside_a_character_drops_the_rest_of_it(text: str):
    window = filled(text.encode(), kept=15)
    chunk = window.read(0, 1_000, exited=False)
    assert chunk.text
    assert text.endswith(chunk.text)
    assert chunk.cursor - chunk.retained_from == len(chunk.text.encode())


def test_a_window_of_nothing_but_loose_continuation_bytes_can_still_be_read():
    window = filled(b"\x80" * 40)
    assert window.read(0, 100, exited=False).text == "\N{REPLACEMENT CHARACTER}" * (KEPT - 3)


def test_a_started_character_waits_for_its_rest():
    window = filled(b"a\xe2\x82")
    assert window.read(0, 100, exited=False).text == "a"
    assert window.read(1, 100, exited=False) == window.read(1, 1, exited=False)
    window.feed(b"\xac")
    assert window.read(1, 100, exited=False).text == "€"


def test_a_started_character_at_the_very_end_is_replaced():
    window = filled(b"a\xe2\x82")
    window.end()
    chunk = window.read(0, 100, exited=True)
    assert (chunk.text, chunk.cursor, chunk.eof) == ("a\N{REPLACEMENT CHARACTER}", 3, True)


def test_a_cut_before_the_end_does_not_split_a_character_even_after_the_end():
    window = filled("a€b".encode())
    window.end()
    first = window.read(0, 3, exited=True)
    assert (first.text, first.cursor) == ("a€"[: len(first.text)], len(first.text.encode()))
    assert window.read(first.cursor, 100, exited=True).text == "a€b"[len(first.text) :]


@pytest.mark.parametrize("smallest", [-1, 0, 1, 2, 3])
def test_the_smallest_read_still_takes_a_whole_character(smallest: int):
    assert filled("😀😀".encode()).read(0, smallest, exited=False).text == "😀"


@pytest.mark.parametrize(
    ("ended", "exited", "cursor", "eof"),
    [
        (True, True, 0, True),
        (True, True, 3, True),
        (False, True, 3, False),
        (True, False, 3, False),
        (False, False, 3, False),
    ],
)
def test_eof_needs_the_end_of_output_and_of_the_process(
    *, ended: bool, exited: bool, cursor: int, eof: bool
):
    window = filled(b"abc")
    if ended:
        window.end()
    assert window.read(cursor, 100, exited=exited).eof is eof


def test_eof_needs_a_chunk_that_reaches_the_end():
    window = filled(b"abcdefgh")
    window.end()
    assert not window.read(0, 4, exited=True).eof
    assert window.read(4, 4, exited=True).eof


@pytest.mark.parametrize("data", [b"\0" * 4_000, b"\xff" * 4_000, b'"' * 4_000, b"\0a" * 2_000])
def test_a_chunk_at_most_doubles_when_it_becomes_json(data: bytes):
    window = filled(data, kept=10_000)
    taken = cursor = 0
    while cursor < window.total:
        chunk = window.read(cursor, 1_000, exited=False)
        assert len(json.dumps(chunk.text, ensure_ascii=False).encode()) <= 2 * 1_000 + 2
        assert chunk.cursor > cursor
        cursor, taken = chunk.cursor, taken + 1
    assert taken <= 4 * 4


def test_an_unpaced_window_always_has_room():
    assert filled(b"x" * 100).room == KEPT


def test_a_paced_window_keeps_what_nobody_asked_past():
    window = filled(b"0123456789", paced=True)
    assert window.room == 6
    window.feed(b"abcdef")
    assert window.room == 0
    assert window.retained_from == 0
    window.ask(10)
    assert window.room == 10
    window.feed(b"ABCDEFGHIJ")
    assert window.room == 0
    assert window.read(0, 100, exited=False).text == "abcdefABCDEFGHIJ"


def test_asking_again_for_less_takes_no_room_back():
    window = filled(b"0123456789", paced=True)
    window.ask(8)
    window.ask(2)
    assert window.room == KEPT - 2


def test_asking_beyond_the_end_promises_nothing_of_what_comes():
    window = filled(b"0123456789", paced=True)
    window.ask(1_000)
    window.feed(b"x" * KEPT)
    assert window.room == 0
    assert window.read(10, 100, exited=False).text == "x" * KEPT


def test_a_paced_window_does_not_skip_bytes_that_were_not_asked_past():
    window = filled(b"\x80" * KEPT, paced=True)
    window.ask(1)
    window.feed(b"\x80")
    assert window.retained_from == 1


@given(SENTENCES, st.integers(4, 40), st.lists(st.integers(0, 30), max_size=8))
def test_valid_text_is_never_replaced_and_every_byte_is_read_or_lost(
    text: str, kept: int, sizes: list[int]
):
    window, data, cursor, lost, got = OutputWindow(kept), text.encode(), 0, 0, ""
    for size in [*sizes, len(data)]:
        piece, data = data[:size], data[size:]
        window.feed(piece)
        chunk = window.read(cursor, max(size, 4), exited=False)
        lost += max(0, chunk.retained_from - cursor)
        got, cursor = got + chunk.text, chunk.cursor
    window.end()
    while not (chunk := window.read(cursor, 7, exited=True)).eof:
        got, cursor = got + chunk.text, chunk.cursor
    got += chunk.text
    assert "\N{REPLACEMENT CHARACTER}" not in got
    assert len(got.encode()) + lost == len(text.encode()) == window.total
    assert lost or got == text


@given(PIECES, st.integers(4, 20))
def test_chunks_of_any_bytes_join_to_the_decoded_whole(pieces: list[bytes], size: int):
    window, cursor, got = OutputWindow(1_000), 0, ""
    for piece in pieces:
        window.feed(piece)
        chunk = window.read(cursor, size, exited=False)
        got, cursor = got + chunk.text, chunk.cursor
    window.end()
    while True:
        chunk = window.read(cursor, size, exited=True)
        got, cursor = got + chunk.text, chunk.cursor
        if chunk.eof:
            break
    assert got == b"".join(pieces).decode(errors="replace")


@given(PIECES, st.integers(4, 20), st.integers(-5, 200), st.booleans())
def test_the_window_never_lies_about_its_bounds(
    pieces: list[bytes],
    kept: int,
    cursor: int,
    paced: bool,  # noqa: FBT001 -- Hypothesis passes by position
):
    window, highest = OutputWindow(kept, paced=paced), 0
    for piece in pieces:
        window.feed(piece[: window.room] if paced else piece)
        window.ask(max(0, cursor))
        chunk = window.read(cursor, 8, exited=False)
        assert highest <= chunk.retained_from <= chunk.cursor <= window.total
        assert chunk.output_lost == (chunk.retained_from > 0)
        assert len(chunk.text.encode()) <= 3 * 8
        assert window.total - chunk.retained_from <= max(kept, 0)
        highest = chunk.retained_from


@given(st.binary(max_size=300), st.integers(4, 20))
def test_a_paced_reader_gets_every_byte(data: bytes, kept: int):
    window, cursor, got, left = OutputWindow(kept, paced=True), 0, "", data
    chunk = window.read(0, 6, exited=False)
    for _ in range(len(data) + 2):
        piece, left = left[: window.room], left[window.room :]
        window.feed(piece)
        if not left:
            window.end()
        chunk = window.read(cursor, 6, exited=True)
        assert chunk.retained_from <= cursor
        got, cursor = got + chunk.text, chunk.cursor
        window.ask(cursor)
    assert chunk.eof
    assert got == data.decode(errors="replace")
