"""Files under `.codespace/output/` of a workspace: output too long to answer with.

Commands can write there, too: nothing found there is trusted or followed.
"""

import contextlib
import fcntl
import os
import re
import stat
import time
from itertools import islice
from typing import NamedTuple

from codespace.domain.errors import CodeSpaceError
from codespace.domain.sizes import MIB
from codespace.domain.workspace import Root
from codespace.workspace.directory import RootDirectory, open_root

OUTPUT_DIRECTORY = ".codespace/output"
KEPT_FILES = 200
KEPT_BYTES = 1024 * MIB
KEPT_SECONDS = 7 * 24 * 60 * 60
"""At each new file, older ones go: by age, and the oldest beyond this many files and bytes."""

_OURS = re.compile(r"(?:proc|script)-[A-Za-z0-9_-]+\.txt")
_LOOKED_AT = 10_000
_IGNORE = ".codespace/.gitignore"
_NEW = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
_OLD = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC
_CUT = "\n[the rest of the output was not kept]\n"


class OutputFile:
    """One new file, written piece by piece up to `max_bytes`.

    A file that cannot be written costs only itself: `path` is then `None`.
    """

    def __init__(self, root: Root, name: str, max_bytes: int) -> None:
        self._root = root
        self._path = f"{OUTPUT_DIRECTORY}/{name}"
        self._left = max_bytes
        self._fd = -1
        self._written = False
        self._ended = False

    @property
    def path(self) -> str | None:
        """The path relative to the root, or `None` when no such file could be written."""
        return self._path if self._written else None

    def append(self, text: str) -> None:
        """Write the next piece; past the limit, say once that the rest is not kept."""
        if self._ended:
            return
        data = text.encode("utf-8", "replace")
        if len(data) > self._left:
            data = _whole_characters(data, self._left) + _CUT.encode()
            self._ended = True
        self._left -= len(data)
        try:
            if self._fd < 0:
                self._fd = _create(self._root, self._path)
            _write_all(self._fd, data)
            self._written = True
        except (OSError, CodeSpaceError):
            self._written, self._ended = False, True
            self._discard()
        if self._ended:
            self.close()

    def close(self) -> None:
        """Release the file; nothing is written afterwards. Can be called more than once."""
        self._ended = True
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1

    def _discard(self) -> None:
        """Remove what was written of a file whose rest cannot be."""
        if self._fd < 0:
            return
        with (
            contextlib.suppress(OSError, CodeSpaceError),
            open_root(self._root) as directory,
            directory.parent(self._path) as (parent, name),
        ):
            if os.path.samestat(os.lstat(name, dir_fd=parent), os.fstat(self._fd)):
                os.unlink(name, dir_fd=parent)


class _Old(NamedTuple):
    changed: float
    name: str
    size: int


def _create(root: Root, path: str) -> int:
    with open_root(root) as directory, directory.parent(path, create=True) as (parent, name):
        # Output is not the user's work: it should not show in `git status`.
        with contextlib.suppress(OSError, CodeSpaceError):
            _ignore(directory)
        with contextlib.suppress(OSError):
            _prune(parent)
        file = os.open(name, _NEW, 0o600, dir_fd=parent)
        # Whoever prunes sees by this that it is being written; without locks, its age protects it.
        with contextlib.suppress(OSError):
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        return file


def _prune(parent: int) -> None:
    oldest_kept = time.time() - KEPT_SECONDS
    files, size = 1, 0
    for old in sorted(_old_files(parent), reverse=True):
        files, size = files + 1, size + old.size
        if files > KEPT_FILES or size > KEPT_BYTES or old.changed < oldest_kept:
            with contextlib.suppress(OSError):
                _remove_unless_written(parent, old.name)


def _old_files(parent: int) -> list[_Old]:
    """Return what the gateway may have written here; anything else is somebody's own."""
    found: list[_Old] = []
    with os.scandir(parent) as entries:
        for entry in islice(entries, _LOOKED_AT):
            if not _OURS.fullmatch(entry.name):
                continue
            with contextlib.suppress(OSError):
                status = entry.stat(follow_symlinks=False)
                if stat.S_ISREG(status.st_mode):
                    found.append(_Old(status.st_mtime, entry.name, status.st_size))
    return found


def _remove_unless_written(parent: int, name: str) -> None:
    file = os.open(name, _OLD, dir_fd=parent)
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        os.unlink(name, dir_fd=parent)
    finally:
        os.close(file)


def _ignore(directory: RootDirectory) -> None:
    with directory.parent(_IGNORE) as (parent, name):
        ignore = os.open(name, _NEW, 0o644, dir_fd=parent)
    try:
        _write_all(ignore, b"*\n")
    finally:
        os.close(ignore)


def _whole_characters(data: bytes, count: int) -> bytes:
    """Return at most `count` bytes of UTF-8, without a part of a character at the end."""
    while count > 0 and data[count] & 0xC0 == 0x80:  # noqa: PLR2004 -- UTF-8's own bits
        count -= 1
    return data[:count]


def _write_all(fd: int, data: bytes) -> None:
    view = memoryview(data)
    while view:
        view = view[os.write(fd, view) :]
