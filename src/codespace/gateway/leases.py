"""The mutation lease of each workspace: one running patch or one live process at a time.

In memory, for it guards what this gateway runs: neither patches nor processes outlive it.
"""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Literal

from codespace.domain.errors import CodeSpaceError, ErrorCode
from codespace.domain.ids import OperationId, ProcessId, WorkspaceId


@dataclass(frozen=True, slots=True)
class Holder:
    """Who holds a lease. `judged`: whether a process may be asked for if it still lives."""

    kind: Literal["process", "patch"]
    id: str
    judged: bool = False


@dataclass(frozen=True, slots=True)
class Leases:
    """Who may change which workspace.

    A process is not asked to give its lease back: whoever wants the lease looks whether the
    process is still live. So a client that saw it exit is never told that it is in the way.
    """

    is_live: Callable[[ProcessId], Awaitable[bool]]
    _held: dict[WorkspaceId, Holder] = field(default_factory=dict[WorkspaceId, Holder], init=False)

    async def hold_for_process(self, workspace_id: WorkspaceId, process_id: ProcessId) -> None:
        """Take the lease for a process that is about to start; then call `started` or `release`.

        Raises:
            CodeSpaceError: WORKSPACE_BUSY.
        """
        await self._hold(workspace_id, Holder("process", process_id))

    def started(self, workspace_id: WorkspaceId, process_id: ProcessId) -> None:
        """Let the lease end with the process: before this, one that is not known is still ours."""
        if self._held.get(workspace_id) == Holder("process", process_id):
            self._held[workspace_id] = Holder("process", process_id, judged=True)

    async def hold_for_patch(self, workspace_id: WorkspaceId, operation_id: OperationId) -> None:
        """Take the lease for a patch, until `release`.

        Raises:
            CodeSpaceError: WORKSPACE_BUSY.
        """
        await self._hold(workspace_id, Holder("patch", operation_id))

    def release(self, workspace_id: WorkspaceId, holder_id: str) -> None:
        """Give a lease back; nothing happens when somebody else holds it."""
        holder = self._held.get(workspace_id)
        if holder is not None and holder.id == holder_id:
            del self._held[workspace_id]

    async def holder(self, workspace_id: WorkspaceId) -> Holder | None:
        """Return who holds the lease now."""
        holder = self._held.get(workspace_id)
        while holder is not None and holder.judged:
            if await self.is_live(ProcessId(holder.id)):
                return holder
            # Only the holder that was judged goes: somebody may have come meanwhile.
            if self._held.get(workspace_id) is holder:
                del self._held[workspace_id]
            holder = self._held.get(workspace_id)
        return holder

    async def require_free(self, workspace_id: WorkspaceId) -> None:
        """Return when nobody holds the lease now; it may be taken in the next instant.

        Raises:
            CodeSpaceError: WORKSPACE_BUSY.
        """
        holder = await self.holder(workspace_id)
        if holder is not None:
            raise _busy(holder)

    async def _hold(self, workspace_id: WorkspaceId, wanted: Holder) -> None:
        holder = await self.holder(workspace_id)
        if holder is not None:
            raise _busy(holder)
        self._held[workspace_id] = wanted


def _busy(holder: Holder) -> CodeSpaceError:
    if holder.kind == "process":
        advice = f"Process {holder.id!r} is live in this workspace; wait for its end or end it"
    else:
        advice = f"Patch {holder.id!r} is being applied in this workspace; try again in a moment"
    return CodeSpaceError(
        ErrorCode.WORKSPACE_BUSY,
        f"{advice}.",
        details={"holder": {"kind": holder.kind, "id": holder.id}},
    )
