from collections.abc import Iterator

import pytest
from sqlalchemy import Connection, Engine, MetaData, create_engine, inspect

from codespace.store.schema import METADATA, MIGRATIONS, migrate, schema_number


@pytest.fixture
def engine() -> Iterator[Engine]:
    engine = create_engine("sqlite://")
    yield engine
    engine.dispose()


def shape(connection: Connection, tables: MetaData) -> dict[str, list[tuple[str, str, bool]]]:
    dialect = connection.dialect
    return {
        name: [
            (column.name, column.type.compile(dialect=dialect), bool(column.nullable))
            for column in table.columns
        ]
        for name, table in tables.tables.items()
    }


def test_migrations_lead_to_the_tables_that_the_code_uses(engine: Engine) -> None:
    with engine.begin() as connection:
        migrate(connection, schema_number(connection))
        found = MetaData()
        found.reflect(connection)
        assert shape(connection, found) == shape(connection, METADATA)
        indexes = {index["name"] for index in inspect(connection).get_indexes("operations")}
        assert indexes == {"operations_by_key", "operations_by_end"}
        unique = inspect(connection).get_unique_constraints("operations")
        assert [constraint["column_names"] for constraint in unique] == [
            ["workspace_id", "operation_key"]
        ]


def test_each_migration_runs_once(engine: Engine) -> None:
    with engine.begin() as connection:
        migrate(connection, schema_number(connection))
    with engine.begin() as connection:
        assert schema_number(connection) == len(MIGRATIONS)
        migrate(connection, schema_number(connection))
        rows = connection.exec_driver_sql("SELECT number, name FROM schema_migrations").all()
    assert [tuple(row) for row in rows] == [
        (number, name) for number, (name, _) in enumerate(MIGRATIONS, 1)
    ]


def test_an_empty_database_has_seen_no_migration(engine: Engine) -> None:
    with engine.begin() as connection:
        assert schema_number(connection) == 0
