"""What scripts keep between runs: JSON texts by owner and key, in the gateway's database."""

import os
import sqlite3
from collections.abc import Mapping
from contextlib import closing
from dataclasses import dataclass
from urllib.parse import quote

from sqlalchemy import bindparam, delete, func, insert, select

from codespace.store.engine import Store
from codespace.store.errors import damaged
from codespace.store.schema import SCRIPT_VALUES as VALUES


@dataclass(frozen=True, slots=True)
class ScriptValues:
    """Reads and writes them. An owner is any text; owners see nothing of each other."""

    store: Store

    def owners(self) -> Mapping[str, int]:
        """Return the owners, with how many values each has."""
        chosen = select(VALUES.c.owner, func.count()).group_by(VALUES.c.owner)
        with self.store.read() as connection:
            rows = connection.execute(chosen.order_by(VALUES.c.owner)).all()
        return {str(owner): int(number) for owner, number in rows}

    def read(self, owner: str) -> Mapping[str, str]:
        """Return all values of one owner."""
        chosen = select(VALUES.c.key, VALUES.c.value).where(VALUES.c.owner == owner)
        with self.store.read() as connection:
            rows = connection.execute(chosen.order_by(VALUES.c.key)).all()
        return {str(key): str(value) for key, value in rows}

    def write(self, owner: str, changes: Mapping[str, str | None], *, most_chars: int) -> bool:
        """Keep the changes, all or none; `None` deletes a key.

        Return false, with nothing changed, when the owner would have more than `most_chars`.
        """
        mine = VALUES.c.owner == owner
        with self.store.write() as connection:
            if changes:
                # Row by row: a database takes only so many values in one statement.
                one = delete(VALUES).where(mine, VALUES.c.key == bindparam("changed"))
                connection.execute(one, [{"changed": key} for key in changes])
            rows = [
                {"owner": owner, "key": key, "value": value}
                for key, value in changes.items()
                if value is not None
            ]
            if rows:
                connection.execute(insert(VALUES), rows)
            total = connection.execute(
                select(func.coalesce(func.sum(func.length(VALUES.c.value)), 0)).where(mine)
            ).scalar_one()
            fits = int(total) <= most_chars
            if not fits:
                connection.rollback()
        return fits

    def clear(self, owner: str) -> int:
        """Delete all values of one owner; return how many there were."""
        with self.store.write() as connection:
            return connection.execute(delete(VALUES).where(VALUES.c.owner == owner)).rowcount


def lengths_beside(path: str) -> Mapping[str, Mapping[str, int]]:
    """Return the length of each value by owner and key, read beside whoever has the file open.

    Raises:
        StoreError: the file cannot be read.
    """
    chosen = select(VALUES.c.owner, VALUES.c.key, func.length(VALUES.c.value))
    statement = str(chosen.order_by(VALUES.c.owner, VALUES.c.key))
    uri = f"file:{quote(os.path.realpath(path))}?mode=ro"
    found: dict[str, dict[str, int]] = {}
    try:
        with closing(sqlite3.connect(uri, uri=True)) as connection:
            for owner, key, length in connection.execute(statement):
                found.setdefault(str(owner), {})[str(key)] = int(length)
    except sqlite3.Error as error:
        raise damaged(path, error) from error
    return found
