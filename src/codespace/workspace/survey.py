"""What stands at the paths of a patch: bytes and versions for planning, marks to notice a change.

Reads only. Who may say which path is `directory`'s; what follows from it is `transaction`'s.
"""

import hashlib
import os
import stat
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import ExitStack
from dataclasses import dataclass, field
from itertools import groupby
from typing import Literal, NamedTuple

from codespace.domain.errors import CodeSpaceError, ErrorCode
from codespace.domain.limits import Limits
from codespace.domain.patch import ABSENT
from codespace.domain.paths import ROOT, ancestors, clean, shown, shown_raw
from codespace.patching.planning import DirectoryEntry, Entry, FileEntry
from codespace.workspace.attributes import NO_ATTRIBUTES, Attributes, attributes_of
from codespace.workspace.directory import RootDirectory, failure, open_regular, refusal

_CHUNK_BYTES = 1024 * 1024
_SECOND_NS = 1_000_000_000
_CLOCK_GRAIN_NS = 20_000_000
"""Two ticks of the slowest usual kernel clock: within one, two changes bear the same time."""
_ATTEMPTS = 3

Mark = tuple[int, int, int, int, int]
"""Device, inode, size, change of content and change of status in ns: one state of one file."""


@dataclass(frozen=True, slots=True)
class Found:
    """A regular file as it was read.

    `unsettled` is true of a file that changed so shortly before that another change could bear
    the same times: its mark alone then proves nothing.
    """

    data: bytes
    version: str
    mark: Mark
    mode: int
    uid: int
    gid: int
    unsettled: bool
    attributes: Attributes = NO_ATTRIBUTES


class Bound(NamedTuple):
    """How many bytes the next file may have, and by which limit."""

    limit: str
    maximum: int


UNBOUND = Bound("", 1 << 62)
"""For what a patch wrote itself: it may be read back."""

Standing = Found | Literal["absent", "directory"]
"""What stands at a path."""


@dataclass(slots=True)
class Survey:
    """The state of some paths, each looked at once. `files` holds what is regular and present."""

    root: RootDirectory
    limits: Limits
    entries: dict[str, Entry] = field(default_factory=dict[str, Entry])
    files: dict[str, Found] = field(default_factory=dict[str, Found])
    _seen: set[str] = field(default_factory=set[str])
    _above: set[str] = field(default_factory=set[str])
    _total_bytes: int = 0

    def look(self, paths: Iterable[str]) -> None:
        """Read the files at `paths`, and find what stands above them.

        Raises:
            CodeSpaceError: SYMLINK_REJECTED, SPECIAL_FILE_REJECTED, FILE_OPERATION_FAILED,
                LIMIT_EXCEEDED.
        """
        fresh = [path for path in dict.fromkeys(paths) if path not in self._seen]
        self._seen.update(fresh)
        if ROOT in fresh:
            self.entries[ROOT] = DirectoryEntry()
        for path, standing in read_files(self.root, fresh, self._left):
            self._put(path, standing)
        for above in dict.fromkeys(above for path in fresh for above in ancestors(path)):
            if above not in self._seen and above not in self._above:
                self._above.add(above)
                self._look_above(above)

    def require(self, expected: Mapping[str, str]) -> None:
        """Compare files with the versions that the client has seen; keys are its own paths.

        Raises:
            CodeSpaceError: VERSION_CONFLICT; IS_A_DIRECTORY; what `look` and `clean` raise.
        """
        for named, version in expected.items():
            path = clean(named)
            self.look((path,))
            if isinstance(self.entries.get(path), DirectoryEntry):
                raise refusal(path, ErrorCode.IS_A_DIRECTORY, "is a directory; it has no version")
            found = self.files.get(path)
            actual = ABSENT if found is None else found.version
            if actual != version:
                raise changed(path, expected=version, actual=actual)

    def _put(self, path: str, standing: Standing) -> None:
        if isinstance(standing, Found):
            self._total_bytes += len(standing.data)
            self.files[path] = standing
            self.entries[path] = FileEntry(standing.data)
        elif standing == "directory":
            self.entries[path] = DirectoryEntry()
        else:
            self.entries.pop(path, None)

    def _look_above(self, path: str) -> None:
        kind = self.root.look(path).kind
        if kind == "directory":
            self.entries[path] = DirectoryEntry()
        elif kind == "file":
            self.entries[path] = FileEntry(b"")

    def _left(self) -> Bound:
        left = self.limits.patch_total_max_bytes - self._total_bytes
        if left < self.limits.patch_file_max_bytes:
            return Bound("patch_total_max_bytes", left)
        return Bound("patch_file_max_bytes", self.limits.patch_file_max_bytes)


def read_files(
    root: RootDirectory, paths: Iterable[str], bound: Callable[[], Bound]
) -> Iterator[tuple[str, Standing]]:
    """Read what stands at `paths`, directory by directory; `bound` is asked before each file.

    The root itself is passed over: it is always a directory.

    Raises:
        CodeSpaceError: SYMLINK_REJECTED, SPECIAL_FILE_REJECTED, FILE_OPERATION_FAILED; and
            LIMIT_EXCEEDED above the limit.
    """
    below = sorted((path for path in paths if path != ROOT), key=_by_directory)
    for _, group in groupby(below, key=_directory):
        names = list(group)
        with ExitStack() as stack:
            try:
                directory, _ = stack.enter_context(root.parent(names[0]))
            except CodeSpaceError as error:
                if error.code not in (ErrorCode.FILE_NOT_FOUND, ErrorCode.PATH_NOT_DIRECTORY):
                    raise
                directory = None
            for path in names:
                yield path, "absent" if directory is None else read_at(path, directory, bound())


def read_at(path: str, directory: int, bound: Bound) -> Standing:
    """Read what stands at `path`, whose directory was walked to.

    Raises:
        CodeSpaceError: as `read_files`.
    """
    try:
        descriptor = open_regular(path, directory, path.rpartition("/")[2])
    except FileNotFoundError:
        return "absent"
    except IsADirectoryError:
        return "directory"
    except OSError as error:
        raise failure(path, error) from error
    try:
        return _read(path, descriptor, bound)
    except OSError as error:
        raise failure(path, error) from error
    finally:
        os.close(descriptor)


def _read(path: str, descriptor: int, bound: Bound) -> Found:
    """Read a file whole, with the marks that belong to these very bytes."""
    for _ in range(_ATTEMPTS):
        before = os.fstat(descriptor)
        if before.st_size > bound.maximum:
            raise _too_large(path, bound)
        data = _content(descriptor, before.st_size)
        attributes = attributes_of(descriptor)
        if len(data) == before.st_size and mark_of(os.fstat(descriptor)) == mark_of(before):
            return _found(data, before, attributes)
    raise refusal(
        path, ErrorCode.FILE_OPERATION_FAILED, "is being written by another program; try again"
    )


def mark_of(status: os.stat_result) -> Mark:
    """Return what tells this state of a file from any other, as far as the kernel's clock can."""
    return (
        status.st_dev,
        status.st_ino,
        status.st_size,
        status.st_mtime_ns,
        status.st_ctime_ns,
    )


def changed(path: str, *, expected: str, actual: str) -> CodeSpaceError:
    """Return the refusal for a file that is not what the client, or this patch, has seen."""
    return CodeSpaceError(
        ErrorCode.VERSION_CONFLICT,
        f"{shown(path)} is not the version that was expected; read it again and send a new patch.",
        details={"path": shown_raw(path), "expected": expected[:64], "actual": actual},
    )


def _found(data: bytes, status: os.stat_result, attributes: Attributes) -> Found:
    last_change = max(status.st_mtime_ns, status.st_ctime_ns)
    # Some filesystems keep whole seconds only.
    grain = 2 * _SECOND_NS if last_change % _SECOND_NS == 0 else _CLOCK_GRAIN_NS
    return Found(
        data=data,
        version=hashlib.sha256(data).hexdigest(),
        mark=mark_of(status),
        mode=stat.S_IMODE(status.st_mode),
        uid=status.st_uid,
        gid=status.st_gid,
        unsettled=time.time_ns() - last_change < grain,
        attributes=attributes,
    )


def _content(descriptor: int, size: int) -> bytes:
    chunks: list[bytes] = []
    offset = 0
    while offset < size:
        chunk = os.pread(descriptor, min(_CHUNK_BYTES, size - offset), offset)
        if not chunk:
            break
        chunks.append(chunk)
        offset += len(chunk)
    return chunks[0] if len(chunks) == 1 else b"".join(chunks)


def _too_large(path: str, bound: Bound) -> CodeSpaceError:
    return CodeSpaceError(
        ErrorCode.LIMIT_EXCEEDED,
        f"{shown(path)} is too large for a patch, or all its files together are.",
        details={"path": shown_raw(path), "limit": bound.limit, "maximum": bound.maximum},
    )


def _directory(path: str) -> str:
    return path.rpartition("/")[0]


def _by_directory(path: str) -> tuple[str, str]:
    return _directory(path), path
