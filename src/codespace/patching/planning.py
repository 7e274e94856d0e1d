"""What a patch does to the files that it names: the plan of the whole, or a refusal of all of it.

Reading the files and writing the plan are left to the caller.
"""

from collections.abc import Mapping

from codespace.domain.errors import CodeSpaceError, ErrorCode
from codespace.domain.patch import PatchPlan
from codespace.patching.lines import rewritten, split
from codespace.patching.overlay import DirectoryEntry, Entry, FileEntry, Overlay
from codespace.patching.placing import placed
from codespace.patching.refusal import Spot
from codespace.patching.sections import AddFile, DeleteFile, Patch, Section, UpdateFile

__all__ = ["DirectoryEntry", "Entry", "FileEntry", "plan"]


def plan(patch: Patch, before: Mapping[str, Entry]) -> PatchPlan:
    """Plan a patch whose paths are clean.

    Sections are done one after the other, each on the result of those before it. A moved file
    keeps the mode of its source; one that is deleted and added again at the same path is an
    update and keeps its mode, too.

    Args:
        patch: what `grammar.cleaned` returned.
        before: what is on disk at every touched path and at every directory above one.

    Raises:
        CodeSpaceError: INVALID_PATCH, FILE_NOT_FOUND, IS_A_DIRECTORY, PATH_NOT_DIRECTORY,
            ADD_FILE_EXISTS or MOVE_DESTINATION_EXISTS; `details` has `path`, `section` and,
            for a chunk, `chunk`, `line` and `nearest`.
    """
    if not patch.sections:
        raise CodeSpaceError(
            ErrorCode.INVALID_PATCH,
            "The patch has no section; write at least one Add, Update or Delete.",
        )
    overlay = Overlay(before)
    for number, section in enumerate(patch.sections, 1):
        _apply(section, overlay, Spot(number, section.path))
    return overlay.plan()


def _apply(section: Section, overlay: Overlay, spot: Spot) -> None:
    if isinstance(section, AddFile):
        overlay.require_vacant(section.path, ErrorCode.ADD_FILE_EXISTS, spot)
        overlay.add(section.path, section.content.encode())
    elif isinstance(section, DeleteFile):
        overlay.delete(overlay.file(section.path, spot))
    else:
        _update(section, overlay, spot)


def _update(section: UpdateFile, overlay: Overlay, spot: Spot) -> None:
    story = overlay.file(section.path, spot)
    if section.move_to is not None:
        there = Spot(spot.section, section.move_to)
        overlay.require_vacant(section.move_to, ErrorCode.MOVE_DESTINATION_EXISTS, there)
    lines = split(_decoded(story.after or b"", spot))
    edits = placed(section.chunks, lines.texts, spot)
    story.edit(rewritten(lines, edits).encode(), edits)
    if section.move_to is not None:
        overlay.move(story, section.move_to)


def _decoded(data: bytes, spot: Spot) -> str:
    try:
        return data.decode()
    except UnicodeDecodeError as error:
        raise spot.refused(
            ErrorCode.INVALID_PATCH,
            f"the file is not UTF-8 text (byte {error.start}), so that no chunk can match;"
            " it can only be deleted",
        ) from error
