"""A look at a database that makes and changes nothing: whether a gateway could use it."""

import fcntl
import os
import sqlite3
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote

from codespace.store.errors import StoreError, damaged, foreign, too_new
from codespace.store.ownership import COMPANIONS, LOCK, require_own
from codespace.store.schema import APPLICATION_ID, MIGRATIONS, MIGRATIONS_TABLE

_HEADER_BYTES = 100
_MAGIC = b"SQLite format 3\0"
_APPLICATION_ID_AT = slice(68, 72)
_LOGS = ("-wal", "-journal")


@dataclass(frozen=True, slots=True)
class Seen:
    """What is there. `holder` is the process that has the database in use."""

    exists: bool
    holder: str | None = None


def inspect(path: str) -> Seen:
    """Return what is at `path`.

    Raises:
        StoreError: a gateway could not use it.
    """
    resolved = Path(os.path.realpath(path))
    for suffix in ("", LOCK, *COMPANIONS):
        _require_usable(resolved.with_name(resolved.name + suffix))
    if not resolved.exists():
        _require_room(path, resolved.parent)
        return Seen(exists=False)
    holder = _holder(resolved.with_name(resolved.name + LOCK))
    if holder is None:
        _require_ours(path, resolved)
    return Seen(exists=True, holder=holder)


def _require_usable(file: Path) -> None:
    try:
        require_own(str(file), file.lstat())
    except FileNotFoundError:
        return
    except OSError as error:
        raise StoreError(f"{str(file)!r} cannot be looked at: {error.strerror}.") from error
    if not os.access(file, os.R_OK | os.W_OK):
        raise StoreError(f"{str(file)!r} cannot be read and written by this user.")


def _require_room(path: str, directory: Path) -> None:
    while not directory.exists():
        directory = directory.parent
    if not directory.is_dir() or not os.access(directory, os.W_OK | os.X_OK):
        raise StoreError(
            f"The operations database {path!r} cannot be made: {str(directory)!r} is no directory"
            " that this user may write. Name a file in one with CODESPACE_OPERATIONS_DB."
        )


def _holder(lock: Path) -> str | None:
    try:
        descriptor = os.open(lock, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK | os.O_NOFOLLOW)
    except OSError:
        return None
    try:
        # Shared and for an instant: a gateway that starts meanwhile waits longer than that.
        fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return os.pread(descriptor, 32, 0).decode("ascii", "replace").strip() or "unknown"
    finally:
        os.close(descriptor)
    return None


def _require_ours(path: str, file: Path) -> None:
    with file.open("rb") as content:
        header = content.read(_HEADER_BYTES)
    if not header:
        return
    if not header.startswith(_MAGIC) or len(header) < _HEADER_BYTES:
        raise damaged(path, "file is not a database")
    if any(_size(file.with_name(file.name + suffix)) for suffix in _LOGS):
        # A log that was left behind is part of the database; only the next start can apply it.
        if int.from_bytes(header[_APPLICATION_ID_AT], "big") != APPLICATION_ID:
            raise foreign(path)
        return
    try:
        # `immutable` is what keeps SQLite from making files beside this one.
        uri = f"file:{quote(str(file))}?mode=ro&immutable=1"
        with closing(sqlite3.connect(uri, uri=True)) as connection:
            _require_sound(path, connection)
    except sqlite3.Error as error:
        raise damaged(path, error) from error


def _require_sound(path: str, connection: sqlite3.Connection) -> None:
    def ask(question: str) -> object:
        return connection.execute(question).fetchone()[0]

    if not ask("SELECT count(*) FROM sqlite_master"):
        return
    if ask("PRAGMA application_id") != APPLICATION_ID:
        raise foreign(path)
    if ask("PRAGMA quick_check(1)") != "ok":
        raise damaged(path, "the pages contradict each other")
    number = ask(f"SELECT coalesce(max(number), 0) FROM {MIGRATIONS_TABLE.name}")  # noqa: S608 -- our own name
    if isinstance(number, int) and number > len(MIGRATIONS):
        raise too_new(path)


def _size(file: Path) -> int:
    try:
        return file.stat().st_size
    except OSError:
        return 0
