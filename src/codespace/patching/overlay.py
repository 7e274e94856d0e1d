"""The tree as the sections of one patch see it: what is on disk under what was planned so far.

Refuses what the tree does not allow. What the sections are, and their order, is left to `planning`.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from codespace.domain.errors import ErrorCode
from codespace.domain.patch import PatchPlan
from codespace.domain.paths import ROOT, ancestors, shown
from codespace.patching.refusal import Spot
from codespace.patching.stories import Story, told


@dataclass(frozen=True, slots=True)
class FileEntry:
    """A regular file. One that only stands above a touched path may be given without its bytes."""

    data: bytes


@dataclass(frozen=True, slots=True)
class DirectoryEntry:
    """A directory."""


Entry = FileEntry | DirectoryEntry
"""What is on disk at a path. A path where nothing is has no entry."""


class Overlay:
    """The tree of one patch. Directories that a section makes stay there for the later ones."""

    def __init__(self, disk: Mapping[str, Entry]) -> None:
        """Take the entries of every touched path and of every directory above one."""
        self._disk = disk
        self._now: dict[str, Story | DirectoryEntry | None] = {}
        self._stories: list[Story] = []
        self._origins: dict[str, Story] = {}

    def file(self, path: str, spot: Spot) -> Story:
        """Return the file at `path`.

        Raises:
            CodeSpaceError: FILE_NOT_FOUND, IS_A_DIRECTORY or PATH_NOT_DIRECTORY.
        """
        found = self._at(path)
        if isinstance(found, Story):
            return found
        if found is not None:
            raise spot.refused(ErrorCode.IS_A_DIRECTORY, "this is a directory; name a file in it")
        self._require_directories(path, spot)
        raise spot.refused(
            ErrorCode.FILE_NOT_FOUND, "no file is there; correct the path, or add the file instead"
        )

    def require_vacant(self, path: str, code: ErrorCode, spot: Spot) -> None:
        """Check that a file can come to be at `path`.

        Raises:
            CodeSpaceError: `code` when something is there, PATH_NOT_DIRECTORY.
        """
        self._require_directories(path, spot)
        found = self._at(path)
        if found is not None:
            what = "a file" if isinstance(found, Story) else "a directory"
            problem = f"{what} is already there; choose another path, or update or delete that one"
            raise spot.refused(code, problem)

    def add(self, path: str, data: bytes) -> None:
        """Put a new file at a vacant path.

        A file that the patch deleted from there is the same file again, with new content: an
        update to the client, and it keeps its mode.
        """
        story = self._origins.get(path)
        if story is None or story.after is not None:
            story = Story(None, None, path, data)
            self._stories.append(story)
        story.path, story.after, story.rewritten = path, data, True
        self._put(path, story)

    def delete(self, story: Story) -> None:
        """Remove a file."""
        story.after = None
        self._now[story.path] = None

    def move(self, story: Story, path: str) -> None:
        """Bring a file to a vacant path."""
        self._now[story.path] = None
        story.path = path
        self._put(path, story)

    def plan(self) -> PatchPlan:
        """Return what all sections together do."""
        return told(self._stories)

    def _at(self, path: str) -> Story | DirectoryEntry | None:
        if path == ROOT:
            return DirectoryEntry()
        if path not in self._now:
            entry = self._disk.get(path)
            self._now[path] = self._opened(path, entry) if isinstance(entry, FileEntry) else entry
        return self._now[path]

    def _opened(self, path: str, entry: FileEntry) -> Story:
        # Every file that is looked at is either worked on or the reason of a refusal.
        story = Story(path, entry.data, path, entry.data)
        self._stories.append(story)
        self._origins[path] = story
        return story

    def _put(self, path: str, story: Story) -> None:
        self._now[path] = story
        for directory in ancestors(path):
            self._now[directory] = DirectoryEntry()

    def _require_directories(self, path: str, spot: Spot) -> None:
        for directory in ancestors(path):
            if isinstance(self._at(directory), Story):
                raise spot.refused(
                    ErrorCode.PATH_NOT_DIRECTORY, f"{shown(directory)} is a file, not a directory"
                )
