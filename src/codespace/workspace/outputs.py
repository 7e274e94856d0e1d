"""Files under `.codespace/output/` of a workspace: output too long to answer with.

Commands can write there, too: nothing found there is trusted or followed.
"""

import contextlib
import os

from codespace.domain.errors import CodeSpaceError
from codespace.domain.workspace import Root
from codespace.workspace.directory import RootDirectory, open_root

OUTPUT_DIRECTORY = ".codespace/output"
_IGNORE = ".codespace/.gitignore"
_NEW = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
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
        if self._ended:
            self.close()

    def close(self) -> None:
        """Release the file; nothing is written afterwards. Can be called more than once."""
        self._ended = True
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1


def _create(root: Root, path: str) -> int:
    with open_root(root) as directory, directory.parent(path, create=True) as (parent, name):
        # Output is not the user's work: it should not show in `git status`.
        with contextlib.suppress(OSError, CodeSpaceError):
            _ignore(directory)
        return os.open(name, _NEW, 0o600, dir_fd=parent)


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
