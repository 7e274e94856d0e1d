"""A plan checked against the disk: all that can be refused before anything is written.

What is to be written was decided by `patching`; writing it is `transaction`'s.
"""

import os
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass

from codespace.domain.errors import CodeSpaceError, ErrorCode
from codespace.domain.limits import Limits
from codespace.domain.operation import FileImage, version_of
from codespace.domain.patch import ABSENT, PatchPlan, PlannedFile
from codespace.domain.paths import ancestors, shown, shown_raw
from codespace.patching.planning import DirectoryEntry
from codespace.workspace.directory import RootDirectory
from codespace.workspace.survey import Found, Survey


@dataclass(frozen=True, slots=True)
class Draft:
    """A plan that passed every check that can be made without writing.

    Attributes:
        files: the net effect on each path, in sorted order.
        images: the same files as the ledger keeps them.
        found: the files as they were read.
        directories: those that have to be made, outermost first.
    """

    files: tuple[PlannedFile, ...]
    images: tuple[FileImage, ...]
    found: Mapping[str, Found]
    directories: tuple[str, ...]


def draft(survey: Survey, plan: PatchPlan) -> Draft:
    """Check a plan against the disk; nothing is written.

    Raises:
        CodeSpaceError: FILE_OPERATION_FAILED where a directory cannot be written, LIMIT_EXCEEDED,
            and what a racing change of the directories brings.
    """
    _require_size(plan.files, survey.limits)
    needed = {
        above for file in plan.files if file.after is not None for above in ancestors(file.path)
    }
    missing = sorted(
        path for path in needed if not isinstance(survey.entries.get(path), DirectoryEntry)
    )
    _require_writable(survey.root, (file.path for file in plan.files), missing)
    return Draft(
        files=plan.files,
        images=tuple(_image(file, survey.files.get(file.path)) for file in plan.files),
        found=survey.files,
        directories=tuple(missing),
    )


def _image(file: PlannedFile, found: Found | None) -> FileImage:
    if found is None:
        return FileImage(file.path, None, ABSENT, version_of(file.after))
    return FileImage(
        path=file.path,
        before=found.data,
        before_version=found.version,
        planned_version=version_of(file.after),
        mode=found.attributes.mode_alone(found.mode),
        uid=found.uid,
        gid=found.gid,
    )


def _require_size(files: Iterable[PlannedFile], limits: Limits) -> None:
    total = 0
    for file in files:
        size = len(file.after or b"")
        total += size
        limit, maximum = "patch_file_max_bytes", limits.patch_file_max_bytes
        if size <= maximum:
            limit, maximum = "patch_total_max_bytes", limits.patch_total_max_bytes
        if size > maximum or total > maximum:
            raise CodeSpaceError(
                ErrorCode.LIMIT_EXCEEDED,
                f"The patch would write more than is allowed, at {shown(file.path)}; split it.",
                details={"path": shown_raw(file.path), "limit": limit, "maximum": maximum},
            )


def _require_writable(root: RootDirectory, paths: Iterable[str], missing: Collection[str]) -> None:
    """Check each directory in which a name will change: the nearest one that stands."""
    checked: set[str] = set()
    for path in paths:
        entry = next((above for above in ancestors(path) if above in missing), path)
        directory = entry.rpartition("/")[0]
        if directory in checked:
            continue
        checked.add(directory)
        with root.parent(entry) as (dir_fd, _):
            _require_writable_directory(entry, dir_fd)


def _require_writable_directory(path: str, dir_fd: int) -> None:
    if os.access(".", os.W_OK | os.X_OK, dir_fd=dir_fd, effective_ids=True):
        return
    read_only = os.fstatvfs(dir_fd).f_flag & os.ST_RDONLY
    raise CodeSpaceError(
        ErrorCode.FILE_OPERATION_FAILED,
        f"The directory of {shown(path)} cannot be written; ask the operator for the permission.",
        details={"path": shown_raw(path), "errno": "EROFS" if read_only else "EACCES"},
    )
