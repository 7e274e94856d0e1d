"""The database's files belong to one user and to one writing process at a time."""

import fcntl
import os
import stat
import time
from pathlib import Path

from codespace.store.errors import StoreError

_OWNER_ONLY = 0o600
_POLL_SECONDS = 0.02
_FOREIGN_BITS = stat.S_IRWXG | stat.S_IRWXO


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
        self._descriptor = _open_private(f"{database}.lock")
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
        for suffix in ("-wal", "-shm"):
            companion = f"{resolved}{suffix}"
            if Path(companion).exists():
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


def _open_private(path: str) -> int:
    flags = os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NONBLOCK
    try:
        descriptor = os.open(path, flags, _OWNER_ONLY)
        try:
            _make_private(path, descriptor)
        except BaseException:
            os.close(descriptor)
            raise
    except OSError as error:
        raise StoreError(
            f"{path!r} cannot be opened for writing by its owner alone: {error.strerror}."
        ) from error
    return descriptor


def _make_private(path: str, descriptor: int) -> None:
    mode = os.fstat(descriptor).st_mode
    if not stat.S_ISREG(mode):
        raise StoreError(f"{path!r} is no regular file; name another one.")
    if mode & _FOREIGN_BITS:
        os.fchmod(descriptor, _OWNER_ONLY)
