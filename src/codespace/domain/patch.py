"""What a patch does to files, as values: the plan of a change and its status."""

from dataclasses import dataclass
from enum import StrEnum
from typing import Literal

ABSENT = "absent"
"""The expected version of a path at which no file may exist."""

ChangeKind = Literal["add", "update", "delete", "move"]


class PatchStatus(StrEnum):
    """How a patch ended (contract, section 6)."""

    CHECKED = "checked"
    APPLIED = "applied"
    REJECTED = "rejected"
    FAILED_ROLLED_BACK = "failed_rolled_back"
    FAILED_PARTIAL = "failed_partial"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class Change:
    """One file's change as a client sees it.

    `before_version` and `after_version` are the lowercase hex SHA-256 of the whole file;
    `added` and `removed` count lines.
    """

    path: str
    kind: ChangeKind
    source: str | None = None
    before_version: str | None = None
    after_version: str | None = None
    added: int = 0
    removed: int = 0


@dataclass(frozen=True, slots=True)
class PlannedFile:
    """The net effect on one path: bytes before and bytes after, `None` where no file exists.

    `mode_from` names the path whose permission bits the new file takes; `None` means a new file
    with the default mode.
    """

    path: str
    before: bytes | None
    after: bytes | None
    mode_from: str | None = None


@dataclass(frozen=True, slots=True)
class PatchPlan:
    """What a whole patch would do. Nothing is written to make one.

    `files` holds each path whose presence or bytes differ (the write set) in sorted order;
    `changes` tells the story section by section, merged by path.
    """

    files: tuple[PlannedFile, ...]
    changes: tuple[Change, ...]
