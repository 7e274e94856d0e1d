"""A draft on disk, all or nothing: write beside, make durable, swap, verify, or restore.

Whether it may be written was decided before; what the ledger says of it is the gateway's.
"""

import errno
import os
import threading
from collections.abc import Iterable, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field

from codespace.domain.errors import CodeSpaceError, ErrorCode
from codespace.domain.operation import FileImage
from codespace.domain.patch import ABSENT, PatchStatus, PlannedFile
from codespace.domain.paths import shown, shown_raw
from codespace.workspace.draft import Draft
from codespace.workspace.restore import Restorer, current_version, version_standing
from codespace.workspace.survey import UNBOUND, changed, mark_of, read_at, read_files
from codespace.workspace.temporaries import Ownership, Target, Temporaries, by_directory

_SYNC_EACH_UP_TO = 4
"""Up to here an fsync for each file is the fastest. For 200 files on ext4 a single syncfs takes
8 ms, where 200 calls of fsync take 60 ms, and 30 ms when they are spread over four threads."""


_KEPT_UP_TO = 256
_NODE = os.O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC


@dataclass(frozen=True, slots=True)
class Ending:
    """How the writing ended: `applied`, or a failure with its error."""

    status: PatchStatus
    error: CodeSpaceError | None = None


@dataclass(slots=True)
class Transaction:
    """One draft being written, by one operation. Used once.

    With `durable` off nothing waits for the disk; a killed process still leaves no half.
    """

    temporaries: Temporaries
    draft: Draft
    durable: bool = True
    _files: tuple[Target, ...] = field(init=False)
    _kept: list[int] = field(default_factory=list[int], init=False)
    _made: list[str] = field(default_factory=list[str], init=False)
    _swapped: set[str] = field(default_factory=set[str], init=False)
    _at: str = field(default="", init=False)

    def __post_init__(self) -> None:
        """Number the files; their temporary names are made of these numbers."""
        self._files = tuple(
            Target(file.path, number) for number, file in enumerate(self.draft.files)
        )

    def run(self) -> Ending:
        """Write every file and read it back, or leave every file as it was."""
        try:
            self._write()
        except OSError as error:
            return self._undo(_write_failed(self._at, error))
        except CodeSpaceError as error:
            return self._undo(error)
        except BaseException:
            # A bug, or the end of the process: the files come first, whoever is to blame.
            self._restore()
            raise
        return Ending(PatchStatus.APPLIED)

    def _write(self) -> None:
        writes = [file for file in self._files if self._planned(file).after is not None]
        deletes = [file for file in self._files if self._planned(file).after is None]
        # A file whose name becomes a directory has to go before anything can be written there.
        in_the_way = [file for file in deletes if file.path in self.draft.directories]
        self._remove(in_the_way)
        self._make_directories()
        self._stage(writes)
        self._swap_in(writes)
        self._remove(file for file in deletes if file not in in_the_way)
        self._let_go()
        if self.durable:
            self._sync_directories()
        self._verify()

    def _planned(self, file: Target) -> PlannedFile:
        return self.draft.files[file.position]

    def _make_directories(self) -> None:
        for path in self.draft.directories:
            self._at = path
            with self.temporaries.root.parent(path) as (dir_fd, name), suppress(FileExistsError):
                self.temporaries.calls.mkdir(name, dir_fd=dir_fd)
                self._made.append(path)

    def _stage(self, writes: Sequence[Target]) -> None:
        """Write all new contents beside their places, and make them durable together."""
        each = self.durable and len(writes) <= _SYNC_EACH_UP_TO
        root_fd = self.temporaries.root.fd
        devices = {os.fstat(root_fd).st_dev: root_fd}
        with ExitStack() as kept:
            for group in by_directory(writes):
                self._at = group[0].path
                with self.temporaries.root.parent(self._at) as (dir_fd, _):
                    self._stage_group(group, dir_fd, sync=each)
                    device = os.fstat(dir_fd).st_dev
                    if device not in devices:
                        devices[device] = os.dup(dir_fd)
                        kept.callback(os.close, devices[device])
            if self.durable and not each:
                for dir_fd in devices.values():
                    self.temporaries.calls.sync_filesystem(dir_fd)

    def _stage_group(self, group: Iterable[Target], dir_fd: int, *, sync: bool) -> None:
        for file in group:
            self._at = file.path
            planned = self._planned(file)
            self.temporaries.write(
                file.position,
                planned.after or b"",
                self._ownership(planned),
                dir_fd=dir_fd,
                sync=sync,
            )

    def _ownership(self, planned: PlannedFile) -> Ownership | None:
        found = self.draft.found.get(planned.mode_from or "")
        if found is None:
            return None
        ownership = Ownership(found.mode, found.uid, found.gid, found.attributes)
        return ownership.without_privilege()

    def _swap_in(self, writes: Iterable[Target]) -> None:
        for group in by_directory(writes):
            self._at = group[0].path
            with self.temporaries.root.parent(self._at) as (dir_fd, _):
                for file in group:
                    self._require_unchanged(file, dir_fd)
                    self._keep(file, dir_fd)
                    temporary = self.temporaries.name_of(file.position)
                    self.temporaries.calls.rename(temporary, file.name, dir_fd=dir_fd)

    def _keep(self, file: Target, dir_fd: int) -> None:
        """Keep the old file's blocks for a moment: freeing them is half the cost of a rename."""
        if file.path in self.draft.found and len(self._kept) < _KEPT_UP_TO:
            with suppress(OSError):
                self._kept.append(os.open(file.name, _NODE, dir_fd=dir_fd))

    def _let_go(self) -> None:
        """Free what was replaced while this thread goes on: nothing waits for that."""
        kept, self._kept = self._kept, []
        try:
            if len(kept) > _SYNC_EACH_UP_TO:
                threading.Thread(target=_close, args=(kept,), name="let go").start()
                return
        except RuntimeError:  # no more threads: then it takes the time that it takes
            pass
        _close(kept)

    def _remove(self, deletes: Iterable[Target]) -> None:
        for group in by_directory(deletes):
            self._at = group[0].path
            with self.temporaries.root.parent(self._at) as (dir_fd, _):
                for file in group:
                    self._require_unchanged(file, dir_fd)
                    self._keep(file, dir_fd)
                    self.temporaries.calls.unlink(file.name, dir_fd=dir_fd)

    def _require_unchanged(self, file: Target, dir_fd: int) -> None:
        """Check that what is about to be replaced is what was read, and note that it now goes.

        Between this look and the rename lies one system call. Whoever else writes into that gap
        loses, as with any editor; the before-image of a lost race is not ours to keep.
        """
        self._at = file.path
        found = self.draft.found.get(file.path)
        try:
            mark = mark_of(self.temporaries.calls.status(file.name, dir_fd=dir_fd))
        except FileNotFoundError:
            mark = None
        same = mark == (None if found is None else found.mark)
        if same and found is not None and found.unsettled:
            now = read_at(file.path, dir_fd, UNBOUND)
            same = version_standing(file.path, now, ()) == found.version
        if not same:
            expected = ABSENT if found is None else found.version
            actual = current_version(self.temporaries.root, file.path)
            raise changed(file.path, expected=expected, actual=actual)
        self._swapped.add(file.path)

    def _sync_directories(self) -> None:
        names = [Target(path, 0) for path in self.draft.directories]
        for group in by_directory((*self._files, *names)):
            self._at = group[0].path
            with self.temporaries.root.parent(self._at) as (dir_fd, _):
                self.temporaries.sync_directory(dir_fd)

    def _verify(self) -> None:
        images = {image.path: image for image in self.draft.images}
        for path, standing in read_files(self.temporaries.root, images, lambda: UNBOUND):
            self._at = path
            actual = version_standing(path, standing, self._made)
            if actual != images[path].planned_version:
                raise _not_as_written(images[path], actual)

    def _undo(self, error: CodeSpaceError) -> Ending:
        states = self._restore()
        if states is None:
            status = PatchStatus.FAILED_ROLLED_BACK
            details = {**error.details, "status": status.value}
            return Ending(status, CodeSpaceError(error.code, error.message, details=details))
        status = PatchStatus.FAILED_PARTIAL
        partial = CodeSpaceError(
            ErrorCode.FILE_OPERATION_FAILED,
            "A write failed and could not be undone everywhere; look at each file in details.",
            details={**error.details, "status": status.value, "files": states},
        )
        return Ending(status, partial)

    def _restore(self) -> list[dict[str, object]] | None:
        """Undo what was done; return the state of every file if that is not all as before.

        A file that was never swapped belongs to whoever changed it meanwhile, and is left alone.
        One that was swapped and then changed by somebody is left alone, too, but counts.
        """
        self._let_go()
        temporaries, images = self.temporaries, self.draft.images
        attributes = {path: found.attributes for path, found in self.draft.found.items()}
        restorer = Restorer(
            temporaries, images, tuple(self._made), durable=self.durable, attributes=attributes
        )
        temporaries.remove(self._files)
        ours = {
            image.path
            for image, current in restorer.observe()
            if image.path in self._swapped and image.state(current) == "after"
        }
        clean = restorer.restore(ours)
        temporaries.remove(self._files)
        states = {image.path: image.state(current) for image, current in restorer.observe()}
        if clean and all(states[path] == "before" for path in self._swapped):
            return None
        return [{"path": shown_raw(path), "state": state} for path, state in states.items()]


def _close(descriptors: Iterable[int]) -> None:
    for descriptor in descriptors:
        os.close(descriptor)


def _write_failed(path: str, error: OSError) -> CodeSpaceError:
    return CodeSpaceError(
        ErrorCode.FILE_OPERATION_FAILED,
        f"Writing {shown(path)} failed ({error.strerror}), so every file was left as it was.",
        details={
            "path": shown_raw(path),
            "errno": errno.errorcode.get(error.errno or errno.EIO, "EIO"),
        },
    )


def _not_as_written(image: FileImage, actual: str) -> CodeSpaceError:
    return CodeSpaceError(
        ErrorCode.FILE_OPERATION_FAILED,
        f"{shown(image.path)} does not hold what was written to it; something else writes there.",
        details={
            "path": shown_raw(image.path),
            "errno": "EIO",
            "expected": image.planned_version,
            "actual": actual,
        },
    )
