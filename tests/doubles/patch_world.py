"""One workspace with a ledger, and everything that applies patches to it."""

import itertools
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from codespace.domain.errors import CodeSpaceError
from codespace.domain.ids import OperationKey, ProcessId, WorkspaceId
from codespace.domain.limits import Limits
from codespace.domain.operation import Operation
from codespace.domain.workspace import Profile, Workspace
from codespace.gateway.leases import Leases
from codespace.gateway.patches import Patches, PatchOutcome, PatchRequest
from codespace.gateway.recovery import recover
from codespace.store.engine import Store
from codespace.store.operations import Operations
from codespace.workspace.directory import register
from codespace.workspace.syscalls import Syscalls
from doubles.failing_syscalls import FailingSyscalls, Faults

NOW_MS = 1_700_000_000_000
DEMO = WorkspaceId("demo")


@dataclass(frozen=True, slots=True)
class PatchWorld:
    """The parts, and short names for what tests do with them. Live processes are in `live`."""

    root: Path
    workspace: Workspace
    operations: Operations
    patches: Patches
    leases: Leases
    live: set[ProcessId]

    async def apply(
        self,
        patch: str,
        *,
        key: str | None = None,
        expected: dict[str, str] | None = None,
        check_only: bool = False,
    ) -> PatchOutcome:
        return await self.patches.apply(
            self.workspace,
            PatchRequest(
                patch=patch,
                expected_versions=expected or {},
                operation_key=None if key is None else OperationKey(key),
                check_only=check_only,
            ),
        )

    async def refused(
        self,
        patch: str,
        *,
        key: str | None = None,
        expected: dict[str, str] | None = None,
    ) -> CodeSpaceError:
        try:
            outcome = await self.apply(patch, key=key, expected=expected)
        except CodeSpaceError as error:
            return error
        raise AssertionError(f"the patch was not refused: {outcome}")

    def record(self, error: CodeSpaceError) -> Operation:
        """Return what the ledger holds of a refusal."""
        found = [
            operation
            for operation in self.recorded()
            if operation.operation_id == error.operation_id
        ]
        assert len(found) == 1, error
        return found[0]

    def recorded(self) -> list[Operation]:
        """Return the whole ledger."""
        with self.operations.store.read() as connection:
            ids = connection.exec_driver_sql("SELECT operation_id FROM operations ORDER BY 1").all()
        found = [self.operations.find(row[0]) for row in ids]
        return [operation for operation in found if operation is not None]

    def images(self) -> int:
        """Return of how many operations before-images are kept."""
        with self.operations.store.read() as connection:
            return connection.exec_driver_sql("SELECT count(*) FROM operation_images").scalar_one()

    def restart(self) -> tuple[Operation, ...]:
        """Settle as the next start of a gateway would."""
        return recover(self.operations, {DEMO: self.workspace}, now_ms=lambda: NOW_MS + 1)


@contextmanager
def patch_world(
    root: Path,
    *,
    faults: Faults | None = None,
    database: str | None = None,
    limits: Limits | None = None,
    durable: bool = False,
    first: int = 1,
) -> Generator[PatchWorld]:
    """Make a world around `root`; ids are `op-1`, `op-2` and so on, from `first`."""
    root.mkdir(exist_ok=True)
    store = Store(database, durable=durable)
    try:
        operations = Operations(store)
        live: set[ProcessId] = set()

        async def is_live(process_id: ProcessId) -> bool:
            return process_id in live

        leases = Leases(is_live)
        numbers = itertools.count(first)
        calls = Syscalls() if faults is None else FailingSyscalls(faults)
        patches = Patches(
            operations,
            leases,
            limits or Limits(),
            now_ms=lambda: NOW_MS,
            mint=lambda prefix: f"{prefix}{next(numbers)}",
            durable=durable,
            calls=calls,
        )
        workspace = Workspace(DEMO, register(str(root)), Profile.WORKSPACE_WRITE)
        yield PatchWorld(root, workspace, operations, patches, leases, live)
    finally:
        store.close()


def patch(*sections: str) -> str:
    """Return a patch of these sections."""
    return "\n".join(["*** Begin Patch", *sections, "*** End Patch"])


def add(path: str, *lines: str) -> str:
    return "\n".join([f"*** Add File: {path}", *(f"+{line}" for line in lines)])


def delete(path: str) -> str:
    return f"*** Delete File: {path}"


def update(path: str, old: str, new: str, *, move_to: str | None = None) -> str:
    move = [] if move_to is None else [f"*** Move to: {move_to}"]
    return "\n".join([f"*** Update File: {path}", *move, "@@", f"-{old}", f"+{new}"])
