"""What scripts keep: by owner and key, all or nothing, beyond the end of the process."""

import sqlite3
from collections.abc import Iterator
from pathlib import Path

import pytest

from codespace.store.engine import Store
from codespace.store.errors import StoreError
from codespace.store.schema import METADATA, MIGRATIONS
from codespace.store.values import ScriptValues, lengths_beside

MOST = 100


@pytest.fixture
def values() -> Iterator[ScriptValues]:
    store = Store()
    yield ScriptValues(store)
    store.close()


def test_a_value_is_read_as_it_was_written(values: ScriptValues) -> None:
    given = {"": "1", "é 😀": '"é\\u0000"', "a" * 1_000: "null"}
    assert values.write("me", given, most_chars=MOST)
    assert values.read("me") == given


def test_a_later_value_takes_the_place_of_an_earlier_one(values: ScriptValues) -> None:
    values.write("me", {"a": "1", "b": "2", "c": "3"}, most_chars=MOST)
    values.write("me", {"a": "10", "b": None, "never": None}, most_chars=MOST)
    assert values.read("me") == {"a": "10", "c": "3"}


def test_no_change_changes_nothing(values: ScriptValues) -> None:
    values.write("me", {"a": "1"}, most_chars=MOST)
    assert values.write("me", {}, most_chars=MOST)
    assert values.read("me") == {"a": "1"}


def test_owners_share_nothing(values: ScriptValues) -> None:
    values.write("one", {"k": "1"}, most_chars=MOST)
    values.write("other", {"k": "2", "l": "3"}, most_chars=MOST)
    assert values.read("one") == {"k": "1"}
    assert values.read("nobody") == {}
    assert values.owners() == {"one": 1, "other": 2}
    assert values.clear("other") == 2
    assert values.owners() == {"one": 1}


def test_changes_that_are_too_much_are_kept_all_or_not_at_all(values: ScriptValues) -> None:
    before = {"kept": "1" * 60, "gone": "2" * 40}
    assert values.write("me", before, most_chars=MOST)
    assert not values.write("me", {"gone": None, "new": "3" * 41}, most_chars=MOST)
    assert values.read("me") == before
    assert values.write("me", {"gone": None, "new": "3" * 40}, most_chars=MOST)
    assert values.read("me") == {"kept": "1" * 60, "new": "3" * 40}


def test_the_room_is_the_owners_own_and_is_counted_in_characters(values: ScriptValues) -> None:
    assert values.write("one", {"k": "x" * MOST}, most_chars=MOST)
    assert values.write("other", {"k": "é" * MOST}, most_chars=MOST)


def test_one_run_may_change_more_keys_than_a_statement_takes_values(values: ScriptValues) -> None:
    many = {f"k{number}": "1" for number in range(40_000)}
    assert values.write("me", many, most_chars=len(many))
    assert values.owners() == {"me": len(many)}


def test_values_outlive_their_store(tmp_path: Path) -> None:
    path = str(tmp_path / "ledger.db")
    store = Store(path)
    ScriptValues(store).write("me", {"k": "1"}, most_chars=MOST)
    store.close()
    store = Store(path)
    assert ScriptValues(store).read("me") == {"k": "1"}
    store.close()


def test_a_ledger_from_before_gets_the_table_and_keeps_what_it_has(tmp_path: Path) -> None:
    path = tmp_path / "ledger.db"
    Store(str(path)).close()
    old = sqlite3.connect(path)
    for table in ("script_values", "approvals", "works", "intents"):
        old.execute(f"DROP TABLE {table}")
    old.execute("DELETE FROM schema_migrations WHERE number > 1")
    columns = [column.name for column in METADATA.tables["operations"].columns]
    old.execute(f"INSERT INTO operations VALUES ({', '.join('?' * len(columns))})", columns)
    old.commit()
    old.close()
    store = Store(str(path))
    assert ScriptValues(store).write("me", {"k": "1"}, most_chars=MOST)
    with store.append() as connection:
        numbers = connection.execute("SELECT number FROM schema_migrations").fetchall()
        rows = connection.execute("SELECT * FROM operations").fetchall()
    store.close()
    assert numbers == [(number,) for number in range(1, len(MIGRATIONS) + 1)]
    assert rows == [tuple(columns)]


def test_lengths_are_read_beside_whoever_writes(tmp_path: Path) -> None:
    path = str(tmp_path / "odd ?#%.db")
    store = Store(path)
    ScriptValues(store).write("me", {"b": '"é"', "a": "1"}, most_chars=MOST)
    ScriptValues(store).write("you", {"a": "12"}, most_chars=MOST)
    assert lengths_beside(path) == {"me": {"a": 1, "b": 3}, "you": {"a": 2}}
    ScriptValues(store).clear("me")
    assert lengths_beside(path) == {"you": {"a": 2}}
    store.close()


def test_a_file_that_is_no_database_has_no_lengths(tmp_path: Path) -> None:
    (tmp_path / "text").write_text("no database " * 500, encoding="utf-8")
    with pytest.raises(StoreError, match="is no database"):
        lengths_beside(str(tmp_path / "text"))
