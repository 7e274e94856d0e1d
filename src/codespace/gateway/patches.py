"""The use-case of a patch, in the contract's order: key, lease, then all the rest in a thread.

Policy was asked before (`dispatch`). What a request does on disk is `writing`'s.
"""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import ParamSpec, TypeVar

import anyio.to_thread
from anyio import CapacityLimiter

from codespace.domain.errors import CodeSpaceError, ErrorCode
from codespace.domain.ids import OPERATION_PREFIX, OperationId, OperationKey, WorkspaceId
from codespace.domain.limits import Limits
from codespace.domain.operation import Operation, fingerprint
from codespace.domain.patch import Change, PatchStatus
from codespace.domain.workspace import Workspace
from codespace.gateway.leases import Leases
from codespace.gateway.recovery import Recovery
from codespace.gateway.writing import PatchRequest, Writer, ledger_failed
from codespace.store.engine import StoreError
from codespace.store.operations import Operations
from codespace.workspace.syscalls import Syscalls

__all__ = ["PatchOutcome", "PatchRequest", "Patches"]

P = ParamSpec("P")
T = TypeVar("T")

_THREADS = 4
_FORGETFUL = (
    " The ledger of this gateway is in memory, so what was recorded before its last start is"
    " forgotten: read the files to see whether the patch was applied."
)

_Slot = tuple[WorkspaceId, OperationKey | None, OperationId | None]


@dataclass(frozen=True, slots=True)
class PatchOutcome:
    """A patch that was applied or checked. `replayed`: it is an earlier call's recorded result."""

    status: PatchStatus
    operation_id: OperationId
    replayed: bool
    files: tuple[str, ...]
    changes: tuple[Change, ...]


@dataclass(frozen=True, slots=True)
class _Answer:
    record: Operation
    replayed: bool


@dataclass(frozen=True, slots=True)
class _Flight:
    """A request on its way: a task of its own, so that it ends as it would when its client goes."""

    fingerprint: str
    task: asyncio.Task[_Answer]


@dataclass(frozen=True, slots=True)
class Patches:
    """Applies patches and knows how they ended.

    Attributes:
        operations: the ledger.
        leases: who may change which workspace.
        limits: sizes and counts.
        now_ms: Unix milliseconds.
        mint: makes an unguessable id of a prefix.
        durable: whether an applied patch survives a power cut.
        calls: the system calls that change files.
    """

    operations: Operations
    leases: Leases
    limits: Limits
    now_ms: Callable[[], int]
    mint: Callable[[str], str]
    durable: bool = True
    calls: Syscalls = field(default_factory=Syscalls)
    _flights: dict[_Slot, _Flight] = field(default_factory=dict[_Slot, _Flight], init=False)
    _unsettled: set[WorkspaceId] = field(default_factory=set[WorkspaceId], init=False)
    _threads: CapacityLimiter = field(default_factory=lambda: CapacityLimiter(_THREADS), init=False)

    async def apply(self, workspace: Workspace, request: PatchRequest) -> PatchOutcome:
        """Apply or check a patch, or return what was recorded under its key.

        A caller that is cancelled leaves; its patch goes on to its end and is recorded.

        Raises:
            CodeSpaceError: the refusal or failure, with its operation where one was recorded;
                WORKSPACE_BUSY, OPERATION_KEY_CONFLICT and LIMIT_EXCEEDED record none.
        """
        self._require_limits(request)
        flight, joined = self._flight(workspace, request)
        await asyncio.wait({flight.task})
        answer = flight.task.result()
        record = answer.record
        refusal = record.refusal()
        if refusal is not None:
            raise refusal
        return PatchOutcome(
            status=record.status,
            operation_id=record.operation_id,
            replayed=answer.replayed or joined,
            files=record.files,
            changes=record.changes,
        )

    async def recorded(self, workspace: Workspace, request: PatchRequest) -> PatchOutcome | None:
        """Return what is known under the request's key, or on its way; `None` for a new request.

        Raises:
            CodeSpaceError: OPERATION_KEY_CONFLICT, the recorded refusal or failure, or
                LIMIT_EXCEEDED for what `apply` would refuse before everything else.
        """
        self._require_limits(request)
        key = request.operation_key
        if key is None:
            return None
        if (workspace.workspace_id, key, None) not in self._flights and not await self._in_thread(
            self.operations.find_by_key, key, workspace.workspace_id
        ):
            return None
        return await self.apply(workspace, request)

    async def status(
        self,
        *,
        operation_id: OperationId | None = None,
        operation_key: OperationKey | None = None,
        workspace_id: WorkspaceId | None = None,
    ) -> Operation:
        """Return the record of an operation, by exactly one of its id and its key.

        Raises:
            CodeSpaceError: OPERATION_NOT_FOUND.
        """
        if operation_id is not None and operation_key is None:
            found = await self._in_thread(self._by_id, operation_id)
        elif operation_key is not None and operation_id is None:
            found = await self._in_thread(self.operations.find_by_key, operation_key, workspace_id)
        else:
            raise _not_found("Give exactly one of operation_id and operation_key.")
        if len(found) > 1:
            raise _not_found("Several workspaces used this operation key; give workspace_id, too.")
        if not found:
            raise _not_found(
                "No operation is recorded under this id or key."
                + ("" if self.operations.lasting else _FORGETFUL)
            )
        return found[0]

    async def drain(self) -> None:
        """Wait for every patch on its way; call it before the store is closed."""
        while self._flights:
            await asyncio.wait({flight.task for flight in self._flights.values()})

    def _flight(self, workspace: Workspace, request: PatchRequest) -> tuple[_Flight, bool]:
        """Return the flight of a request, and whether another client has begun it."""
        workspace_id, key = workspace.workspace_id, request.operation_key
        mark = fingerprint(request.patch, request.expected_versions, check_only=request.check_only)
        minted = Operation(
            operation_id=OperationId(self.mint(OPERATION_PREFIX)),
            workspace_id=workspace_id,
            root=workspace.root.path,
            fingerprint=mark,
            created_at=self.now_ms(),
            operation_key=key,
        )
        slot = (workspace_id, key, minted.operation_id if key is None else None)
        flight = self._flights.get(slot)
        if flight is not None:
            _require_same(flight.fingerprint, mark)
            return flight, True
        flight = _Flight(mark, asyncio.create_task(self._fly(workspace, request, minted)))
        self._flights[slot] = flight
        flight.task.add_done_callback(lambda task: self._landed(slot, task))
        return flight, False

    def _landed(self, slot: _Slot, task: asyncio.Task[_Answer]) -> None:
        del self._flights[slot]
        if not task.cancelled():
            # Looked at, so that the loop does not report it when every client is gone.
            task.exception()

    async def _fly(self, workspace: Workspace, request: PatchRequest, minted: Operation) -> _Answer:
        if request.operation_key is not None:
            found = await self._in_thread(
                self.operations.find_by_key, request.operation_key, workspace.workspace_id
            )
            for recorded in found:
                _require_same(recorded.fingerprint, minted.fingerprint)
                _require_same_root(recorded.root, minted.root)
                return _Answer(await self._ended(workspace, recorded), replayed=True)
        await self.leases.hold_for_patch(workspace.workspace_id, minted.operation_id)
        try:
            return _Answer(await self._execute(workspace, request, minted), replayed=False)
        finally:
            self.leases.release(workspace.workspace_id, minted.operation_id)

    async def _execute(
        self, workspace: Workspace, request: PatchRequest, minted: Operation
    ) -> Operation:
        workspace_id = workspace.workspace_id
        if workspace_id in self._unsettled:
            await self._in_thread(self._settle_all, workspace)
            self._unsettled.discard(workspace_id)
        writer = Writer(
            self.operations, self.limits, self.now_ms, durable=self.durable, calls=self.calls
        )
        try:
            return await self._in_thread(writer.execute, workspace, request, minted)
        except BaseException:
            # Its end may not be in the ledger: nothing may be built on it before it is settled.
            self._unsettled.add(workspace_id)
            raise

    async def _ended(self, workspace: Workspace, recorded: Operation) -> Operation:
        """Return the record with its end; settle it where its end could not be recorded."""
        if recorded.finished_at is not None:
            return recorded
        await self.leases.hold_for_patch(workspace.workspace_id, recorded.operation_id)
        try:
            return await self._in_thread(self._recovery().settle, recorded, workspace)
        finally:
            self.leases.release(workspace.workspace_id, recorded.operation_id)

    def _settle_all(self, workspace: Workspace) -> None:
        for operation in map(self.operations.find, self.operations.unfinished()):
            if operation is not None and operation.workspace_id == workspace.workspace_id:
                self._recovery().settle(operation, workspace)

    def _recovery(self) -> Recovery:
        return Recovery(self.operations, self.now_ms, self.durable, self.calls)

    def _by_id(self, operation_id: OperationId) -> tuple[Operation, ...]:
        found = self.operations.find(operation_id)
        return () if found is None else (found,)

    async def _in_thread(self, work: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        try:
            return await anyio.to_thread.run_sync(
                lambda: work(*args, **kwargs), limiter=self._threads
            )
        except StoreError as error:
            raise ledger_failed(error) from error

    def _require_limits(self, request: PatchRequest) -> None:
        key = request.operation_key or ""
        for name, size, limit in (
            ("patch_max_bytes", _size("patch", request.patch), self.limits.patch_max_bytes),
            ("operation_key_max_chars", len(key), self.limits.operation_key_max_chars),
            ("patch_max_files", len(request.expected_versions), self.limits.patch_max_files),
        ):
            if size > limit:
                raise CodeSpaceError(
                    ErrorCode.LIMIT_EXCEEDED,
                    f"The request is too large ({name} is {limit}); make it smaller.",
                    details={"limit": name, "maximum": limit},
                )
        _size("operation_key", key)


def _size(name: str, text: str) -> int:
    """Return how many bytes a text has in UTF-8, which is how everybody reads and stores it."""
    try:
        return len(text.encode())
    except UnicodeEncodeError as error:
        raise CodeSpaceError(
            ErrorCode.INVALID_ARGUMENT,
            f"{name} is not valid Unicode; send it as UTF-8.",
            details={"path": name},
        ) from error


def _require_same(recorded: str, asked: str) -> None:
    if recorded != asked:
        raise CodeSpaceError(
            ErrorCode.OPERATION_KEY_CONFLICT,
            "The operation key was used for a different request; use another key, also for a"
            " preview and its patch.",
        )


def _require_same_root(recorded: str, asked: str) -> None:
    # The workspace's name may stand for another directory now, in which nothing was applied.
    if recorded != asked:
        raise CodeSpaceError(
            ErrorCode.OPERATION_KEY_CONFLICT,
            "The operation key was used when this workspace was another directory; use another.",
        )


def _not_found(sentence: str) -> CodeSpaceError:
    return CodeSpaceError(ErrorCode.OPERATION_NOT_FOUND, sentence)
