"""One recorded patch request: its record, its fingerprint, and what its remains on disk mean.

Pure: the store keeps the records, the workspace looks at the disk, the gateway says when.
"""

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from codespace.domain.errors import CodeSpaceError, from_body
from codespace.domain.ids import OperationId, OperationKey, WorkspaceId
from codespace.domain.patch import ABSENT, Change, PatchStatus

RECOVERED = "recovered"
"""The reason of a finished event that was written from what stood on disk."""

NOT_ESTABLISHED = "unknown"
"""The reason of a finished event whose outcome could not be established."""

FileState = Literal["before", "after", "other"]


@dataclass(frozen=True, slots=True)
class OperationEvent:
    """A step in an operation's life."""

    at: int
    name: Literal["minted", "finished"]
    status: PatchStatus | None = None
    reason: str | None = None


@dataclass(frozen=True, slots=True)
class Operation:
    """What the ledger knows of one patch request. Times are Unix milliseconds.

    `root` is the directory that the patch was for, so that a workspace which was moved elsewhere
    is not mistaken for it. `error` is the error's body without its operation. A record without
    `finished_at` is unfinished: its status is `unknown`, for nothing better can be said yet.
    """

    operation_id: OperationId
    workspace_id: WorkspaceId
    root: str
    fingerprint: str
    created_at: int
    operation_key: OperationKey | None = None
    files: tuple[str, ...] = ()
    changes: tuple[Change, ...] = ()
    status: PatchStatus = PatchStatus.UNKNOWN
    finished_at: int | None = None
    reason: str | None = None
    error: Mapping[str, object] | None = None

    @property
    def events(self) -> tuple[OperationEvent, ...]:
        """The record as a client sees it happen."""
        minted = OperationEvent(self.created_at, "minted")
        if self.finished_at is None:
            return (minted,)
        return (minted, OperationEvent(self.finished_at, "finished", self.status, self.reason))

    def finish(
        self,
        status: PatchStatus,
        at: int,
        *,
        error: CodeSpaceError | None = None,
        reason: str | None = None,
    ) -> "Operation":
        """Return the record with its end."""
        if reason is None and status is PatchStatus.UNKNOWN:
            reason = NOT_ESTABLISHED
        body = None if error is None else _body_without_operation(error)
        return replace(self, status=status, finished_at=at, reason=reason, error=body)

    def refusal(self) -> CodeSpaceError | None:
        """Return the recorded refusal or failure as the error that its client was given."""
        if self.error is None:
            return None
        return from_body(self.error).of_operation(self.operation_id)


@dataclass(frozen=True, slots=True)
class FileImage:
    """One file of a patch before and after, as the ledger keeps it until the operation ends.

    A version is the SHA-256 of the bytes, or `absent`. `mode`, `uid` and `gid` are those of the
    file before; they mean nothing where no file stood.
    """

    path: str
    before: bytes | None
    before_version: str
    planned_version: str
    mode: int = 0
    uid: int = 0
    gid: int = 0

    def state(self, current: str) -> FileState:
        """Return what the version that now stands at the path means."""
        if current == self.before_version:
            return "before"
        return "after" if current == self.planned_version else "other"


@dataclass(frozen=True, slots=True)
class Settlement:
    """How an interrupted operation ends, and the paths to bring back to their old bytes first."""

    status: PatchStatus
    restore: tuple[str, ...] = ()


def fingerprint(patch: str, expected_versions: Mapping[str, str], *, check_only: bool) -> str:
    """Return what tells one request from another under the same key."""
    canonical = json.dumps(
        {"check_only": check_only, "expected_versions": dict(expected_versions), "patch": patch},
        sort_keys=True,
        separators=(",", ":"),
    )
    return hashlib.sha256(canonical.encode("ascii")).hexdigest()


def version_of(data: bytes | None) -> str:
    """Return the version of a file's bytes; `absent` where no file stands."""
    return ABSENT if data is None else hashlib.sha256(data).hexdigest()


def settle(files: Sequence[tuple[FileImage, str]]) -> Settlement:
    """Decide what an interrupted patch is, from each file's image and the version on disk now.

    A version that is neither hash nor `absent` (a directory, a link, an unreadable file) is
    simply another one. Whatever is not certain is left alone.
    """
    if all(current == image.planned_version for image, current in files):
        return Settlement(PatchStatus.APPLIED)
    states = [(image.path, image.state(current)) for image, current in files]
    if any(state == "other" for _, state in states):
        return Settlement(PatchStatus.UNKNOWN)
    return Settlement(
        PatchStatus.FAILED_ROLLED_BACK, tuple(path for path, state in states if state == "after")
    )


def _body_without_operation(error: CodeSpaceError) -> Mapping[str, object]:
    body = error.body()
    body.pop("operation_id", None)
    return body
