"""Frames: whatever the pieces are in which they come, and whatever is no frame."""

import json
from collections.abc import Mapping

import pytest
from hypothesis import given
from hypothesis import strategies as st

from codespace.runner.frames import (
    FRAME_MAX_BYTES,
    FrameReader,
    FrameTooLongError,
    ProtocolError,
    frame,
)

texts = st.text(st.characters(exclude_categories=()), max_size=40)
values = st.recursive(
    st.none() | st.booleans() | st.integers() | texts,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(texts, inner, max_size=4),
    max_leaves=12,
)
messages = st.lists(st.dictionaries(texts, values, max_size=4), max_size=5)


def read(reader: FrameReader, data: bytes) -> list[Mapping[str, object]]:
    return list(reader.feed(data))


@given(messages, st.lists(st.integers(1, 50), min_size=1))
def test_messages_arrive_whole_in_whatever_pieces_they_come(
    sent: list[dict[str, object]], sizes: list[int]
) -> None:
    stream = b"".join(map(frame, sent))
    reader, got, at, turn = FrameReader(), list[Mapping[str, object]](), 0, 0
    while at < len(stream):
        size = sizes[turn % len(sizes)]
        got += read(reader, stream[at : at + size])
        at, turn = at + size, turn + 1
    assert got == sent
    assert reader.held_bytes == 0


@given(st.binary(max_size=200))
def test_noise_is_refused_or_waits_for_more_and_never_fails_otherwise(noise: bytes) -> None:
    try:
        got = read(FrameReader(), noise)
    except ProtocolError:
        return
    assert all(isinstance(message, dict) for message in got)


def body_of(text: str) -> bytes:
    return len(text).to_bytes(4, "big") + text.encode("ascii")


@pytest.mark.parametrize(
    "bad",
    [
        bytes(4),
        (FRAME_MAX_BYTES + 1).to_bytes(4, "big"),
        b"\xff\xff\xff\xff",
        b"GET / HTTP/1.1\r\n\r\n",
        body_of("[]"),
        body_of("1"),
        body_of("{"),
        body_of("[" * 100_000),
        (2).to_bytes(4, "big") + b"\xff\xfe",
    ],
)
@pytest.mark.requirement("runner.frames")
def test_what_is_no_frame_is_refused_at_once(bad: bytes) -> None:
    with pytest.raises(ProtocolError):
        read(FrameReader(), bad)


def test_a_length_out_of_bounds_is_refused_before_anything_of_it_is_kept() -> None:
    reader = FrameReader()
    with pytest.raises(ProtocolError):
        read(reader, (FRAME_MAX_BYTES + 1).to_bytes(4, "big"))
    assert reader.held_bytes <= 4


def test_the_longest_message_passes_and_a_longer_one_is_not_made() -> None:
    room = FRAME_MAX_BYTES - len(json.dumps({"a": ""}, separators=(",", ":")))
    longest = {"a": "x" * room}
    assert read(FrameReader(), frame(longest)) == [longest]
    with pytest.raises(FrameTooLongError):
        frame({"a": "x" * (room + 1)})
