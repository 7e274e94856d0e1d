"""`apply_patch` and `operation_status`: changing files, and what the ledger knows of it."""

from dataclasses import dataclass
from typing import Annotated, Literal

from pydantic import Field

from codespace.domain.ids import OperationId, OperationKey, WorkspaceId
from codespace.domain.limits import Limits
from codespace.domain.patch import Change, PatchStatus
from codespace.domain.tool import Call, Effect, Params, Result, Tool, define
from codespace.gateway.patches import Patches, PatchOutcome, PatchRequest

LIMITS = Limits()
"""The limits that the schemas name."""

Version = Annotated[str, Field(pattern=r"^([0-9a-f]{64}|absent)$")]
Key = Annotated[str, Field(min_length=1, max_length=LIMITS.operation_key_max_chars)]
Status = Literal[
    "checked", "applied", "rejected", "failed_rolled_back", "failed_partial", "unknown"
]


class ApplyPatchParams(Params):
    """Arguments of `apply_patch`."""

    workspace_id: str
    """The workspace, as `workspace_info` lists it."""
    patch: str
    """The patch in V4A form, from `*** Begin Patch` to `*** End Patch`."""
    expected_versions: dict[str, Version] = Field(default_factory=dict)
    """For a path the version that `read` gave, or `absent`. A difference refuses the patch."""
    operation_key: Key | None = None
    """Your own key for this very patch: sending it again returns the recorded result."""
    check_only: bool = False
    """Only say what it would do. Nothing is written and nothing reserved."""


class ChangeResult(Result):
    """What happens to one file."""

    path: str
    kind: Literal["add", "update", "delete", "move"]
    source: str | None = Field(default=None, serialization_alias="from")
    """Where a moved file came from."""
    before_version: str | None = None
    after_version: str | None = None
    added: int
    """Lines."""
    removed: int
    """Lines."""


class ApplyPatchResult(Result):
    """A patch that was applied or checked. Anything else is an error."""

    status: Status
    operation_id: str
    replayed: bool
    """This is the recorded result of an earlier call with the same key."""
    files: list[str]
    changes: list[ChangeResult]
    work_id: str | None = None
    """The work that the call named."""


class OperationStatusParams(Params):
    """Arguments of `operation_status`: exactly one of the id and the key."""

    operation_id: str | None = None
    """The id that `apply_patch` answered with."""
    operation_key: str | None = None
    """Your own key, as `apply_patch` was given it."""
    workspace_id: str | None = None
    """The workspace of the key, where several use the same."""


class EventResult(Result):
    """A step in the life of an operation."""

    at: int
    """Unix time in milliseconds."""
    name: Literal["minted", "finished"]
    status: Status | None = None
    reason: str | None = None


class OperationStatusResult(Result):
    """What the ledger knows of a patch."""

    operation_id: str
    status: Status
    replayed: bool
    kind: Literal["patch"] = "patch"
    workspace_id: str
    created_at: int
    """Unix time in milliseconds."""
    finished_at: int | None = None
    """Absent while the patch is being applied."""
    files: list[str]
    changes: list[ChangeResult]
    events: list[EventResult]
    error: dict[str, object] | None = None
    """The error that the patch was answered with."""


@dataclass(frozen=True, slots=True)
class PatchTools:
    """Patches and their ledger."""

    patches: Patches

    def tools(self) -> list[Tool]:
        """Return the family."""
        return [
            define(
                "apply_patch",
                Effect.WRITE,
                ApplyPatchParams,
                ApplyPatchResult,
                self.apply_patch,
                title="Apply a patch",
                search_words="edit change modify write create delete remove rename replace insert"
                " save fix file",
                takes_lease=True,
                mutates=lambda params: not params.check_only,
                known=self.recorded,
                of_work=True,
            ),
            define(
                "operation_status",
                Effect.INSPECT,
                OperationStatusParams,
                OperationStatusResult,
                self.operation_status,
                title="Look up a patch",
                idempotent=True,
            ),
        ]

    async def apply_patch(self, params: ApplyPatchParams, call: Call) -> ApplyPatchResult:
        """Add, update, move and delete files with one patch: all of it, or nothing.

        The patch is V4A:

        *** Begin Patch
        *** Update File: src/app.py
        @@ def greet():
        -    return "hi"
        +    return "hello"
        *** Add File: docs/new.md
        +first line
        *** Delete File: old.txt
        *** End Patch

        In an update, a line starts with a space (context), `-` (removed) or `+` (added); give two
        or three lines of context. `@@ text` jumps behind the next line that reads `text`, and also
        separates chunks, which stand in file order and share no line, not even of context.
        `*** Move to: path` below an update header renames. Give the versions that `read` told in
        `expected_versions`, and an `operation_key` so that a lost answer can be asked for again. A
        refusal says the nearest place and the first line that differs.
        """
        return _applied(await self.patches.apply(call.permitted, _request(params)), call)

    async def recorded(self, params: ApplyPatchParams, call: Call) -> ApplyPatchResult | None:
        """Return what the ledger holds under the patch's key; a replay is never held."""
        outcome = await self.patches.recorded(call.permitted, _request(params))
        return None if outcome is None else _applied(outcome, call)

    async def operation_status(
        self, params: OperationStatusParams, call: Call
    ) -> OperationStatusResult:
        """Say how a patch ended, from the ledger, by its operation id or by your own key.

        Use it when an answer was lost. It runs nothing again, and knows nothing of commands.
        """
        record = await self.patches.status(
            operation_id=None if params.operation_id is None else OperationId(params.operation_id),
            operation_key=None
            if params.operation_key is None
            else OperationKey(params.operation_key),
            workspace_id=None if params.workspace_id is None else WorkspaceId(params.workspace_id),
        )
        return OperationStatusResult(
            operation_id=record.operation_id,
            # Until it has an end, its outcome is not known.
            status=(record.status or PatchStatus.UNKNOWN).value,
            replayed=False,
            workspace_id=record.workspace_id,
            created_at=record.created_at,
            finished_at=record.finished_at,
            files=list(record.files),
            changes=[_change(change) for change in record.changes],
            events=[
                EventResult(
                    at=event.at,
                    name=event.name,
                    status=None if event.status is None else event.status.value,
                    reason=event.reason,
                )
                for event in record.events
            ],
            error=None if record.error is None else dict(record.error),
        )


def _request(params: ApplyPatchParams) -> PatchRequest:
    key = params.operation_key
    return PatchRequest(
        patch=params.patch,
        expected_versions=dict(params.expected_versions),
        operation_key=None if key is None else OperationKey(key),
        check_only=params.check_only,
    )


def _applied(outcome: PatchOutcome, call: Call) -> ApplyPatchResult:
    return ApplyPatchResult(
        status=outcome.status.value,
        operation_id=outcome.operation_id,
        replayed=outcome.replayed,
        files=list(outcome.files),
        changes=[_change(change) for change in outcome.changes],
        work_id=call.work_id,
    )


def _change(change: Change) -> ChangeResult:
    return ChangeResult(
        path=change.path,
        kind=change.kind,
        source=change.source,
        before_version=change.before_version,
        after_version=change.after_version,
        added=change.added,
        removed=change.removed,
    )
