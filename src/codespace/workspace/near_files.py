"""What a path that leads nowhere may have meant: names much like it, in the same directory."""

import os
from itertools import islice

from codespace.domain.errors import CodeSpaceError, ErrorCode
from codespace.domain.near import near
from codespace.domain.paths import ancestors, clean, shown, shown_raw
from codespace.domain.workspace import Root
from codespace.workspace.directory import open_root

NAMES_LOOKED_AT = 2_000
NAMES_TOLD = 3


def with_near_files(error: CodeSpaceError, root: Root, path: str) -> CodeSpaceError:
    """Return the error, and if it is FILE_NOT_FOUND, with the paths that may have been meant."""
    if error.code is not ErrorCode.FILE_NOT_FOUND:
        return error
    try:
        found = near_files(root, clean(path))
    except (CodeSpaceError, OSError):
        return error  # the first error says more
    if not found:
        return error
    return CodeSpaceError(
        error.code,
        f"The path {shown(clean(path))} does not exist; did you mean {shown(found[0])}?"
        " find lists what there is.",
        details={**error.details, "near": [shown_raw(each) for each in found]},
    )


def near_files(root: Root, path: str) -> list[str]:
    """Return the paths most like the first component of `path` that is not there.

    Raises:
        CodeSpaceError: the way there cannot be walked.
        OSError: a directory on it cannot be listed.
    """
    with open_root(root) as directory:
        for component in (*ancestors(path), path):
            with directory.parent(component) as (parent, name):
                if not _is_there(parent, name):
                    above = component.rpartition("/")[0]
                    return [f"{above}/{each}" if above else each for each in _like(parent, name)]
    return []


def _is_there(parent: int, name: str) -> bool:
    try:
        os.lstat(name, dir_fd=parent)
    except FileNotFoundError:
        return False
    return True


def _like(directory: int, name: str) -> list[str]:
    with os.scandir(directory) as entries:
        # In order, so that a directory in which much is alike gives the same answer again.
        names = sorted(entry.name for entry in islice(entries, NAMES_LOOKED_AT))
    return near(name, filter(_is_text, names), most=NAMES_TOLD)


def _is_text(name: str) -> bool:
    return not any("\ud800" <= character <= "\udfff" for character in name)
