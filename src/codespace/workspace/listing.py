"""Which files of a root a search is about: rg walks and ignores, our glob and a second look decide.

rg opens directories by name, so a racing link can lead it out of the root. Nothing it says is
passed on unless a walk by descriptors finds the same file.
"""

import itertools
import os
import re
import stat
from collections.abc import Generator, Iterable, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, field

from codespace.domain.errors import CodeSpaceError
from codespace.workspace.directory import RootDirectory
from codespace.workspace.globs import Glob
from codespace.workspace.ripgrep import Deadline, stream

_EXCLUDE_FILE = ".git/info/exclude"
_EXCLUDE_MAX_BYTES = 1024 * 1024
_KEPT_FACTOR = 4
_SIBLINGS_MAX = 200
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
        CodeSpaceError: as `ripgrep.stream`.
    """
    smallest = _Smallest(capacity)
    skipped = 0
    with _rules(directory, include_ignored=include_ignored) as (rules, keep):
        arguments = [*question, "--null", *rules, *_narrowed(directory, glob), "--", "."]
        chunks = stream(arguments, directory=directory.fd, keep=keep, deadline=deadline)
        with closing(chunks):
            for records in _records(chunks):
                names, lost = _decoded(records)
                skipped += lost
                smallest.add(names if glob.everything else _matching(names, glob))
    return Listing(smallest.result(), smallest.total, skipped)


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


@contextmanager
def _rules(
    directory: RootDirectory, *, include_ignored: bool
) -> Generator[tuple[Sequence[str], Sequence[int]]]:
    exclude = b"" if include_ignored else _exclude_rules(directory)
    if include_ignored:
        yield ("--glob=!.git", "--no-ignore"), ()
    elif not exclude:
        yield _RULES, ()
    else:
        with os.fdopen(os.memfd_create("exclude", os.MFD_CLOEXEC), "wb", buffering=0) as copy:
            copy.write(exclude)
            yield (*_RULES, f"--ignore-file=/proc/self/fd/{copy.fileno()}"), (copy.fileno(),)


def _exclude_rules(directory: RootDirectory) -> bytes:
    try:
        return directory.read_file(_EXCLUDE_FILE, max_bytes=_EXCLUDE_MAX_BYTES)
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
