"""The database's files belong to one user and to one writing process at a time."""

import errno
import fcntl
import os
import stat
import time
from pathlib import Path

from codespace.store.errors import StoreError

COMPANIONS = ("-wal", "-shm", "-journal")
"""What SQLite may keep beside a database, by the ends of the names."""
LOCK = ".lock"

_OWNER_ONLY = 0o600
_POLL_SECONDS = 0.02


class WriterLock:
    """The right to write one database file, held until `release` or the end of the process.

    Several writers of one SQLite file starve each other, and each would settle the operations
    that the other one is still running. The lock is the kernel's, so a killed holder leaves none.
    """

    def __init__(self, database: str, *, patience_seconds: float = 3.0) -> None:
        """Take the lock beside `database`; wait a moment for a holder that is just leaving.

        Raises:
            StoreError: another process holds it. The message names it.
        """
        self._descriptor = _open_private(f"{database}{LOCK}")
        try:
            self._take(database, patience_seconds)
        except BaseException:
            os.close(self._descriptor)
            raise

    def release(self) -> None:
        """Give the right back. The file stays: removing it would let two processes hold it."""
        if self._descriptor >= 0:
            os.ftruncate(self._descriptor, 0)
            os.close(self._descriptor)
            self._descriptor = -1

    def _take(self, database: str, patience_seconds: float) -> None:
        deadline = time.monotonic() + patience_seconds
        while not self._try():
            if time.monotonic() >= deadline:
                holder = os.pread(self._descriptor, 32, 0).decode("ascii", "replace").strip()
                raise StoreError(
                    f"The operations database {database!r} is in use by another gateway"
                    f" (process {holder or 'unknown'}). Stop that one, or give this one a database"
                    " of its own with CODESPACE_OPERATIONS_DB."
                )
            time.sleep(_POLL_SECONDS)
        os.ftruncate(self._descriptor, 0)
        os.pwrite(self._descriptor, f"{os.getpid()}\n".encode(), 0)

    def _try(self) -> bool:
        try:
            fcntl.flock(self._descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        return True


def claim(path: str, *, patience_seconds: float = 3.0) -> tuple[str, WriterLock]:
    """Make the database's file owner-only and take its lock; return its path without links, too.

    Two names of one file must meet in one lock, so links are resolved first. Missing directories
    are made for the owner alone.

    Raises:
        StoreError: the file cannot be made, is somebody else's, or is in use.
    """
    resolved = Path(os.path.realpath(path))
    try:
        _make_directories(resolved.parent)
    except OSError as error:
        raise StoreError(
            f"The directory of the operations database {path!r} cannot be made: {error.strerror}."
            " Give CODESPACE_OPERATIONS_DB a file in a directory that this user may write."
        ) from error
    lock = WriterLock(str(resolved), patience_seconds=patience_seconds)
    try:
        # Only with the lock held: closing any descriptor of a file drops this process's own
        # record locks on it, which are what SQLite uses.
        os.close(_open_private(str(resolved)))
        for suffix in COMPANIONS:
            companion = f"{resolved}{suffix}"
            if os.path.lexists(companion):
                os.close(_open_private(companion))
    except BaseException:
        lock.release()
        raise
    return str(resolved), lock


def _make_directories(directory: Path) -> None:
    # mkdir(parents=True) gives only the last directory the mode that is asked for.
    if directory.is_dir():
        return
    _make_directories(directory.parent)
    directory.mkdir(0o700, exist_ok=True)


def require_own(path: str, status: os.stat_result) -> None:
    """Refuse a file that somebody else could have put there or could reach by another name.

    Raises:
        StoreError: it is no regular file, is another user's, or has several names.
    """
    if not stat.S_ISREG(status.st_mode):
        raise StoreError(f"{path!r} is no regular file; name another one.")
    if status.st_uid != os.geteuid():
        raise StoreError(
            f"{path!r} belongs to another user; run the gateway as that one, or name another file."
        )
    if status.st_nlink != 1:
        raise StoreError(
            f"{path!r} has more than one name (hard links), by which others could reach it; remove"
            " those, or name another file."
        )


def _open_private(path: str) -> int:
    flags = os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NONBLOCK | os.O_NOFOLLOW
    try:
        descriptor = os.open(path, flags, _OWNER_ONLY)
        try:
            _make_private(path, descriptor)
        except BaseException:
            os.close(descriptor)
            raise
    except OSError as error:
        reason = "it is a symbolic link" if error.errno == errno.ELOOP else error.strerror
        raise StoreError(
            f"{path!r} cannot be opened for writing by its owner alone: {reason}."
        ) from error
    return descriptor


def _make_private(path: str, descriptor: int) -> None:
    status = os.fstat(descriptor)
    require_own(path, status)
    if stat.S_IMODE(status.st_mode) != _OWNER_ONLY:
        os.fchmod(descriptor, _OWNER_ONLY)
