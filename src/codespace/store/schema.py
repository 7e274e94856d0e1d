"""The tables, and the numbered migrations that make them. Which database it is, is `engine`'s."""

from collections.abc import Callable

from sqlalchemy import (
    BigInteger,
    Boolean,
    Column,
    Connection,
    Index,
    Integer,
    LargeBinary,
    MetaData,
    String,
    Table,
    Text,
    UniqueConstraint,
    func,
    insert,
    inspect,
    select,
    text,
)

APPLICATION_ID = 0x436F6453
"""`CodS`, in the header of the file: tells ours from anybody else's."""

METADATA = MetaData()

MIGRATIONS_TABLE = Table(
    "schema_migrations",
    METADATA,
    Column("number", Integer, primary_key=True, autoincrement=False),
    Column("name", String, nullable=False),
)

OPERATIONS = Table(
    "operations",
    METADATA,
    Column("operation_id", String, primary_key=True),
    Column("workspace_id", String, nullable=False),
    Column("root", String, nullable=False),
    Column("operation_key", String),
    Column("fingerprint", String, nullable=False),
    Column("created_at", BigInteger, nullable=False),
    Column("finished_at", BigInteger),
    Column("status", String, nullable=False),
    Column("reason", String),
    Column("files", Text, nullable=False),
    Column("changes", Text, nullable=False),
    Column("error", Text),
    Column("directories", Text, nullable=False),
    UniqueConstraint("workspace_id", "operation_key", name="operations_key_once"),
    Index("operations_by_key", "operation_key"),
    Index("operations_by_end", "finished_at"),
)

OPERATION_IMAGES = Table(
    "operation_images",
    METADATA,
    Column("operation_id", String, primary_key=True),
    Column("manifest", Text, nullable=False),
    Column("content", LargeBinary, nullable=False),
)
"""The files of a running patch before it: one row, since one large write is cheaper than many."""

SCRIPT_VALUES = Table(
    "script_values",
    METADATA,
    Column("owner", String, primary_key=True),
    Column("key", String, primary_key=True),
    Column("value", Text, nullable=False),
)
"""What scripts keep between runs, as JSON texts."""

APPROVALS = Table(
    "approvals",
    METADATA,
    Column("approval_id", String, primary_key=True),
    Column("workspace_id", String, nullable=False),
    Column("root", String, nullable=False),
    Column("tool", String, nullable=False),
    Column("fingerprint", String, nullable=False),
    Column("digest", String, nullable=False),
    Column("created_at", BigInteger, nullable=False),
    Column("arguments", Text),
    Column("summary", Text),
    Column("state", String, nullable=False),
    Column("resolved_at", BigInteger),
    Column("resolved_by", String),
    Column("finished_at", BigInteger),
    Column("outcome", Text),
    Column("is_error", Boolean),
    Index("approvals_by_state", "state"),
    Index(
        "approvals_active_once",
        "fingerprint",
        unique=True,
        sqlite_where=text("state IN ('pending', 'granted', 'resuming')"),
    ),
)
"""Held calls. `arguments` and `summary` are gone once a hold has ended."""
WORKS = Table(
    "works",
    METADATA,
    Column("work_id", String, primary_key=True),
    Column("workspace_id", String, nullable=False),
    Column("title", Text, nullable=False),
    Column("state", String, nullable=False),
    Column("queue_revision", BigInteger, nullable=False),
    Column("created_at", BigInteger, nullable=False),
    Column("closed_at", BigInteger),
    Index("works_by_state", "state", "created_at"),
)

INTENTS = Table(
    "intents",
    METADATA,
    Column("intent_id", String, primary_key=True),
    Column("work_id", String, nullable=False),
    Column("workspace_id", String, nullable=False),
    Column("kind", String, nullable=False),
    Column("delivery", String, nullable=False),
    Column("state", String, nullable=False),
    Column("body", Text, nullable=False),
    Column("revision", BigInteger, nullable=False),
    Column("place", BigInteger, nullable=False),
    Column("created_at", BigInteger, nullable=False),
    Column("changed_at", BigInteger, nullable=False),
    Column("note", Text),
    Index("intents_by_work", "work_id", "state", "place"),
    Index("intents_by_place", "place"),
    Index("intents_for_the_next", "workspace_id", "delivery", "state"),
)
"""The user's instructions. A place counts over all works, so that one that moves keeps its turn."""

Migration = tuple[str, Callable[[Connection], None]]


def _create_operations(connection: Connection) -> None:
    # The tables as they were in this step: a later step changes these, not this text.
    tables = MetaData()
    Table(
        "operations",
        tables,
        Column("operation_id", String, primary_key=True),
        Column("workspace_id", String, nullable=False),
        Column("root", String, nullable=False),
        Column("operation_key", String),
        Column("fingerprint", String, nullable=False),
        Column("created_at", BigInteger, nullable=False),
        Column("finished_at", BigInteger),
        Column("status", String, nullable=False),
        Column("reason", String),
        Column("files", Text, nullable=False),
        Column("changes", Text, nullable=False),
        Column("error", Text),
        Column("directories", Text, nullable=False),
        UniqueConstraint("workspace_id", "operation_key", name="operations_key_once"),
        Index("operations_by_key", "operation_key"),
        Index("operations_by_end", "finished_at"),
    )
    Table(
        "operation_images",
        tables,
        Column("operation_id", String, primary_key=True),
        Column("manifest", Text, nullable=False),
        Column("content", LargeBinary, nullable=False),
    )
    tables.create_all(connection, checkfirst=False)


def _create_script_values(connection: Connection) -> None:
    tables = MetaData()
    Table(
        "script_values",
        tables,
        Column("owner", String, primary_key=True),
        Column("key", String, primary_key=True),
        Column("value", Text, nullable=False),
    )
    tables.create_all(connection, checkfirst=False)


def _create_approvals(connection: Connection) -> None:
    tables = MetaData()
    Table(
        "approvals",
        tables,
        Column("approval_id", String, primary_key=True),
        Column("workspace_id", String, nullable=False),
        Column("root", String, nullable=False),
        Column("tool", String, nullable=False),
        Column("fingerprint", String, nullable=False),
        Column("digest", String, nullable=False),
        Column("created_at", BigInteger, nullable=False),
        Column("arguments", Text),
        Column("summary", Text),
        Column("state", String, nullable=False),
        Column("resolved_at", BigInteger),
        Column("resolved_by", String),
        Column("finished_at", BigInteger),
        Column("outcome", Text),
        Column("is_error", Boolean),
        Index("approvals_by_state", "state"),
        Index(
            "approvals_active_once",
            "fingerprint",
            unique=True,
            sqlite_where=text("state IN ('pending', 'granted', 'resuming')"),
        ),
    )
    tables.create_all(connection, checkfirst=False)


def _create_works(connection: Connection) -> None:
    tables = MetaData()
    Table(
        "works",
        tables,
        Column("work_id", String, primary_key=True),
        Column("workspace_id", String, nullable=False),
        Column("title", Text, nullable=False),
        Column("state", String, nullable=False),
        Column("queue_revision", BigInteger, nullable=False),
        Column("created_at", BigInteger, nullable=False),
        Column("closed_at", BigInteger),
        Index("works_by_state", "state", "created_at"),
    )
    Table(
        "intents",
        tables,
        Column("intent_id", String, primary_key=True),
        Column("work_id", String, nullable=False),
        Column("workspace_id", String, nullable=False),
        Column("kind", String, nullable=False),
        Column("delivery", String, nullable=False),
        Column("state", String, nullable=False),
        Column("body", Text, nullable=False),
        Column("revision", BigInteger, nullable=False),
        Column("place", BigInteger, nullable=False),
        Column("created_at", BigInteger, nullable=False),
        Column("changed_at", BigInteger, nullable=False),
        Column("note", Text),
        Index("intents_by_work", "work_id", "state", "place"),
        Index("intents_by_place", "place"),
        Index("intents_for_the_next", "workspace_id", "delivery", "state"),
    )
    tables.create_all(connection, checkfirst=False)


MIGRATIONS: tuple[Migration, ...] = (
    ("create operations", _create_operations),
    ("create script values", _create_script_values),
    ("create approvals", _create_approvals),
    ("create works", _create_works),
)
"""In order; the number of a migration is its place, counted from 1. Only ever append."""


def schema_number(connection: Connection) -> int:
    """Return the number of the last migration that this database has seen; 0 for an empty one."""
    if not inspect(connection).has_table(MIGRATIONS_TABLE.name):
        return 0
    return connection.execute(select(func.max(MIGRATIONS_TABLE.c.number))).scalar() or 0


def migrate(connection: Connection, since: int) -> None:
    """Run the migrations after number `since`, in the caller's transaction."""
    if since == 0:
        MIGRATIONS_TABLE.create(connection, checkfirst=True)
    for number, (name, step) in enumerate(MIGRATIONS[since:], start=since + 1):
        step(connection)
        connection.execute(insert(MIGRATIONS_TABLE).values(number=number, name=name))
