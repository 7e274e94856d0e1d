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
from codespace.workspace.attributes import (
    NO_ATTRIBUTES,
    Attributes,
    put_access_list,
    put_others,
)
from codespace.workspace.directory import RootDirectory
from codespace.workspace.syscalls import Syscalls

_UNPRIVILEGED_BITS = 0o1777
_GROUP_BITS = 0o070
_NOT_OURS_TO_GIVE = (errno.EPERM, errno.EACCES, errno.EINVAL)
"""The last one is said of an owner whom this user namespace does not know."""


@dataclass(frozen=True, slots=True)
class Ownership:
    """Permission bits, owner and attributes that a file is to have.

    Where there is an access list, it decides about the permission bits in the end.
    """

    mode: int
    uid: int
    gid: int
    attributes: Attributes = NO_ATTRIBUTES

    def without_privilege(self) -> "Ownership":
        """Return the same without set-user-id and its like, as for any file written anew."""
        return Ownership(
            self.mode & _UNPRIVILEGED_BITS,
            self.uid,
            self.gid,
            self.attributes.without_privilege(),
        )


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
        attributes = ownership.attributes
        put_others(self.calls, fd, attributes)
        mode = attributes.mode_alone(ownership.mode)
        grouped = True
        if not self._give(fd, ownership.uid, ownership.gid):
            # Whoever owns it now is not who these bits were for.
            mode &= _UNPRIVILEGED_BITS
            grouped = self._give(fd, -1, ownership.gid)
            mode &= ~(0 if grouped else _GROUP_BITS)
        if stat.S_IMODE(os.fstat(fd).st_mode) != mode:
            self.calls.chmod(fd, mode)
        if grouped:
            put_access_list(self.calls, fd, attributes)

    def _give(self, fd: int, uid: int, gid: int) -> bool:
        """Give a file to an owner and a group; say whether they have it.

        Only a privileged process may give a file away; a group of its own it may choose.
        """
        status = os.fstat(fd)
        if gid == status.st_gid and uid in (-1, status.st_uid):
            return True
        try:
            self.calls.chown(fd, uid, gid)
        except OSError as error:
            if error.errno not in _NOT_OURS_TO_GIVE:
                raise
            return False
        return True


def by_directory(files: Iterable[Target]) -> Iterator[list[Target]]:
    """Group files by the directory that holds them, so that it is walked to once."""
    for _, group in groupby(sorted(files, key=_order), key=_directory):
        yield list(group)


def _directory(file: Target) -> str:
    return file.path.rpartition("/")[0]


def _order(file: Target) -> tuple[str, int]:
    return _directory(file), file.position
