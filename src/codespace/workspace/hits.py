"""What rg's JSON lines say, as matches, in bounded memory however long a line of a file is."""

import base64
import json
import os
import re
from collections.abc import Generator, Iterable, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple, TypedDict, cast

CUT = "…"
"""Ends a text that was cut."""

_RECORD_MAX_BYTES = 1024 * 1024
_HEAD_BYTES = 256
_WINDOW_BYTES = 256
_CHUNK_BYTES = 1024 * 1024
_UTF8_MARK = b"\xef\xbb\xbf"
_UTF16_MARKS = (b"\xff\xfe", b"\xfe\xff")
_CONTINUATION_BYTES = bytes(range(0x80, 0xC0))

MATCH = b'{"type":"match",'
LINES = (MATCH, b'{"type":"context",')
END = b'{"type":"end",'
TEXT = b'"binary_offset":null'

# Inside a JSON string every quote is escaped: none of these can be the text of a file.
_DESCRIPTOR = re.compile(rb'"path":\{"text":"/proc/self/fd/(\d+)"\}')
_NUMBERS = re.compile(rb'\},"line_number":(\d+),"absolute_offset":(\d+),"submatches":\[')
_PLAIN = re.compile(
    rb'\{"type":"(match|context)","data":\{"path":\{"text":"[^"\\]*"\},'
    rb'"lines":\{"text":"([^"\\]*)((?:\\r)?(?:\\n)?)"\},'
    rb'"line_number":(\d+),"absolute_offset":(\d+),'
    rb'"submatches":\[(?:\{"match":\{"text":"[^"\\]*"\},"start":(\d+),|\])'
)
"""A line of text in which nothing but its end is escaped."""
_ENDINGS = {b"": b"", rb"\r": b"\r", rb"\n": b"\n", rb"\r\n": b"\r\n"}
_START = re.compile(rb'"start":(\d+),')


@dataclass(frozen=True, slots=True)
class Match:
    """One line that matches.

    `line` and `column` count from 1; the column is that of the first match, in characters of the
    whole line. `text` has no line end; bytes that are not UTF-8 are U+FFFD, and what is too long
    ends with `…`. `before` and `after` are there when context was asked for.
    """

    path: str
    line: int
    column: int
    text: str
    before: tuple[str, ...] | None = None
    after: tuple[str, ...] | None = None


class _Text(TypedDict, total=False):
    text: str
    bytes: str


class _Submatch(TypedDict):
    start: int


class _LineData(TypedDict):
    lines: _Text
    line_number: int
    absolute_offset: int
    submatches: list[_Submatch]


class _Record(TypedDict):
    data: _LineData


class Line(NamedTuple):
    """A line that matches, or the context of one.

    `raw` are its bytes with its end, `offset` bytes from the beginning of the file; `start` is
    where the first match begins in them.
    """

    matches: bool
    raw: bytes
    number: int
    offset: int
    start: int


@dataclass(slots=True)
class FileHits:
    """What is known of one file until its last record: whether it is text comes last."""

    lines: dict[int, str] = field(default_factory=dict[int, str])
    columns: dict[int, int] = field(default_factory=dict[int, int])

    def add(self, line: Line, max_chars: int) -> None:
        """Add a line, cut to `max_chars`."""
        self.lines[line.number] = _shown(line.raw, max_chars)
        if line.matches:
            before = line.raw[: line.start]
            self.columns[line.number] = len(before.decode("utf-8", "replace")) + 1


@dataclass(slots=True)
class Giant:
    """A record that is too long to hold: only its numbers are picked out as it passes."""

    head: bytes
    line: int = 0
    offset: int = 0
    start: int | None = None
    _window: bytes = b""

    def take(self, data: bytes) -> None:
        """Look at the next piece of the record."""
        window = self._window + data
        if not self.line and (numbers := _NUMBERS.search(window)):
            self.line, self.offset = int(numbers[1]), int(numbers[2])
            window = window[numbers.end() :]
        if self.line and self.start is None and (start := _START.search(window)):
            self.start = int(start[1])
        self._window = window[-_WINDOW_BYTES:]


def read_hits(
    chunks: Iterable[bytes], files: Mapping[int, str], *, context: int, max_chars: int
) -> list[Match]:
    """Return the matches of a search of `/proc/self/fd/N`; `files` names each descriptor's path.

    A file that turns out to be binary has none.
    """
    matches: list[Match] = []
    file = FileHits()
    for record in records(chunks):
        if isinstance(record, Giant):
            _add_giant(file, record, max_chars)
        elif record.startswith(LINES):
            file.add(line_of(record), max_chars)
        elif record.startswith(END):
            found = _DESCRIPTOR.search(record)
            if found is not None and TEXT in record:
                matches += matches_of(files[int(found[1])], file, context)
            file = FileHits()
    return matches


def records(chunks: Iterable[bytes]) -> Generator[bytes | Giant]:
    """Yield what stands in each line of rg's output."""
    rest = b""
    giant: Giant | None = None
    for chunk in chunks:
        *ended, last = chunk.split(b"\n")
        for part in ended:
            if giant is None:
                yield rest + part
            else:
                giant.take(part)
                yield giant
            rest, giant = b"", None
        if giant is not None:
            giant.take(last)
        else:
            rest += last
            if len(rest) > _RECORD_MAX_BYTES:
                giant = Giant(rest[:_HEAD_BYTES])
                giant.take(rest)
                rest = b""


def line_of(record: bytes) -> Line:
    """Return what a record of a line says."""
    plain = _PLAIN.match(record)
    if plain is not None:  # five times as fast
        kind, text, ending, number, offset, start = plain.groups()
        raw = text + _ENDINGS[ending]
        return Line(kind == b"match", raw, int(number), int(offset), int(start or 0))
    data = cast("_Record", json.loads(record))["data"]
    encoded = data["lines"].get("bytes")
    raw = data["lines"].get("text", "").encode() if encoded is None else base64.b64decode(encoded)
    start = next((found["start"] for found in data["submatches"]), 0)
    return Line(record.startswith(MATCH), raw, data["line_number"], data["absolute_offset"], start)


def _shown(raw: bytes, max_chars: int) -> str:
    text = raw.decode("utf-8", "replace").removesuffix("\n").removesuffix("\r")
    return text if len(text) <= max_chars else text[:max_chars] + CUT


def _add_giant(file: FileHits, giant: Giant, max_chars: int) -> None:
    found = _DESCRIPTOR.search(giant.head)
    if found is None or not giant.line:
        return
    descriptor = int(found[1])
    mark = os.pread(descriptor, len(_UTF8_MARK), 0)
    readable = not mark.startswith(_UTF16_MARKS)  # rg's offsets are those of its UTF-8 copy
    begin = giant.offset + (len(_UTF8_MARK) if mark == _UTF8_MARK else 0)
    # A character takes at most four bytes; one more shows that there is more to cut.
    head = os.pread(descriptor, 4 * (max_chars + 1), begin) if readable else b""
    file.lines[giant.line] = _shown(head, max_chars) if readable else CUT
    if giant.head.startswith(MATCH):
        start = giant.start or 0
        column = _characters(descriptor, begin, start) if readable else start
        file.columns[giant.line] = column + 1


def _characters(descriptor: int, begin: int, count: int) -> int:
    characters = 0
    end = begin + count
    while begin < end:
        chunk = os.pread(descriptor, min(_CHUNK_BYTES, end - begin), begin)
        if not chunk:
            break
        characters += len(chunk.translate(None, _CONTINUATION_BYTES))
        begin += len(chunk)
    return characters


def matches_of(path: str, file: FileHits, context: int) -> Generator[Match]:
    """Yield the matches of one file in order, each with its lines of context."""
    lines = file.lines
    for line, column in file.columns.items():
        before = range(line - context, line)
        after = range(line + 1, line + 1 + context)
        yield Match(
            path=path,
            line=line,
            column=column,
            text=lines[line],
            before=tuple(lines[at] for at in before if at in lines) if context else None,
            after=tuple(lines[at] for at in after if at in lines) if context else None,
        )
