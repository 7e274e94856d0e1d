"""Complete new files beside the places that they are to take; the swap itself is `transaction`'s.

Their names are derived from the operation, so that whoever comes after a crash finds them.
"""

import errno
import os
import stat
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from itertools import groupby

from codespace.domain.errors import CodeSpaceError
from codespace.domain.ids import OperationId
from codespace.workspace.directory import RootDirectory
from codespace.workspace.syscalls import Syscalls

_UNPRIVILEGED_BITS = 0o1777


@dataclass(frozen=True, slots=True)
class Ownership:
    """Permission bits and owner that a file is to have."""

    mode: int
    uid: int
    gid: int

    def without_privilege(self) -> "Ownership":
        """Return the same without set-user-id and set-group-id, as for any file written anew."""
        return Ownership(self.mode & _UNPRIVILEGED_BITS, self.uid, self.gid)


@dataclass(frozen=True, slots=True)
class Target:
    """A path, and its position among the files of the operation."""

    path: str
    position: int

    @property
    def name(self) -> str:
        """Its name in the directory that holds it."""
        return self.path.rpartition("/")[2]


@dataclass(frozen=True, slots=True)
class Temporaries:
    """The temporary files of one operation below one root."""

    root: RootDirectory
    operation_id: OperationId
    calls: Syscalls

    def name_of(self, position: int) -> str:
        """Return the hidden name of a file that is not in its place yet."""
        return f".{self.operation_id}.{position}.tmp"

    def write(
        self, position: int, data: bytes, ownership: Ownership | None, *, dir_fd: int, sync: bool
    ) -> None:
        """Write a complete temporary file. Without `ownership` it gets 0644 less the umask."""
        name = self.name_of(position)
        fd = self.calls.create(name, 0o644 if ownership is None else 0o600, dir_fd=dir_fd)
        try:
            rest = memoryview(data)
            while rest:
                rest = rest[self.calls.write(fd, rest) :]
            if ownership is not None:
                self._own(fd, ownership)
            if sync:
                self.calls.sync(fd)
        finally:
            os.close(fd)

    def remove(self, files: Iterable[Target]) -> None:
        """Remove what an unfinished write left beside the files of the operation."""
        for group in by_directory(files):
            with suppress(CodeSpaceError), self.root.parent(group[0].path) as (dir_fd, _):
                for file in group:
                    with suppress(OSError):
                        self.calls.unlink(self.name_of(file.position), dir_fd=dir_fd)

    def sync_directory(self, fd: int) -> None:
        """Make the names in a directory durable."""
        try:
            self.calls.sync(fd)
        except OSError as error:
            if error.errno not in (errno.EBADF, errno.EINVAL):
                raise
            # A directory that may be searched but not listed, or one that its filesystem does
            # not sync by itself: all of it, then.
            self.calls.sync_filesystem(self.root.fd)

    def _own(self, fd: int, ownership: Ownership) -> None:
        status = os.fstat(fd)
        if (status.st_uid, status.st_gid) != (ownership.uid, ownership.gid):
            # Only a privileged process may give a file away; a group of its own it may choose.
            try:
                self.calls.chown(fd, ownership.uid, ownership.gid)
            except PermissionError:
                with suppress(PermissionError):
                    self.calls.chown(fd, -1, ownership.gid)
        if stat.S_IMODE(status.st_mode) != ownership.mode:
            self.calls.chmod(fd, ownership.mode)


def by_directory(files: Iterable[Target]) -> Iterator[list[Target]]:
    """Group files by the directory that holds them, so that it is walked to once."""
    for _, group in groupby(sorted(files, key=_order), key=_directory):
        yield list(group)


def _directory(file: Target) -> str:
    return file.path.rpartition("/")[0]


def _order(file: Target) -> tuple[str, int]:
    return _directory(file), file.position
