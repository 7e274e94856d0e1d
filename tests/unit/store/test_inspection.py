"""Looking at a database: what is found, and that the look leaves no trace."""

import os
import sqlite3
from collections.abc import Generator
from contextlib import closing, contextmanager
from pathlib import Path

import pytest

from codespace.store.engine import Store
from codespace.store.errors import StoreError
from codespace.store.inspection import Seen, inspect


def state_of(directory: Path) -> dict[str, tuple[int, int, int, bytes]]:
    """Return all that a look could have changed."""
    return {
        str(place): (
            place.lstat().st_mode,
            place.lstat().st_ino,
            place.lstat().st_mtime_ns,
            place.read_bytes() if place.is_file() else b"",
        )
        for place in (directory, *directory.rglob("*"))
    }


@contextmanager
def untouched(directory: Path) -> Generator[None]:
    before = state_of(directory)
    yield
    assert state_of(directory) == before


def test_what_is_not_there_is_not_made(tmp_path: Path) -> None:
    with untouched(tmp_path):
        assert inspect(str(tmp_path / "ledger.db")) == Seen(exists=False)
        assert inspect(str(tmp_path / "deep" / "new" / "ledger.db")) == Seen(exists=False)


def test_a_sound_database_is_left_as_it_is(tmp_path: Path) -> None:
    path = tmp_path / "ledger.db"
    Store(str(path)).close()
    path.chmod(0o644)
    with untouched(tmp_path):
        assert inspect(str(path)) == Seen(exists=True)


def test_an_empty_file_will_do(tmp_path: Path) -> None:
    (tmp_path / "ledger.db").touch()
    (tmp_path / "link").symlink_to("ledger.db")
    with untouched(tmp_path):
        assert inspect(str(tmp_path / "link")) == Seen(exists=True)


def test_a_database_in_use_is_told_with_its_holder(tmp_path: Path) -> None:
    path = str(tmp_path / "ledger.db")
    store = Store(path)
    with untouched(tmp_path):
        assert inspect(path) == Seen(exists=True, holder=str(os.getpid()))
    store.close()
    assert inspect(path).holder is None


def test_what_a_killed_gateway_left_is_not_applied(tmp_path: Path) -> None:
    living = tmp_path / "living"
    living.mkdir()
    store = Store(str(living / "ledger.db"))
    left = tmp_path / "left"
    left.mkdir()
    for file in living.iterdir():
        (left / file.name).write_bytes(file.read_bytes())
    store.close()
    assert (left / "ledger.db-wal").stat().st_size
    with untouched(left):
        assert inspect(str(left / "ledger.db")) == Seen(exists=True)


@pytest.mark.parametrize(
    "content",
    [b"x", b"no database " * 500, b"SQLite format 3\0", b"SQLite format 3\0" + b"x" * 9_000],
)
def test_a_damaged_file_is_a_failure(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "ledger.db").write_bytes(content)
    with untouched(tmp_path), pytest.raises(StoreError, match="damaged"):
        inspect(str(tmp_path / "ledger.db"))


def test_pages_that_contradict_each_other_are_a_failure(tmp_path: Path) -> None:
    path = tmp_path / "ledger.db"
    Store(str(path)).close()
    data = bytearray(path.read_bytes())
    data[4096 * 2 : 4096 * 3] = b"\xff" * 4096
    path.write_bytes(data)
    with untouched(tmp_path), pytest.raises(StoreError, match="damaged"):
        inspect(str(path))


@pytest.mark.parametrize("with_log", [True, False])
def test_a_database_of_another_program_is_a_failure(tmp_path: Path, *, with_log: bool) -> None:
    path = tmp_path / "history.db"
    with closing(sqlite3.connect(path)) as other:
        other.execute("CREATE TABLE visits (url TEXT)")
    if with_log:
        (tmp_path / "history.db-wal").write_bytes(b"left over")
    with untouched(tmp_path), pytest.raises(StoreError, match="another program"):
        inspect(str(path))


def test_a_database_of_a_newer_version_is_a_failure(tmp_path: Path) -> None:
    path = str(tmp_path / "ledger.db")
    store = Store(path)
    with store.append() as connection:
        connection.execute("INSERT INTO schema_migrations VALUES (999, 'from the future')")
    store.close()
    with untouched(tmp_path), pytest.raises(StoreError, match="newer version"):
        inspect(path)


@pytest.mark.parametrize("name", ["ledger.db", "ledger.db.lock", "ledger.db-wal"])
@pytest.mark.parametrize("kind", ["directory", "fifo", "two names"])
def test_what_a_gateway_would_refuse_is_a_failure(tmp_path: Path, name: str, kind: str) -> None:
    place = tmp_path / name
    if kind == "directory":
        place.mkdir()
    elif kind == "fifo":
        os.mkfifo(place)
    else:
        (tmp_path / "other").touch()
        place.hardlink_to(tmp_path / "other")
    with untouched(tmp_path), pytest.raises(StoreError, match=r"regular file|more than one name"):
        inspect(str(tmp_path / "ledger.db"))


def test_a_place_that_can_hold_no_file_is_a_failure(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with untouched(tmp_path), pytest.raises(StoreError, match=r"cannot be (made|looked at)"):
        inspect(str(tmp_path / "file" / "ledger.db"))
