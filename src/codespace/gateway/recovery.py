"""On start: settle from what is on disk every patch that a crash left unfinished.

The decision is `domain.operation.settle`'s, the restoring `workspace.restore`'s. Nothing is ever
applied again.
"""

import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from codespace.domain.errors import CodeSpaceError, ErrorCode
from codespace.domain.ids import WorkspaceId
from codespace.domain.operation import NOT_ESTABLISHED, RECOVERED, Operation, settle
from codespace.domain.patch import PatchStatus
from codespace.domain.paths import shown_raw
from codespace.domain.workspace import Workspace
from codespace.store.operations import Operations, Remains
from codespace.workspace.directory import open_root
from codespace.workspace.restore import Restorer
from codespace.workspace.syscalls import Syscalls
from codespace.workspace.temporaries import Target, Temporaries

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Recovery:
    """Settles unfinished operations. Nothing else may write in their workspaces meanwhile."""

    operations: Operations
    now_ms: Callable[[], int]
    durable: bool = True
    calls: Syscalls = field(default_factory=Syscalls)

    def settle(self, operation: Operation, workspace: Workspace | None) -> Operation:
        """Establish the outcome of one unfinished operation, record it and return the record.

        An operation of a directory that is not served here stays unfinished, with its
        before-images, until it is: nothing else can bring its files back.

        Raises:
            StoreError: the outcome was not recorded.
        """
        if workspace is None or workspace.root.path != operation.root:
            log.warning("patch left unfinished operation=%s", operation.operation_id)
            return operation
        remains = self.operations.remains(operation.operation_id)
        if remains is None:
            outcome = _Outcome(PatchStatus.UNKNOWN)
        else:
            outcome = self._settle_on_disk(remains, workspace)
        unknown = outcome.status is PatchStatus.UNKNOWN
        ended = operation.finish(
            outcome.status,
            self.now_ms(),
            reason=NOT_ESTABLISHED if unknown else RECOVERED,
            error=outcome.error(),
        )
        self.operations.finish(ended)
        log.warning(
            "patch settled operation=%s status=%s", operation.operation_id, outcome.status.value
        )
        return ended

    def _settle_on_disk(self, remains: Remains, workspace: Workspace) -> "_Outcome":
        try:
            with open_root(workspace.root) as root:
                temporaries = Temporaries(root, remains.operation.operation_id, self.calls)
                temporaries.remove(
                    Target(image.path, position) for position, image in enumerate(remains.images)
                )
                outcome = _carry_out(
                    Restorer(temporaries, remains.images, remains.directories, durable=self.durable)
                )
                if self.durable:
                    # The crash may have come before anything was synced.
                    self.calls.sync_filesystem(root.fd)
                return outcome
        except (OSError, CodeSpaceError):
            return _Outcome(PatchStatus.UNKNOWN)


def recover(
    operations: Operations,
    workspaces: Mapping[WorkspaceId, Workspace],
    *,
    now_ms: Callable[[], int],
    durable: bool = True,
) -> tuple[Operation, ...]:
    """Settle every unfinished operation, before anything else may write; return the records.

    Raises:
        StoreError: the ledger cannot be read or written.
    """
    recovery = Recovery(operations, now_ms, durable)
    found = (operations.find(operation_id) for operation_id in operations.unfinished())
    settled = tuple(
        recovery.settle(operation, workspaces.get(operation.workspace_id))
        for operation in found
        if operation is not None
    )
    operations.store.reclaim()
    return settled


@dataclass(frozen=True, slots=True)
class _Outcome:
    status: PatchStatus
    files: tuple[Mapping[str, str], ...] = ()

    def error(self) -> CodeSpaceError | None:
        """Return what the client of the patch is answered from now on."""
        if self.status is PatchStatus.APPLIED:
            return None
        details: dict[str, object] = {"status": self.status.value, "errno": "EINTR"}
        if self.files:
            details["files"] = list(self.files)
        return CodeSpaceError(
            ErrorCode.FILE_OPERATION_FAILED,
            f"The gateway ended while the patch was being written; {_ADVICE[self.status]}.",
            details=details,
        )


_ADVICE = {
    PatchStatus.FAILED_ROLLED_BACK: "every file was restored, so send it again with another key",
    PatchStatus.FAILED_PARTIAL: "not every file could be restored, so look at each one in details",
    PatchStatus.UNKNOWN: "its outcome could not be established, so read the files before you go on",
}


def _carry_out(restorer: Restorer) -> _Outcome:
    decision = settle(restorer.observe())
    if decision.status is not PatchStatus.FAILED_ROLLED_BACK:
        return _Outcome(decision.status)
    clean = restorer.restore(decision.restore)
    states = [(image.path, image.state(current)) for image, current in restorer.observe()]
    if clean and all(state == "before" for _, state in states):
        return _Outcome(PatchStatus.FAILED_ROLLED_BACK)
    files = tuple({"path": shown_raw(path), "state": state} for path, state in states)
    return _Outcome(PatchStatus.FAILED_PARTIAL, files)
