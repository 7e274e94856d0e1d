import sqlite3
import stat
import threading
from pathlib import Path

import pytest
from sqlalchemy import text

from codespace.store.engine import Store, StoreError


def test_a_file_outlives_its_store_and_a_memory_does_not(tmp_path: Path) -> None:
    path = str(tmp_path / "ledger.db")
    for database, expected in ((path, 1), (None, 0)):
        store = Store(database)
        with store.write() as connection:
            connection.execute(text("CREATE TABLE IF NOT EXISTS mark (n INTEGER)"))
            connection.execute(text("INSERT INTO mark VALUES (1)"))
        store.close()
        store = Store(database)
        with store.read() as connection:
            query = text("SELECT count(*) FROM sqlite_master WHERE name = 'mark'")
            assert connection.execute(query).scalar_one() == expected
        store.close()


def test_every_file_of_the_database_is_the_owners_alone(tmp_path: Path) -> None:
    store = Store(str(tmp_path / "ledger.db"))
    with store.read() as connection:
        connection.execute(text("SELECT 1"))
    found = {path.name: stat.S_IMODE(path.stat().st_mode) for path in tmp_path.iterdir()}
    store.close()
    names = {"ledger.db", "ledger.db-wal", "ledger.db-shm", "ledger.db.lock"}
    assert found == dict.fromkeys(names, 0o600)


@pytest.mark.parametrize(("durable", "level"), [(True, 2), (False, 0)])
def test_a_durable_store_waits_for_the_disk(tmp_path: Path, durable: bool, level: int) -> None:  # noqa: FBT001 -- a parameter of the table
    store = Store(str(tmp_path / "ledger.db"), durable=durable)
    with store.append() as connection:
        assert connection.execute("PRAGMA journal_mode").fetchone() == ("wal",)
        assert connection.execute("PRAGMA synchronous").fetchone() == (level,)
    store.close()


def test_only_a_write_that_need_not_wait_for_the_disk_does_not(tmp_path: Path) -> None:
    store = Store(str(tmp_path / "ledger.db"))
    for synced, level in ((False, 1), (True, 2), (False, 1)):
        with store.write(synced=synced) as connection:
            assert connection.execute(text("PRAGMA synchronous")).scalar_one() == level
    with pytest.raises(StoreError), store.write(synced=False) as connection:
        connection.execute(text("SELECT * FROM nothing"))
    with store.append() as connection:
        assert connection.execute("PRAGMA synchronous").fetchone() == (2,)
    store.close()


def test_what_is_dropped_is_no_longer_in_the_file(tmp_path: Path) -> None:
    path = tmp_path / "ledger.db"
    store = Store(str(path))
    with store.append() as connection:
        connection.execute("CREATE TABLE mark (content BLOB)")
        connection.executemany("INSERT INTO mark VALUES (?)", [(b"hunter2" * 2_000,), (b"kept",)])
    with store.append() as connection:
        connection.execute("DELETE FROM mark WHERE length(content) > 4")
    store.close()
    assert b"kept" in path.read_bytes()
    assert b"hunter2" not in path.read_bytes()


def test_only_a_store_in_a_file_lasts(tmp_path: Path) -> None:
    for database, lasting in ((str(tmp_path / "ledger.db"), True), (None, False)):
        store = Store(database)
        assert store.lasting is lasting
        store.close()


def test_a_second_store_on_the_same_file_is_refused(tmp_path: Path) -> None:
    path = str(tmp_path / "ledger.db")
    store = Store(path)
    with pytest.raises(StoreError, match="in use"):
        Store(path, patience_seconds=0)
    store.close()
    Store(path, patience_seconds=0).close()


@pytest.mark.parametrize(
    "content", [b"not a database at all" * 100, b"SQLite format 3\0" + b"x" * 9000]
)
def test_a_damaged_file_is_named_and_left_alone(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "ledger.db"
    path.write_bytes(content)
    with pytest.raises(StoreError, match=r"damaged.*CODESPACE_OPERATIONS_DB"):
        Store(str(path))
    assert path.read_bytes() == content


def test_a_page_that_contradicts_the_others_is_found(tmp_path: Path) -> None:
    path = tmp_path / "ledger.db"
    Store(str(path)).close()
    data = bytearray(path.read_bytes())
    data[4096 * 2 : 4096 * 3] = b"\xff" * 4096
    path.write_bytes(data)
    with pytest.raises(StoreError, match="damaged"):
        Store(str(path))


def test_a_database_of_another_program_is_not_touched(tmp_path: Path) -> None:
    path = tmp_path / "history.db"
    other = sqlite3.connect(path)
    other.execute("CREATE TABLE visits (url TEXT)")
    other.close()
    before = path.read_bytes()
    with pytest.raises(StoreError, match="another program"):
        Store(str(path))
    assert path.read_bytes() == before


def test_a_database_of_a_newer_version_is_refused(tmp_path: Path) -> None:
    path = str(tmp_path / "ledger.db")
    store = Store(path)
    with store.append() as connection:
        connection.execute("INSERT INTO schema_migrations VALUES (999, 'from the future')")
    store.close()
    with pytest.raises(StoreError, match="newer version"):
        Store(path)


def test_a_refused_file_is_free_again(tmp_path: Path) -> None:
    path = tmp_path / "ledger.db"
    path.write_bytes(b"damaged" * 1000)
    with pytest.raises(StoreError):
        Store(str(path))
    path.unlink()
    Store(str(path), patience_seconds=0).close()


def _append(store: Store, *statements: str) -> None:
    with store.append() as connection:
        for statement in statements:
            connection.execute(statement)


def _append_and_fail(store: Store, statement: str) -> None:
    with store.append() as connection:
        connection.execute(statement)
        raise ZeroDivisionError


def test_an_append_that_fails_leaves_nothing() -> None:
    store = Store()
    with store.append() as connection:
        connection.execute("CREATE TABLE mark (n INTEGER PRIMARY KEY)")
    insert = "INSERT INTO mark VALUES (1)"
    with pytest.raises(sqlite3.IntegrityError):
        _append(store, insert, insert)
    with pytest.raises(StoreError):
        _append(store, insert, "nonsense")
    with pytest.raises(ZeroDivisionError):
        _append_and_fail(store, insert)
    with store.read() as connection:
        assert connection.execute(text("SELECT count(*) FROM mark")).scalar_one() == 0
    store.close()


def test_a_statement_that_fails_is_a_store_error() -> None:
    store = Store()
    with pytest.raises(StoreError, match="no such table"), store.read() as connection:
        connection.execute(text("SELECT * FROM nowhere"))
    store.close()


def test_a_full_database_says_so(tmp_path: Path) -> None:
    store = Store(str(tmp_path / "ledger.db"))
    with store.append() as connection:
        connection.execute("CREATE TABLE mark (content BLOB)")
        connection.execute("PRAGMA max_page_count = 20")
    with pytest.raises(StoreError) as caught, store.append() as connection:
        connection.execute("INSERT INTO mark VALUES (zeroblob(1000000))")
    assert caught.value.full
    store.close()


def test_many_threads_write_one_after_the_other(tmp_path: Path) -> None:
    store = Store(str(tmp_path / "ledger.db"), durable=False)
    with store.append() as connection:
        connection.execute("CREATE TABLE mark (n INTEGER)")

    def write(number: int) -> None:
        for _ in range(20):
            with store.append() as connection:
                connection.execute("INSERT INTO mark VALUES (?)", (number,))
            with store.read() as reading:
                reading.execute(text("SELECT count(*) FROM mark")).scalar_one()

    threads = [threading.Thread(target=write, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(timeout=30)
    with store.read() as reading:
        assert reading.execute(text("SELECT count(*) FROM mark")).scalar_one() == 80
    store.close()


def test_room_of_dropped_rows_is_given_back(tmp_path: Path) -> None:
    path = tmp_path / "ledger.db"
    store = Store(str(path))
    with store.append() as connection:
        connection.execute("CREATE TABLE mark (content BLOB)")
        connection.execute("INSERT INTO mark VALUES (zeroblob(9000000))")
    with store.append() as connection:
        connection.execute("DELETE FROM mark")
    store.reclaim()
    store.close()
    assert path.stat().st_size < 1_000_000
