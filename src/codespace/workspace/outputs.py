"""Files under `.codespace/output/` of a workspace: output too long to answer with.

Commands can write there, too: nothing found there is trusted or followed.
"""

import contextlib
import os

from codespace.domain.errors import CodeSpaceError
from codespace.domain.workspace import Root
from codespace.workspace.directory import open_root

OUTPUT_DIRECTORY = ".codespace/output"
_IGNORE = ".codespace/.gitignore"
_CUT = "\n[the rest of the output was not kept]\n"


class OutputFile:
    """One new file, written piece by piece up to `max_bytes`.

    A file that cannot be written costs only itself: `path` is then `None`.
    """

    def __init__(self, root: Root, name: str, max_bytes: int) -> None:
        self._root = root
        self._name = name
        self._left = max_bytes
        self._fd = -1
        self._failed = False

    @property
    def path(self) -> str | None:
        """The path relative to the root, or `None` when it could not be written."""
        return None if self._failed else f"{OUTPUT_DIRECTORY}/{self._name}"

    def append(self, text: str) -> None:
        """Write the next piece; past the limit, say once that the rest is not kept."""
        if self._failed or self._left < 0:
            return
        data = text.encode("utf-8", "replace")
        if len(data) > self._left:
            data = data[: self._left] + _CUT.encode()
            self._left = -1
        else:
            self._left -= len(data)
        try:
            if self._fd < 0:
                self._fd = _create(self._root, f"{OUTPUT_DIRECTORY}/{self._name}")
            _write_all(self._fd, data)
        except (OSError, CodeSpaceError):
            self._failed = True
            self.close()

    def close(self) -> None:
        """Release the file; can be called more than once."""
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1


def _create(root: Root, path: str) -> int:
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
    with open_root(root) as directory:
        with directory.parent(path, create=True) as (parent, name):
            created = os.open(name, flags, 0o600, dir_fd=parent)
        # Output is not the user's work: it should not show in `git status`.
        with (
            contextlib.suppress(FileExistsError),
            directory.parent(_IGNORE) as (parent, name),
            os.fdopen(os.open(name, flags, 0o644, dir_fd=parent), "wb") as ignore,
        ):
            ignore.write(b"*\n")
    return created


def _write_all(fd: int, data: bytes) -> None:
    view = memoryview(data)
    while view:
        view = view[os.write(fd, view) :]
