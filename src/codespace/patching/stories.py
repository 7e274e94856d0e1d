"""What happened to each file over a whole patch, from its bytes on disk to its bytes afterwards."""

from collections.abc import Iterable
from dataclasses import dataclass
from hashlib import sha256

from codespace.domain.patch import Change, ChangeKind, PatchPlan, PlannedFile
from codespace.patching.lines import Edit


@dataclass(slots=True)
class Story:
    """One file. Sections change it; at the end it says what a client is told.

    Attributes:
        origin: where it is on disk; `None` for a file that the patch adds.
        before: its bytes on disk.
        path: where it is now, or was before it was deleted.
        after: its bytes now; `None` once it is deleted.
        rewritten: it was put there as a whole, so that all of its lines count.
        added: lines that Updates put in.
        removed: lines that Updates took out.
    """

    origin: str | None
    before: bytes | None
    path: str
    after: bytes | None
    rewritten: bool = False
    added: int = 0
    removed: int = 0

    def edit(self, after: bytes, edits: Iterable[Edit]) -> None:
        """Take the bytes that an Update made, and count its lines."""
        self.after = after
        for edit in edits:
            self.added += len(edit.texts)
            self.removed += edit.stop - edit.start

    def change(self) -> Change | None:
        """Return the change as a client sees it; `None` for a file that came and went."""
        if self.after is None and self.origin is None:
            return None
        kind, path, source = self._outcome()
        whole = self.rewritten or self.after is None
        return Change(
            path=path,
            kind=kind,
            source=source,
            before_version=_version(self.before),
            after_version=_version(self.after),
            added=_line_count(self.after) if whole else self.added,
            removed=_line_count(self.before) if whole else self.removed,
        )

    def _outcome(self) -> tuple[ChangeKind, str, str | None]:
        if self.origin is None:
            return "add", self.path, None
        if self.after is None:
            return "delete", self.origin, None
        if self.path == self.origin:
            return "update", self.path, None
        return "move", self.path, self.origin


def told(stories: Iterable[Story]) -> PatchPlan:
    """Return the plan that the stories of all files make: what differs on disk, and each change."""
    stories = tuple(stories)
    before = {story.origin: story.before for story in stories if story.origin is not None}
    after = {story.path: story for story in stories if story.after is not None}
    files = (
        _planned(path, before.get(path), after.get(path)) for path in sorted({*before, *after})
    )
    changes = (story.change() for story in stories)
    return PatchPlan(
        files=tuple(file for file in files if file.before != file.after),
        changes=tuple(change for change in changes if change is not None),
    )


def _planned(path: str, before: bytes | None, story: Story | None) -> PlannedFile:
    if story is None:
        return PlannedFile(path, before, None)
    return PlannedFile(path, before, story.after, mode_from=story.origin)


def _version(data: bytes | None) -> str | None:
    return None if data is None else sha256(data).hexdigest()


def _line_count(data: bytes | None) -> int:
    """Count lines as the engine splits them: CRLF, LF and CR end one, and so does the end."""
    if not data:
        return 0
    endings = data.count(b"\n")
    if b"\r" in data:
        endings += data.count(b"\r") - data.count(b"\r\n")
    return endings if data.endswith((b"\n", b"\r")) else endings + 1
