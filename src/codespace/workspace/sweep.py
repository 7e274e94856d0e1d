"""Matching lines in one pass of rg over names, for when there are not too many of them.

rg opens what it searches by name. A line is believed only once it was found at the same place of
the same file, reached through no link; a file where it was not is left in doubt.
"""

import json
import os
import re
import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field

from codespace.domain.errors import CodeSpaceError, ErrorCode
from codespace.domain.sizes import KIB, MIB
from codespace.workspace.deadline import Deadline
from codespace.workspace.directory import RootDirectory
from codespace.workspace.globs import Glob
from codespace.workspace.hits import (
    END,
    LINES,
    MATCH,
    TEXT,
    FileHits,
    Giant,
    Match,
    line_of,
    matches_of,
    records,
)
from codespace.workspace.listing import opened, searched

_PATH = re.compile(rb'"path":\{"text":("(?:[^"\\]|\\.)*")\}')
_BYTES_AT_LEAST = MIB
_BYTES_PER_MATCH = 2 * KIB
_EARLY_SECONDS = 1.0
"""Up to here it costs less to ask for the names of the files first than to go on."""


@dataclass(frozen=True, slots=True)
class Query:
    """What to look for, as options of rg, and how much of it to tell."""

    pattern: Sequence[str]
    context: int
    limit: int
    max_chars: int


@dataclass(frozen=True, slots=True)
class Sweep:
    """The matches up to one more than the limit, in order, without those of files in doubt.

    `skipped` counts matching files whose names are not UTF-8; `more` says that some were let go.
    """

    matches: list[Match]
    doubtful: list[str]
    skipped: int
    more: bool


class _TooMuchError(Exception):
    """There is more than can be held: the caller has another way."""


def sweep(
    directory: RootDirectory, query: Query, *, glob: Glob, deadline: Deadline
) -> Sweep | None:
    """Search all files that `glob` matches; return nothing where there is too much to tell.

    Raises:
        CodeSpaceError: as `ripgrep.stream`.
    """
    question = (
        "--json",
        f"--max-count={query.limit + 1}",
        f"--context={query.context}",
        *query.pattern,
    )

    def take(chunks: Iterable[bytes]) -> _Kept:
        kept = _Kept(query.limit, glob)
        kept.take(chunks)
        return kept

    try:
        kept = searched(directory, question, take, glob=glob, deadline=deadline)
    except _TooMuchError:
        return None
    except CodeSpaceError as error:
        if error.code is not ErrorCode.FILE_OPERATION_FAILED:
            raise
        return None
    matches, doubtful = _confirmed(directory, kept.files, query)
    return Sweep(matches, doubtful, kept.skipped, kept.more)


@dataclass(slots=True)
class _Kept:
    """What was said of the first files in order, as many as the limit takes."""

    limit: int
    glob: Glob
    files: dict[str, list[bytes]] = field(default_factory=dict[str, list[bytes]])
    skipped: int = 0
    more: bool = False
    _bytes: int = 0
    _bound: str | None = None
    _began: float = field(default_factory=time.monotonic)

    def take(self, chunks: Iterable[bytes]) -> None:
        said: list[bytes] = []
        size = 0
        for record in records(chunks):
            if isinstance(record, Giant):
                raise _TooMuchError
            if record.startswith(LINES):
                said.append(record)
                size += len(record)
                if size > self._most():
                    raise _TooMuchError
            elif record.startswith(END):
                if TEXT in record:
                    self._add(record, said, size)
                said, size = [], 0

    def _add(self, end: bytes, said: list[bytes], size: int) -> None:
        found = _PATH.search(end)
        if found is None:
            self.skipped += 1
            return
        path = _text(found[1]).removeprefix("./")
        if not self.glob.everything and not self.glob.pattern.fullmatch(path):
            return
        if self._bound is not None and path > self._bound:
            self.more = True
            return
        self.files[path] = said
        self._bytes += size
        if self._bytes > self._most():
            self._let_go()

    def _most(self) -> int:
        return _BYTES_AT_LEAST + _BYTES_PER_MATCH * self.limit

    def _let_go(self) -> None:
        """Drop the last files, which the limit leaves no place for."""
        if time.monotonic() - self._began < _EARLY_SECONDS:
            raise _TooMuchError
        kept: dict[str, list[bytes]] = {}
        count = size = 0
        for path in sorted(self.files):
            if count > self.limit:
                self.more = True
                break
            kept[path] = self.files[path]
            count += sum(record.startswith(MATCH) for record in kept[path])
            size += sum(map(len, kept[path]))
            self._bound = path
        if 2 * size > self._most():
            raise _TooMuchError
        self.files, self._bytes = kept, size


def _text(written: bytes) -> str:
    if b"\\" in written:
        return str(json.loads(written))
    return written[1:-1].decode("utf-8")


def _confirmed(
    directory: RootDirectory, files: dict[str, list[bytes]], query: Query
) -> tuple[list[Match], list[str]]:
    matches: list[Match] = []
    doubtful: list[str] = []
    for path, descriptor in opened(directory, _until(sorted(files), matches, query.limit)):
        try:
            hits = _hits(descriptor, files[path], query.max_chars)
        finally:
            os.close(descriptor)
        if hits is None:
            doubtful.append(path)
        else:
            matches += matches_of(path, hits, query.context)
    return matches, doubtful


def _until(paths: Iterable[str], matches: Sequence[Match], limit: int) -> Iterator[str]:
    for path in paths:
        if len(matches) > limit:
            return
        yield path


def _hits(descriptor: int, said: Iterable[bytes], max_chars: int) -> FileHits | None:
    """Return the lines that were said to be in the file, or nothing unless all of them are."""
    hits = FileHits()
    for record in said:
        line = line_of(record)
        try:
            stands = os.pread(descriptor, len(line.raw), line.offset)
        except OSError:
            return None
        if stands != line.raw:
            return None
        hits.add(line, max_chars)
    return hits
