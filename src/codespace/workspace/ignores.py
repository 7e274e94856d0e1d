"""The rules of `.gitignore` files as one list, for a root where rg must not open them itself.

rg opens whatever has that name: a FIFO or a device holds it up for ever, and a file as large as a
disk fills the memory. Here only regular files of a bounded size are read, through no link.
"""

import os
import stat
from collections import OrderedDict
from collections.abc import Generator
from contextlib import closing
from pathlib import Path

from codespace.domain.errors import CodeSpaceError, ErrorCode
from codespace.domain.sizes import MIB
from codespace.workspace.deadline import Deadline

IGNORE_FILE = ".gitignore"
IGNORE_MAX_BYTES = MIB
"""A larger one may rule nothing."""

_TOTAL_MAX_BYTES = 8 * MIB
_HELD_MAX = 16
_GIT = b".git"
_DIRECTORY = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_CONTENT = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC
_MARK = b"\xef\xbb\xbf"
_SPECIAL = frozenset("\\*?[]{}!#")
_SURROGATES = range(0xDC80, 0xDD00)


def obstructed(root: int, deadline: Deadline) -> bool:
    """Say whether an ignore file below the open `root`, or above it, could hold rg up.

    Raises:
        CodeSpaceError: TIMEOUT.
    """
    top = Path(f"/proc/self/fd/{root}").readlink()
    if any(_obstructs(str(above / IGNORE_FILE)) for above in top.parents):
        return True
    with closing(_directories(root, deadline)) as below:
        return any(_obstructs(IGNORE_FILE, directory) for _, directory in below)


def collected(root: int, deadline: Deadline) -> bytes:
    """Return the rules of all ignore files below the open `root`, as one file in the root has them.

    The rules of a directory stand behind those of the directories above it, since the last rule
    that matches wins.

    Raises:
        CodeSpaceError: TIMEOUT; LIMIT_EXCEEDED where they are too many.
    """
    rules: list[bytes] = []
    total = 0
    with closing(_directories(root, deadline)) as below:
        for path, directory in below:
            content = _content(directory)
            total += len(content)
            if total > _TOTAL_MAX_BYTES:
                raise _too_many()
            rules.append(rebased(content, path))
    return b"".join(rules)


def rebased(content: bytes, directory: bytes) -> bytes:
    """Return the rules of an ignore file in `directory` as the root's own ignore file has them.

    As for rg, a line that is not UTF-8 is the end of the file.
    """
    text = content.removeprefix(_MARK)
    try:
        lines = text.decode("utf-8").split("\n")
    except UnicodeDecodeError as error:
        lines = text[: error.start].decode("utf-8").split("\n")[:-1]
    prefix = _literally(directory)
    rules = (_rule(line.removesuffix("\r"), prefix) for line in lines)
    return "".join(f"{rule}\n" for rule in rules if rule).encode()


def _too_many() -> CodeSpaceError:
    return CodeSpaceError(
        ErrorCode.LIMIT_EXCEEDED,
        f"The {IGNORE_FILE} files hold more than {_TOTAL_MAX_BYTES} bytes; make them smaller.",
        details={"limit": _TOTAL_MAX_BYTES},
    )


def _rule(line: str, prefix: str) -> str:
    """Return one rule below `prefix`, or nothing where it rules nothing."""
    if line.startswith("#"):
        return ""
    negation = "!" if line.startswith("!") else ""
    pattern = line.removeprefix("!")
    anchored = pattern.startswith("/")
    pattern = pattern.removeprefix("/")
    meant = pattern.rstrip()
    if not meant.strip("/"):
        return ""
    deep = "" if anchored or "/" in meant.removesuffix("/") else "**/"
    return f"{negation}{prefix}{deep}{pattern}"


def _literally(directory: bytes) -> str:
    """Return the rule's beginning that stands for the directory, between two slashes."""
    if not directory:
        return "/"
    text = directory.decode("utf-8", "surrogateescape")
    return f"/{''.join(map(_literal, text))}/"


def _literal(character: str) -> str:
    if character in "\r\n" or ord(character) in _SURROGATES:
        return "?"  # neither can be written in a line of UTF-8
    return f"\\{character}" if character in _SPECIAL else character


def _directories(root: int, deadline: Deadline) -> Generator[tuple[bytes, int]]:
    """Yield the path and an open descriptor of each directory, those above before those below.

    Each is walked to from the root, or from one of the last ones, through no link: a tree may be
    deeper than descriptors reach.
    """
    held: OrderedDict[bytes, int] = OrderedDict()
    waiting = [b""]
    try:
        while waiting:
            deadline.remaining()
            path = waiting.pop()
            directory = _open(root, path, held)
            if directory is not None:
                held[path] = directory
                yield path, directory
                waiting += _subdirectories(path, directory)
            if len(held) > _HELD_MAX:
                os.close(held.popitem(last=False)[1])
    finally:
        for directory in held.values():
            os.close(directory)


def _open(root: int, path: bytes, held: OrderedDict[bytes, int]) -> int | None:
    above, _, name = path.rpartition(b"/")
    try:
        if above not in held or not path:
            return _walk(root, path)
        held.move_to_end(above)
        return os.open(name, _DIRECTORY, dir_fd=held[above])
    except OSError:  # gone, closed to us, or a link by now
        return None


def _walk(root: int, path: bytes) -> int:
    current = os.dup(root)
    for name in path.split(b"/") if path else ():
        try:
            child = os.open(name, _DIRECTORY, dir_fd=current)
        finally:
            os.close(current)
        current = child
    return current


def _subdirectories(path: bytes, directory: int) -> list[bytes]:
    try:
        with os.scandir(directory) as entries:
            names = [os.fsencode(entry.name) for entry in entries if _is_directory(entry)]
    except OSError:
        return []
    above = path + b"/" if path else b""
    return [above + name for name in names if name != _GIT]


def _is_directory(entry: os.DirEntry[str]) -> bool:
    try:
        return entry.is_dir(follow_symlinks=False)
    except OSError:
        return False


def _obstructs(name: str, directory: int | None = None) -> bool:
    try:
        status = os.stat(name, dir_fd=directory)  # through a link, as rg would: it opens nothing
    except OSError:
        return False
    if stat.S_ISREG(status.st_mode):
        return status.st_size > IGNORE_MAX_BYTES
    return not stat.S_ISDIR(status.st_mode)


def _content(directory: int) -> bytes:
    """Return what the directory's ignore file says; nothing unless it is a regular small file."""
    try:
        if not stat.S_ISREG(os.lstat(IGNORE_FILE, dir_fd=directory).st_mode):
            return b""
        descriptor = os.open(IGNORE_FILE, _CONTENT, dir_fd=directory)
    except OSError:
        return b""
    try:
        status = os.fstat(descriptor)
        if not stat.S_ISREG(status.st_mode) or status.st_size > IGNORE_MAX_BYTES:
            return b""
        return os.read(descriptor, IGNORE_MAX_BYTES)
    except OSError:
        return b""
    finally:
        os.close(descriptor)
