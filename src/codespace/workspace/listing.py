"""Which files of a root a search is about: rg walks and ignores, our glob and a second look decide.

rg opens directories by name, so a racing link can lead it out of the root. Nothing it says is
passed on unless a walk by descriptors finds the same file.
"""

import errno
import itertools
import os
import re
import stat
from collections.abc import Callable, Generator, Iterable, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from typing import Generic, TypeVar

from codespace.domain.errors import CodeSpaceError, ErrorCode
from codespace.workspace.deadline import Deadline
from codespace.workspace.directory import RootDirectory, failure, open_regular
from codespace.workspace.globs import Glob
from codespace.workspace.ignores import IGNORE_MAX_BYTES, collected, obstructed, rebased
from codespace.workspace.ripgrep import stream

_EXCLUDE_FILE = ".git/info/exclude"
_KEPT_FACTOR = 4
_SIBLINGS_MAX = 200
_SHORTAGES = ("EMFILE", "ENFILE", "ENOMEM", "EIO")
_LOOKING = 0.2
"""How much of the time that is left a look for what holds rg up may take."""
_PLAIN_NAME = re.compile(r"[A-Za-z0-9._-]+")

# Ignore rules come from the `.gitignore` files below the root and from its own exclude file (which
# we read ourselves: rg would follow a `.git` file to anywhere). `.git` itself is never searched.
_RULES = (
    "--glob=!.git",
    "--no-require-git",
    "--no-ignore-dot",
    "--no-ignore-exclude",
    "--no-ignore-global",
    "--no-ignore-parent",
)
_NO_RULES = ("--glob=!.git", "--no-ignore")


T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Listing:
    """The first `paths` in order of their code points, of `total` that were listed.

    `skipped` counts names that are not UTF-8 and therefore cannot be told to anybody.
    """

    paths: list[str]
    total: int
    skipped: int


@dataclass(slots=True)
class _Smallest:
    """The `capacity` smallest of all paths added, in bounded memory."""

    capacity: int
    total: int = 0
    _kept: list[str] = field(default_factory=list[str])
    _bound: str | None = None

    def add(self, paths: list[str]) -> None:
        self.total += len(paths)
        bound = self._bound
        self._kept += paths if bound is None else [path for path in paths if path < bound]
        if len(self._kept) > _KEPT_FACTOR * self.capacity:
            self._bound = self.result()[-1]

    def result(self) -> list[str]:
        self._kept.sort()
        del self._kept[self.capacity :]
        return self._kept


def list_files(
    directory: RootDirectory,
    question: Sequence[str],
    *,
    glob: Glob,
    include_ignored: bool = False,
    capacity: int,
    deadline: Deadline,
) -> Listing:
    """Ask rg for files by `question`, such as `--files`, and keep those that `glob` matches.

    The paths were not looked at again: `present` does that.

    Raises:
        CodeSpaceError: as `searched`.
    """

    def take(chunks: Iterable[bytes]) -> Listing:
        smallest = _Smallest(capacity)
        skipped = 0
        for records in _records(chunks):
            names, lost = _decoded(records)
            skipped += lost
            smallest.add(names if glob.everything else _matching(names, glob))
        return Listing(smallest.result(), smallest.total, skipped)

    asked = (*question, "--null")
    return searched(
        directory, asked, take, glob=glob, include_ignored=include_ignored, deadline=deadline
    )


def searched(
    directory: RootDirectory,
    question: Sequence[str],
    take: Callable[[Iterable[bytes]], T],
    *,
    glob: Glob,
    include_ignored: bool = False,
    deadline: Deadline,
) -> T:
    """Ask rg about the files of a root; return what `take` makes of its output.

    `take` may be called again from the start. More files may be asked about than `glob` matches.

    Raises:
        CodeSpaceError: as `ripgrep.stream`; LIMIT_EXCEEDED as `ignores.collected`.
    """
    search = _Search(directory, (*question, *_narrowed(directory, glob)), take, deadline)
    if include_ignored:
        return search.run(_NO_RULES)
    exclude = _exclude_rules(directory)
    try:
        return search.run(_RULES, exclude, wary=True)
    except _ObstructedError:
        rules = rebased(exclude, b"") + collected(directory.fd, deadline)
        return search.run((*_RULES, "--no-ignore-vcs"), rules)


class _ObstructedError(Exception):
    """Something that rg cannot be let near has the name of an ignore file."""


@dataclass(frozen=True, slots=True)
class _Search(Generic[T]):
    directory: RootDirectory
    question: Sequence[str]
    take: Callable[[Iterable[bytes]], T]
    deadline: Deadline

    def run(self, rules: Sequence[str], copied: bytes = b"", *, wary: bool = False) -> T:
        """Search under `rules`, and those `copied` from files.

        Raises:
            _ObstructedError: if `wary`, when rg is held up by an ignore file, or died of one.
        """
        try:
            return self._run(rules, copied, self._require_way if wary else None)
        except CodeSpaceError as error:
            if wary and error.code is ErrorCode.FILE_OPERATION_FAILED:
                self._require_way()
            raise

    def _run(self, rules: Sequence[str], copied: bytes, on_quiet: Callable[[], None] | None) -> T:
        with _as_file(copied) as (ignoring, keep):
            chunks = stream(
                [*self.question, *rules, *ignoring, "--", "."],
                directory=self.directory.fd,
                keep=keep,
                deadline=self.deadline,
                on_quiet=on_quiet,
            )
            with closing(chunks):
                return self.take(chunks)

    def _require_way(self) -> None:
        # A tree may be too large to be looked through as well as searched: most have no obstacle.
        patience = int(self.deadline.remaining() * 1_000 * _LOOKING)
        look = Deadline.after(patience, abandoned=self.deadline.abandoned)
        try:
            found = obstructed(self.directory.fd, look)
        except CodeSpaceError:
            return
        if found:
            raise _ObstructedError


def present(directory: RootDirectory, paths: Iterable[str]) -> list[str]:
    """Return those of the sorted `paths` that are regular files, reached through no link."""
    found: list[str] = []
    for _, group in itertools.groupby(paths, key=lambda path: path.rpartition("/")[0]):
        found += _present_in_one_directory(directory, list(group))
    return found


def _present_in_one_directory(directory: RootDirectory, paths: list[str]) -> list[str]:
    try:
        with directory.parent(paths[0]) as (parent, _):
            return [path for path in paths if _is_regular(parent, path.rpartition("/")[2])]
    except CodeSpaceError:  # gone, or a link by now: then it is no file of this root
        return []


def _is_regular(parent: int, name: str) -> bool:
    try:
        return stat.S_ISREG(os.lstat(name, dir_fd=parent).st_mode)
    except OSError:
        return False


def opened(directory: RootDirectory, paths: Iterable[str]) -> Generator[tuple[str, int]]:
    """Open the sorted `paths` in turn; yield each with its descriptor, which the taker closes.

    What is gone, closed to us, or no regular file reached through no link, is passed over.

    Raises:
        CodeSpaceError: FILE_OPERATION_FAILED for want of descriptors or memory.
    """
    for _, group in itertools.groupby(paths, key=lambda path: path.rpartition("/")[0]):
        first = next(group)
        try:
            with directory.parent(first) as (parent, _):
                for path in itertools.chain((first,), group):
                    descriptor = _open(parent, path)
                    if descriptor is not None:
                        yield path, descriptor
        except CodeSpaceError as error:
            if error.details.get("errno") in _SHORTAGES:
                raise


def _open(parent: int, path: str) -> int | None:
    try:
        return open_regular(path, parent, path.rpartition("/")[2])
    except OSError as error:
        if errno.errorcode.get(error.errno or 0) in _SHORTAGES:
            raise failure(path, error) from error
    except CodeSpaceError:  # a link or a special file by now
        pass
    return None


@contextmanager
def _as_file(rules: bytes) -> Generator[tuple[Sequence[str], Sequence[int]]]:
    """Yield the options that make rg heed `rules`, and the descriptors that they need."""
    if not rules:
        yield (), ()
        return
    with os.fdopen(os.memfd_create("rules", os.MFD_CLOEXEC), "wb", buffering=0) as copy:
        copy.write(rules)
        yield (f"--ignore-file=/proc/self/fd/{copy.fileno()}",), (copy.fileno(),)


def _exclude_rules(directory: RootDirectory) -> bytes:
    try:
        return directory.read_file(_EXCLUDE_FILE, max_bytes=IGNORE_MAX_BYTES)
    except CodeSpaceError:  # most roots have none, and a strange one rules nothing
        return b""


def _narrowed(directory: RootDirectory, glob: Glob) -> Generator[str]:
    """Yield what lets rg look at fewer files; the glob still decides.

    A glob of rg that names wanted files would overrule `.gitignore`. A file type and a glob that
    names unwanted ones do not.
    """
    if glob.names:
        yield from (f"--type-add=wanted:{name}" for name in glob.names)
        yield "--type=wanted"
    for depth, wanted in enumerate(glob.above):
        above = "".join(f"{name}/" for name in glob.above[:depth])
        yield from (f"--glob=!/{above}{name}" for name in _siblings(directory, above, wanted))


def _siblings(directory: RootDirectory, above: str, wanted: str) -> list[str]:
    try:
        with directory.parent(above + wanted) as (parent, _), os.scandir(parent) as entries:
            names = [entry.name for entry in entries if entry.is_dir(follow_symlinks=False)]
    except (CodeSpaceError, OSError):
        return []
    names = [name for name in names if name != wanted and _PLAIN_NAME.fullmatch(name)]
    return names if len(names) <= _SIBLINGS_MAX else []


def _records(chunks: Iterable[bytes]) -> Generator[bytes]:
    """Yield runs of whole records, each ended by a NUL."""
    rest = b""
    for chunk in chunks:
        whole, separator, rest_of_chunk = chunk.rpartition(b"\0")
        if separator:
            yield rest + whole + separator
            rest = rest_of_chunk
        else:
            rest += chunk


def _decoded(records: bytes) -> tuple[list[str], int]:
    """Return the paths of `records`, without rg's `./`, and how many are not UTF-8."""
    plain = (b"\0" + records).replace(b"\0./", b"\0")[1:-1]
    try:
        return plain.decode("utf-8").split("\0"), 0
    except UnicodeDecodeError:
        names = plain.split(b"\0")
        good = [name for name in map(_text, names) if name is not None]
        return good, len(names) - len(good)


def _text(name: bytes) -> str | None:
    try:
        return name.decode("utf-8")
    except UnicodeDecodeError:
        return None


def _matching(names: list[str], glob: Glob) -> list[str]:
    match = glob.pattern.fullmatch
    return [name for name in names if match(name)]
