import base64
import itertools
import json
import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from codespace.workspace.hits import Match, read_hits


@pytest.fixture
def descriptor(tmp_path: Path) -> Iterator[int]:
    descriptor = os.open(tmp_path / "file", os.O_RDWR | os.O_CREAT)
    yield descriptor
    os.close(descriptor)


def record(
    kind: str, descriptor: int, raw: bytes, *, line: int, offset: int = 0, start: int = 0
) -> bytes:
    try:
        lines = {"text": raw.decode()}
    except UnicodeDecodeError:
        lines = {"bytes": base64.b64encode(raw).decode()}
    data = {
        "path": {"text": f"/proc/self/fd/{descriptor}"},
        "lines": lines,
        "line_number": line,
        "absolute_offset": offset,
        "submatches": [{"match": {"text": "x"}, "start": start, "end": start + 1}]
        if kind == "match"
        else [],
    }
    return json.dumps({"type": kind, "data": data}, separators=(",", ":")).encode() + b"\n"


def end(descriptor: int, *, binary_offset: int | None = None) -> bytes:
    data = {"path": {"text": f"/proc/self/fd/{descriptor}"}, "binary_offset": binary_offset}
    return json.dumps({"type": "end", "data": data}, separators=(",", ":")).encode() + b"\n"


def in_chunks(output: bytes) -> list[bytes]:
    return [output[at : at + 65_537] for at in range(0, len(output), 65_537)]


BEGIN = b'{"type":"begin","data":{}}\n'
SUMMARY = b'{"data":{},"type":"summary"}\n'


def test_each_file_has_its_own_matches_and_context() -> None:
    output = [
        BEGIN,
        record("context", 3, b"before\n", line=1),
        record("match", 3, b"an x\n", line=2, start=3),
        end(3),
        BEGIN,
        record("match", 4, b"x\n", line=3),
        end(4),
        SUMMARY,
    ]
    assert read_hits(output, {3: "a", 4: "b"}, context=1, max_chars=10) == [
        Match("a", 2, 4, "an x", ("before",), ()),
        Match("b", 3, 1, "x", (), ()),
    ]


def test_a_file_with_binary_content_has_no_matches() -> None:
    output = [
        record("match", 3, b"x\n", line=1),
        end(3, binary_offset=7),
        record("match", 4, b"x\n", line=9),
        end(4),
    ]
    assert read_hits(output, {3: "a", 4: "b"}, context=0, max_chars=10) == [Match("b", 9, 1, "x")]


def test_a_column_counts_characters_also_where_bytes_are_not_utf8() -> None:
    output = [record("match", 3, b"\xc3\xa9\xff\xe2\x82 x\n", line=1, start=6), end(3)]
    (match,) = read_hits(output, {3: "a"}, context=0, max_chars=10)
    assert (match.text, match.column) == ("é\ufffd\ufffd x", 5)


@pytest.mark.parametrize(("text", "shown"), [("a\r\n", "a"), ("a\n", "a"), ("a", "a"), ("\n", "")])
def test_a_line_end_is_no_text(text: str, shown: str) -> None:
    output = [record("match", 3, text.encode(), line=1), end(3)]
    assert read_hits(output, {3: "a"}, context=0, max_chars=10)[0].text == shown


def test_a_long_text_is_cut_with_a_mark() -> None:
    output = [record("match", 3, b"abcdef\n", line=1), end(3)]
    assert read_hits(output, {3: "a"}, context=0, max_chars=6)[0].text == "abcdef"
    assert read_hits(output, {3: "a"}, context=0, max_chars=5)[0].text == "abcde…"


@pytest.mark.parametrize("mark", [b"", b"\xef\xbb\xbf"])
def test_a_record_too_long_to_hold_is_told_from_the_file(descriptor: int, mark: bytes) -> None:
    fake = '"},"line_number":7,"absolute_offset":7,"submatches":["start":7,'
    content = f"first\n{fake}{'é' * 2_000_000}x\n".encode()
    os.pwrite(descriptor, mark + content, 0)
    raw = content[6:]
    start = len(raw) - 2
    output = (
        BEGIN
        + record("context", descriptor, b"first\n", line=1)
        + record("match", descriptor, raw, line=2, offset=6, start=start)
        + end(descriptor)
    )
    (match,) = read_hits(in_chunks(output), {descriptor: "a"}, context=1, max_chars=3)
    assert match == Match("a", 2, len(fake) + 2_000_001, '"},…', ("fir…",), ())


def test_a_giant_line_of_a_utf16_file_is_told_without_its_text(descriptor: int) -> None:
    os.pwrite(descriptor, "é".encode("utf-16"), 0)
    raw = b"y" * 2_000_000 + b"x\n"
    output = record("match", descriptor, raw, line=5, start=2_000_000) + end(descriptor)
    (match,) = read_hits(in_chunks(output), {descriptor: "a"}, context=0, max_chars=10)
    assert (match.line, match.column, match.text) == (5, 2_000_001, "…")


@given(cuts=st.lists(st.integers(0, 2_000)), texts=st.lists(st.text('ab\\"é{}:,', max_size=9)))
def test_it_does_not_matter_where_the_output_is_cut(cuts: list[int], texts: list[str]) -> None:
    output = b"".join(
        record("match", 3, f"{text}\n".encode(), line=number + 1)
        for number, text in enumerate(texts)
    ) + end(3)
    at = [0, *sorted(min(cut, len(output)) for cut in cuts), len(output)]
    chunks = [output[start:stop] for start, stop in itertools.pairwise(at)]
    found = read_hits(chunks, {3: "a"}, context=0, max_chars=100)
    assert [match.text for match in found] == texts
