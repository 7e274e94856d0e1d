"""The ledger of patches: records, idempotency keys and, while a patch runs, its before-images.

One method is one transaction. What an unfinished record means is `domain.operation`'s to decide.
"""

import json
import sqlite3
from collections.abc import Sequence
from dataclasses import dataclass

from sqlalchemy import ColumnElement, Row, select

from codespace.domain.errors import CodeSpaceError, ErrorCode
from codespace.domain.ids import OperationId, OperationKey, WorkspaceId
from codespace.domain.operation import FileImage, Operation
from codespace.domain.patch import Change, PatchStatus
from codespace.store.engine import Store
from codespace.store.schema import OPERATION_IMAGES, OPERATIONS

_COLUMNS = tuple(column.name for column in OPERATIONS.columns)
_INSERT_OPERATION = (
    f"INSERT INTO operations ({', '.join(_COLUMNS)})"  # noqa: S608 -- our own column names
    f" VALUES ({', '.join('?' * len(_COLUMNS))})"
)
_INSERT_IMAGES = "INSERT INTO operation_images (operation_id, manifest, content) VALUES (?, ?, ?)"
_FINISH = (
    "UPDATE operations SET finished_at = ?, status = ?, reason = ?, error = ?,"
    " directories = '[]' WHERE operation_id = ? AND finished_at IS NULL"
)
_DROP_IMAGES = "DELETE FROM operation_images WHERE operation_id = ?"
_LAST_COPIES = (PatchStatus.FAILED_PARTIAL, PatchStatus.UNKNOWN)


@dataclass(frozen=True, slots=True)
class Remains:
    """What the ledger holds of an unfinished operation.

    `directories` are those that the patch was to make, outermost first.
    """

    operation: Operation
    images: tuple[FileImage, ...]
    directories: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Operations:
    """The ledger in one store. Its methods block; call them from a worker thread."""

    store: Store

    @property
    def lasting(self) -> bool:
        """Whether the records survive the end of this process."""
        return self.store.lasting

    def find(self, operation_id: OperationId) -> Operation | None:
        """Return the record of `operation_id`."""
        found = self._select(OPERATIONS.c.operation_id == operation_id)
        return found[0] if found else None

    def find_by_key(
        self, key: OperationKey, workspace_id: WorkspaceId | None = None
    ) -> tuple[Operation, ...]:
        """Return the records under `key`: at most one a workspace."""
        conditions = [OPERATIONS.c.operation_key == key]
        if workspace_id is not None:
            conditions.append(OPERATIONS.c.workspace_id == workspace_id)
        return self._select(*conditions)

    def begin(
        self, operation: Operation, images: Sequence[FileImage], directories: Sequence[str]
    ) -> None:
        """Record a patch that is about to write, in one commit that is durable on return.

        Raises:
            CodeSpaceError: OPERATION_KEY_CONFLICT.
            StoreError: nothing was recorded.
        """
        self._insert(operation, directories, images)

    def record(self, operation: Operation) -> None:
        """Record an operation that ended without writing anything.

        Raises:
            CodeSpaceError: OPERATION_KEY_CONFLICT.
            StoreError: nothing was recorded.
        """
        self._insert(operation, (), ())

    def finish(self, operation: Operation) -> None:
        """Record the end of an operation, and drop its before-images.

        They stay where they may be the last copy of somebody's work: after a failure that could
        not be undone, and after an outcome that could not be established.

        Raises:
            StoreError: the end was not recorded; the operation stays unfinished.
        """
        status = operation.status
        with self.store.append() as connection:
            connection.execute(
                _FINISH,
                (
                    operation.finished_at,
                    status,
                    operation.reason,
                    _error_text(operation),
                    operation.operation_id,
                ),
            )
            if status not in _LAST_COPIES:
                connection.execute(_DROP_IMAGES, (operation.operation_id,))

    def unfinished(self) -> tuple[OperationId, ...]:
        """Return the operations without an end, oldest first."""
        query = (
            select(OPERATIONS.c.operation_id)
            .where(OPERATIONS.c.finished_at.is_(None))
            .order_by(OPERATIONS.c.created_at, OPERATIONS.c.operation_id)
        )
        with self.store.read() as connection:
            return tuple(OperationId(str(row[0])) for row in connection.execute(query))

    def remains(self, operation_id: OperationId) -> Remains | None:
        """Return what is left of an operation; its images are empty once it ended well."""
        query = select(OPERATIONS).where(OPERATIONS.c.operation_id == operation_id)
        kept = select(OPERATION_IMAGES.c.manifest, OPERATION_IMAGES.c.content).where(
            OPERATION_IMAGES.c.operation_id == operation_id
        )
        with self.store.read() as connection:
            row = connection.execute(query).one_or_none()
            packed = connection.execute(kept).one_or_none()
        if row is None:
            return None
        images = () if packed is None else _unpacked(packed.manifest, packed.content)
        return Remains(_operation(row), images, tuple(json.loads(row.directories)))

    def _select(self, *conditions: ColumnElement[bool]) -> tuple[Operation, ...]:
        query = select(OPERATIONS).where(*conditions).order_by(OPERATIONS.c.created_at)
        with self.store.read() as connection:
            return tuple(_operation(row) for row in connection.execute(query))

    def _insert(
        self, operation: Operation, directories: Sequence[str], images: Sequence[FileImage]
    ) -> None:
        try:
            with self.store.append() as connection:
                connection.execute(_INSERT_OPERATION, _values(operation, directories))
                if images:
                    packed = (operation.operation_id, *_packed(images))
                    connection.execute(_INSERT_IMAGES, packed)
        except sqlite3.IntegrityError as error:
            raise CodeSpaceError(
                ErrorCode.OPERATION_KEY_CONFLICT,
                "The operation key is taken; ask operation_status for it, or use another key.",
            ) from error


def _values(operation: Operation, directories: Sequence[str]) -> tuple[object, ...]:
    return (
        operation.operation_id,
        operation.workspace_id,
        operation.root,
        operation.operation_key,
        operation.fingerprint,
        operation.created_at,
        operation.finished_at,
        operation.status,
        operation.reason,
        json.dumps(operation.files),
        json.dumps([_change(change) for change in operation.changes]),
        _error_text(operation),
        json.dumps(directories),
    )


def _change(change: Change) -> dict[str, object]:
    return {
        "path": change.path,
        "kind": change.kind,
        "source": change.source,
        "before_version": change.before_version,
        "after_version": change.after_version,
        "added": change.added,
        "removed": change.removed,
    }


def _error_text(operation: Operation) -> str | None:
    return None if operation.error is None else json.dumps(operation.error)


def _operation(row: Row[tuple[object, ...]]) -> Operation:
    return Operation(
        operation_id=row.operation_id,
        workspace_id=row.workspace_id,
        root=row.root,
        fingerprint=row.fingerprint,
        created_at=row.created_at,
        operation_key=row.operation_key,
        files=tuple(json.loads(row.files)),
        changes=tuple(Change(**change) for change in json.loads(row.changes)),
        status=PatchStatus(row.status),
        finished_at=row.finished_at,
        reason=row.reason,
        error=None if row.error is None else json.loads(row.error),
    )


def _packed(images: Sequence[FileImage]) -> tuple[str, bytes]:
    manifest = [
        (
            image.path,
            None if image.before is None else len(image.before),
            image.before_version,
            image.planned_version,
            image.mode,
            image.uid,
            image.gid,
        )
        for image in images
    ]
    return json.dumps(manifest), b"".join(image.before or b"" for image in images)


def _unpacked(manifest: str, content: bytes) -> tuple[FileImage, ...]:
    images: list[FileImage] = []
    start = 0
    for path, size, before_version, planned_version, mode, uid, gid in json.loads(manifest):
        before = None if size is None else content[start : start + size]
        start += size or 0
        images.append(FileImage(path, before, before_version, planned_version, mode, uid, gid))
    return tuple(images)
