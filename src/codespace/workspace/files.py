"""Reading one file for a client: a bounded piece, and the version of the whole.

How a path becomes a descriptor is `directory`'s business.
"""

import base64
import hashlib
import os
import threading
from dataclasses import dataclass
from typing import Literal

from codespace.domain.errors import CodeSpaceError, ErrorCode
from codespace.domain.limits import Limits
from codespace.domain.paths import clean, shown_raw
from codespace.domain.workspace import Root
from codespace.workspace.deadline import Deadline
from codespace.workspace.directory import RootDirectory, failure, open_root

_CHUNK_BYTES = 1024 * 1024
_CHARACTER_MAX_BYTES = 4
_ATTEMPTS = 3
_TOO_LONG = (
    "Reading the whole file for its version took longer than {limit} ms; look at a part of it with"
    " a command, such as tail or sed."
)


@dataclass(frozen=True, slots=True)
class FileContent:
    """A piece of a file.

    `version` is the lowercase hex SHA-256 of the whole file, also when `truncated`; `size` is the
    whole file's, in bytes. `encoding` tells how `content` holds the piece: text, or base64 when
    the piece is not valid UTF-8. `next_offset` (bytes) is there when `truncated`.
    """

    path: str
    content: str
    encoding: Literal["utf-8", "base64"]
    version: str
    size: int
    truncated: bool
    next_offset: int | None = None


@dataclass(frozen=True, slots=True)
class _Snapshot:
    piece: bytes
    version: str
    size: int
    stable: bool


@dataclass(frozen=True, slots=True)
class _Wanted:
    """Which bytes to keep of a file that holds no more than `largest`, and until when."""

    offset: int
    count: int
    largest: int | None
    deadline: Deadline


class LargerThanExpectedError(Exception):
    """The file is larger than the caller has the time for; nothing was read."""


def read(
    root: Root,
    path: str,
    *,
    offset: int = 0,
    max_bytes: int,
    limits: Limits,
    largest: int | None = None,
    abandoned: threading.Event | None = None,
) -> FileContent:
    """Return up to `max_bytes` of the file at the client's `path`, from byte `offset` on.

    A cut moves back to the start of a UTF-8 character; where `max_bytes` does not hold even one,
    that one is returned whole. A piece that starts inside a character is base64, like any bytes
    that are not UTF-8. An offset at or behind the end gives empty content.

    The whole file is read for its version. When it changes meanwhile, it is read again, up to
    three times; then the last bytes read are returned with their own hash, which no later file is
    likely to have: a patch that expects that version is refused.

    Raises:
        LargerThanExpectedError: the file holds more than `largest` bytes.
        CodeSpaceError: PATH_ESCAPE, SYMLINK_REJECTED, SPECIAL_FILE_REJECTED, FILE_NOT_FOUND,
            PATH_NOT_DIRECTORY, IS_A_DIRECTORY, FILE_OPERATION_FAILED; LIMIT_EXCEEDED for a
            `max_bytes` above the limit; INVALID_ARGUMENT for a negative number; TIMEOUT for a
            file that takes longer than a search may.
    """
    _check_range(path, offset, max_bytes, limits)
    cleaned = clean(path)
    deadline = Deadline.after(limits.grep_timeout_ms, abandoned=abandoned, sentence=_TOO_LONG)
    with open_root(root) as directory:
        wanted = _Wanted(offset, max_bytes + _CHARACTER_MAX_BYTES - 1, largest, deadline)
        snapshot = _snapshot(directory, cleaned, wanted)
    piece, text = _cut(snapshot.piece, max_bytes)
    end = offset + len(piece)
    truncated = end < snapshot.size
    return FileContent(
        path=cleaned,
        content=base64.b64encode(piece).decode("ascii") if text is None else text,
        encoding="base64" if text is None else "utf-8",
        version=snapshot.version,
        size=snapshot.size,
        truncated=truncated,
        next_offset=end if truncated else None,
    )


def _check_range(path: str, offset: int, max_bytes: int, limits: Limits) -> None:
    if offset < 0 or max_bytes < 1:
        raise CodeSpaceError(
            ErrorCode.INVALID_ARGUMENT,
            "The offset must be at least 0 and max_bytes at least 1.",
            details={"path": shown_raw(path)},
        )
    if max_bytes > limits.read_max_bytes:
        raise CodeSpaceError(
            ErrorCode.LIMIT_EXCEEDED,
            f"One call reads at most {limits.read_max_bytes} bytes; go on with next_offset.",
            details={"path": shown_raw(path), "limit": limits.read_max_bytes},
        )


def _snapshot(directory: RootDirectory, path: str, wanted: _Wanted) -> _Snapshot:
    snapshot = _read_whole(directory, path, wanted)
    for _ in range(_ATTEMPTS - 1):
        if snapshot.stable:
            break
        snapshot = _read_whole(directory, path, wanted)
    return snapshot


def _read_whole(directory: RootDirectory, path: str, wanted: _Wanted) -> _Snapshot:
    with directory.open_file(path) as descriptor:
        try:
            before = os.fstat(descriptor)
            if wanted.largest is not None and before.st_size > wanted.largest:
                raise LargerThanExpectedError
            piece, version, size = _hash(descriptor, before.st_size, wanted)
            after = os.fstat(descriptor)
        except OSError as error:
            raise failure(path, error) from error
    stable = (before.st_size, before.st_mtime_ns) == (size, after.st_mtime_ns)
    return _Snapshot(piece, version, size, stable)


def _hash(descriptor: int, size: int, wanted: _Wanted) -> tuple[bytes, str, int]:
    # No further than the size at the start: a log that grows as fast as it is read has an end,
    # and what was there at the start is one of its states.
    digest = hashlib.sha256()
    piece = bytearray()
    position = 0
    first, last = wanted.offset, wanted.offset + wanted.count
    while position < size:
        wanted.deadline.remaining()
        chunk = os.read(descriptor, min(_CHUNK_BYTES, size - position))
        if not chunk:
            break
        digest.update(chunk)
        piece += chunk[max(0, first - position) : max(0, last - position)]
        position += len(chunk)
    return bytes(piece), digest.hexdigest(), position


def _cut(window: bytes, max_bytes: int) -> tuple[bytes, str | None]:
    """Return the piece to send, and its text if it is UTF-8.

    `window` reaches a few bytes further than `max_bytes`, so that one character always fits.
    """
    end = len(window) if len(window) <= max_bytes else _boundary(window, max_bytes)
    try:
        return window[:end], window[:end].decode("utf-8")
    except UnicodeDecodeError:
        return window[:max_bytes], None


def _boundary(window: bytes, at: int) -> int:
    """Return the nearest start of a character before `at`, or the next one if that is 0."""
    back = at
    while back > 0 and at - back < _CHARACTER_MAX_BYTES and _continues(window, back):
        back -= 1
    if back > 0 or not window:
        return back
    forward = at
    while forward < len(window) and _continues(window, forward):
        forward += 1
    return forward


def _continues(window: bytes, index: int) -> bool:
    return window[index] & 0xC0 == 0x80  # noqa: PLR2004 -- the bits that mark a UTF-8 continuation
