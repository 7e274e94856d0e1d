"""The database: opening it, transactions, and everything that differs by dialect.

What is stored is the other modules'. Reads and rare writes go through SQLAlchemy Core; the hot
appends of the ledger go through `append`, on the driver itself.
"""

import sqlite3
import threading
from collections.abc import Generator
from contextlib import contextmanager

from sqlalchemy import Connection, Engine, create_engine, event
from sqlalchemy.exc import SQLAlchemyError
from sqlalchemy.pool import QueuePool, StaticPool

from codespace.store.errors import StoreError, damaged, foreign, too_new
from codespace.store.ownership import WriterLock, claim
from codespace.store.schema import APPLICATION_ID, MIGRATIONS, migrate, schema_number

__all__ = ["Store", "StoreError"]

_BUSY_MS = 5_000
_WAL_KEPT_BYTES = 4 * 1024 * 1024


class Store:
    """One open database. Safe to use from several threads; writes are taken one at a time.

    Attributes:
        durable: whether a commit survives a power cut; a killed process never loses one.
        lasting: whether anything survives the end of this process: not in memory.
    """

    def __init__(
        self, path: str | None = None, *, durable: bool = True, patience_seconds: float = 3.0
    ) -> None:
        """Open the file at `path`, or a database in memory that nothing survives.

        A client may start its server anew before the old one has left: `patience_seconds` is how
        long another holder of the file is waited for.

        Raises:
            StoreError: the file is damaged, is something else, is newer than this version, or is
                in use by another process.
        """
        self.durable = durable
        self.lasting = path is not None
        self._writing = threading.RLock()
        self._lock: WriterLock | None = None
        if path is None:
            self._open(":memory:")
            return
        resolved, self._lock = claim(path, patience_seconds=patience_seconds)
        try:
            self._open(resolved)
        except BaseException:
            self._lock.release()
            raise

    @contextmanager
    def append(self) -> Generator[sqlite3.Connection]:
        """One write transaction on the driver's connection: kept when the block ends well.

        Raises:
            StoreError: the database cannot take it. `sqlite3.IntegrityError` is the caller's.
        """
        with self._writing:
            try:
                self._raw.execute("BEGIN IMMEDIATE")
                yield self._raw
                self._raw.execute("COMMIT")
            except sqlite3.IntegrityError:
                raise
            except sqlite3.Error as error:
                raise _failed(error) from error
            finally:
                if self._raw.in_transaction:
                    self._raw.execute("ROLLBACK")

    @contextmanager
    def write(self, *, synced: bool = True) -> Generator[Connection]:
        """One write transaction in SQLAlchemy Core.

        One that is not `synced` survives the end of this process, and a power cut only once the
        next synced one is durable: for what may be lost as long as nothing was built on it.
        """
        with self._writing:
            try:
                with self._syncing(synced=synced), self._writer.begin() as connection:
                    yield connection
            except SQLAlchemyError as error:
                raise _failed(error) from error

    @contextmanager
    def read(self) -> Generator[Connection]:
        """One consistent view of the database in SQLAlchemy Core."""
        if self._readers is self._writer:
            with self.write() as connection:
                yield connection
            return
        try:
            with self._readers.begin() as connection:
                yield connection
        except SQLAlchemyError as error:
            raise _failed(error) from error

    def reclaim(self) -> None:
        """Give the room of dropped rows back to the filesystem, if it is worth the effort."""
        with self._writing:
            try:
                free: int = self._raw.execute("PRAGMA freelist_count").fetchone()[0]
                size: int = self._raw.execute("PRAGMA page_size").fetchone()[0]
                if free * size > _WAL_KEPT_BYTES:
                    # `execute` would step the statement once, and so free a single page.
                    self._raw.executescript("PRAGMA incremental_vacuum")
            except sqlite3.Error as error:
                raise _failed(error) from error

    def close(self) -> None:
        """Close the database and give up the right to write it."""
        with self._writing:
            self._readers.dispose()
            self._writer.dispose()
            self._raw.close()
            if self._lock is not None:
                self._lock.release()

    @contextmanager
    def _syncing(self, *, synced: bool) -> Generator[None]:
        if synced or not self.durable:
            yield
            return
        self._raw.execute("PRAGMA synchronous = NORMAL")
        try:
            yield
        finally:
            self._raw.execute("PRAGMA synchronous = FULL")

    def _open(self, path: str) -> None:
        try:
            self._raw = self._connect(path)
        except sqlite3.Error as error:
            raise _unusable(path, error) from error
        self._writer = _transactional(
            create_engine("sqlite://", creator=lambda: self._raw, poolclass=StaticPool),
            "BEGIN IMMEDIATE",
        )
        self._readers = self._writer
        if path != ":memory:":
            self._readers = _transactional(
                create_engine(
                    "sqlite://", creator=lambda: self._connect(path), poolclass=QueuePool
                ),
                "BEGIN",
            )
        try:
            self._prepare(path)
        except BaseException:
            self._raw.close()
            raise

    def _connect(self, path: str) -> sqlite3.Connection:
        # isolation_level None: the driver begins nothing by itself, so that a transaction is
        # what the code says it is, also around DDL.
        connection = sqlite3.connect(path, isolation_level=None, check_same_thread=False)
        try:
            connection.execute(f"PRAGMA busy_timeout = {_BUSY_MS}")
            connection.execute(f"PRAGMA synchronous = {'FULL' if self.durable else 'OFF'}")
            connection.execute(f"PRAGMA journal_size_limit = {_WAL_KEPT_BYTES}")
            connection.execute("PRAGMA trusted_schema = OFF")
            # What is dropped was the content of files.
            connection.execute("PRAGMA secure_delete = ON")
        except BaseException:
            connection.close()
            raise
        return connection

    def _prepare(self, path: str) -> None:
        try:
            self._require_ours(path)
            with self._writer.begin() as connection:
                number = schema_number(connection)
                if number > len(MIGRATIONS):
                    raise too_new(path)
                migrate(connection, number)
        except (sqlite3.Error, SQLAlchemyError) as error:
            raise _unusable(path, error) from error

    def _require_ours(self, path: str) -> None:
        found: int = self._raw.execute("PRAGMA application_id").fetchone()[0]
        tables: int = self._raw.execute("SELECT count(*) FROM sqlite_master").fetchone()[0]
        if tables and found != APPLICATION_ID:
            raise foreign(path)
        if not tables:
            self._raw.execute("PRAGMA auto_vacuum = INCREMENTAL")
            self._raw.execute(f"PRAGMA application_id = {APPLICATION_ID}")
        elif self._raw.execute("PRAGMA quick_check(1)").fetchone()[0] != "ok":
            raise sqlite3.DatabaseError("the pages contradict each other")
        if path != ":memory:":
            mode: str = self._raw.execute("PRAGMA journal_mode = WAL").fetchone()[0]
            if mode != "wal":
                raise StoreError(
                    f"The filesystem of the operations database {path!r} cannot hold a"
                    " write-ahead log; put it on a local disk with CODESPACE_OPERATIONS_DB."
                )


def _transactional(engine: Engine, begin: str) -> Engine:
    def start(connection: Connection) -> None:
        connection.exec_driver_sql(begin)

    event.listen(engine, "begin", start)
    return engine


def _failed(error: Exception) -> StoreError:
    cause = error.__cause__ if isinstance(error, SQLAlchemyError) else error
    full = getattr(cause, "sqlite_errorname", "") == "SQLITE_FULL"
    # SQLAlchemy's own text repeats the statement and its values, which may be contents.
    reason = cause or type(error).__name__
    return StoreError(f"The operations database failed: {reason}.", full=full)


def _unusable(path: str, error: Exception) -> StoreError:
    cause = error.__cause__ if isinstance(error, SQLAlchemyError) else error
    return damaged(path, cause or error)
