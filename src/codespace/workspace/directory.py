"""The only boundary between a client's path and the disk: nothing below a root is a followed link.

Each component is opened from its parent's descriptor, so a racing rename or a swapped symlink can
only make a step fail. The lexical rule for paths is `domain.paths`'; callers apply it first.
"""

import errno
import os
import stat
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Literal

from codespace.domain.errors import CodeSpaceError, ErrorCode
from codespace.domain.paths import ROOT, shown, shown_raw
from codespace.domain.workspace import Root

_DIRECTORY = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_UNREADABLE_DIRECTORY = os.O_PATH | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_NODE = os.O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC
_CONTENT = os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC
_CHUNK_BYTES = 1024 * 1024

_CODES = {
    errno.ENOENT: (ErrorCode.FILE_NOT_FOUND, "does not exist; find lists what there is"),
    errno.ENOTDIR: (ErrorCode.PATH_NOT_DIRECTORY, "leads through no directory; look with find"),
    errno.ELOOP: (ErrorCode.SYMLINK_REJECTED, "leads through a link; name the real file instead"),
    errno.EISDIR: (ErrorCode.IS_A_DIRECTORY, "is a directory; name a file in it"),
}


@dataclass(frozen=True, slots=True)
class Look:
    """What stands at a path.

    `mode` holds the permission bits and `size` counts bytes; both are 0 where nothing stands.
    `blocked_by` names the regular file that stands where the path needs a directory.
    """

    kind: Literal["absent", "file", "directory"]
    mode: int = 0
    size: int = 0
    blocked_by: str | None = None


@dataclass(frozen=True, slots=True)
class _Obstacle:
    component: str
    error: CodeSpaceError


def register(path: str) -> Root:
    """Return the directory at the operator's `path`, with its links resolved and its identity.

    Raises:
        ValueError: there is no such directory, or it may not be listed. The message names it, for
            the operator.
    """
    try:
        resolved = os.path.realpath(path, strict=True)
        descriptor = os.open(resolved, _DIRECTORY)
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else str(error)
        raise ValueError(f"{path!r} is no directory that can be served: {reason}") from error
    try:
        status = os.fstat(descriptor)
    finally:
        os.close(descriptor)
    return Root(path=resolved, device=status.st_dev, inode=status.st_ino)


@contextmanager
def open_root(root: Root) -> Generator["RootDirectory"]:
    """Open the registered directory for one call.

    Raises:
        CodeSpaceError: FILE_OPERATION_FAILED when it was deleted, replaced or mounted over.
    """
    try:
        descriptor = os.open(root.path, _DIRECTORY)
    except OSError as error:
        raise _another_root(error.errno) from error
    try:
        status = os.fstat(descriptor)
        if (status.st_dev, status.st_ino) != (root.device, root.inode):
            raise _another_root(errno.ESTALE)
        yield RootDirectory(descriptor)
    finally:
        os.close(descriptor)


class RootDirectory:
    """An open root. Every path is a cleaned one, relative to it.

    Attributes:
        fd: the root's descriptor; it stays the owner's to close.
        created: the directories that `parent` made, outermost first. Whoever wants them durable
            or gone again does that.
    """

    __slots__ = ("created", "fd")

    def __init__(self, fd: int) -> None:
        self.fd = fd
        self.created: list[str] = []

    @contextmanager
    def parent(self, path: str, *, create: bool = False) -> Generator[tuple[int, str]]:
        """Open the directory that holds `path`; yield its descriptor and the last name.

        The name itself was not looked at. The descriptor can be synced, unless the directory may
        be searched but not listed. With `create`, missing directories are made.

        Raises:
            CodeSpaceError: SYMLINK_REJECTED, FILE_NOT_FOUND, PATH_NOT_DIRECTORY,
                SPECIAL_FILE_REJECTED, FILE_OPERATION_FAILED; IS_A_DIRECTORY for the root.
        """
        if path == ROOT:
            raise refusal(path, ErrorCode.IS_A_DIRECTORY, "is the root; name a file in it")
        directory = self._descend(path, create=create)
        if isinstance(directory, _Obstacle):
            raise directory.error
        try:
            yield directory, path.rpartition("/")[2]
        finally:
            self._close(directory)

    def look(self, path: str) -> Look:
        """Return what stands at `path`, without opening it.

        Raises:
            CodeSpaceError: SYMLINK_REJECTED for a link (dangling, too) at the path or above it;
                SPECIAL_FILE_REJECTED; FILE_OPERATION_FAILED.
        """
        if path == ROOT:
            return Look("directory", stat.S_IMODE(os.fstat(self.fd).st_mode))
        directory = self._descend(path)
        if isinstance(directory, _Obstacle):
            return _look_at_obstacle(directory)
        try:
            status = os.lstat(path.rpartition("/")[2], dir_fd=directory)
        except FileNotFoundError:
            return Look("absent")
        except OSError as error:
            raise failure(path, error) from error
        finally:
            self._close(directory)
        mode = status.st_mode
        if stat.S_ISDIR(mode):
            return Look("directory", stat.S_IMODE(mode))
        _require_regular(path, mode)
        return Look("file", stat.S_IMODE(mode), status.st_size)

    @contextmanager
    def open_file(self, path: str) -> Generator[int]:
        """Open the regular file at `path` for reading; yield its descriptor.

        Raises:
            CodeSpaceError: SYMLINK_REJECTED, SPECIAL_FILE_REJECTED, IS_A_DIRECTORY,
                FILE_NOT_FOUND, PATH_NOT_DIRECTORY, FILE_OPERATION_FAILED.
        """
        with self.parent(path) as (directory, name):
            try:
                descriptor = open_regular(path, directory, name)
            except OSError as error:
                raise failure(path, error) from error
        try:
            yield descriptor
        finally:
            os.close(descriptor)

    def read_file(self, path: str, *, max_bytes: int) -> bytes:
        """Return the bytes of the regular file at `path`.

        Raises:
            CodeSpaceError: as `open_file`; LIMIT_EXCEEDED for more than `max_bytes`.
        """
        with self.open_file(path) as descriptor:
            try:
                content = _read_up_to(descriptor, max_bytes + 1)
            except OSError as error:
                raise failure(path, error) from error
        if len(content) > max_bytes:
            raise CodeSpaceError(
                ErrorCode.LIMIT_EXCEEDED,
                f"{shown(path)} is larger than the limit of {max_bytes} bytes.",
                details={"path": shown_raw(path), "limit": max_bytes},
            )
        return content

    def _descend(self, path: str, *, create: bool = False) -> int | _Obstacle:
        """Return a descriptor of the directory that holds `path`; `_close` takes it back."""
        _require_unicode(path)
        parts = path.split("/")
        current = self.fd
        for depth, name in enumerate(parts[:-1]):
            try:
                child = self._open_directory(current, parts[: depth + 1], create=create)
            except OSError as error:
                component = "/".join(parts[: depth + 1])
                return _Obstacle(component, _why_blocked(path, component, current, name, error))
            finally:
                self._close(current)
            current = child
        return current

    def _open_directory(self, parent: int, parts: list[str], *, create: bool) -> int:
        name = parts[-1]
        try:
            return os.open(name, _DIRECTORY, dir_fd=parent)
        except PermissionError:
            return os.open(name, _UNREADABLE_DIRECTORY, dir_fd=parent)
        except FileNotFoundError:
            if not create:
                raise
        try:
            os.mkdir(name, 0o777, dir_fd=parent)
        except FileExistsError:  # somebody else was faster; the open below judges what they made
            pass
        else:
            self.created.append("/".join(parts))
        return os.open(name, _DIRECTORY, dir_fd=parent)

    def _close(self, descriptor: int) -> None:
        if descriptor != self.fd:
            os.close(descriptor)


def failure(path: str, error: OSError) -> CodeSpaceError:
    """Return the contract's error for a system call that failed on `path`."""
    known = _CODES.get(error.errno or 0)
    if known is not None:
        return refusal(path, *known)
    return CodeSpaceError(
        ErrorCode.FILE_OPERATION_FAILED,
        f"The path {shown(path)} cannot be used: {os.strerror(error.errno or errno.EIO)}.",
        details={"path": shown_raw(path), "errno": _symbol(error.errno)},
    )


def refusal(
    path: str, code: ErrorCode, why: str, *, component: str | None = None
) -> CodeSpaceError:
    """Return an error about `path`; `component` names the ancestor that is in the way."""
    details: dict[str, object] = {"path": shown_raw(path)}
    if component is not None:
        details["component"] = shown_raw(component)
    return CodeSpaceError(code, f"The path {shown(path)} {why}.", details=details)


def open_regular(path: str, directory: int, name: str) -> int:
    """Open the regular file `name` of a directory that was walked to; `path` is for the error.

    Raises:
        CodeSpaceError: SYMLINK_REJECTED or SPECIAL_FILE_REJECTED.
        OSError: `failure` says what it means.
    """
    # An O_PATH descriptor holds the node without opening it, so that a device or a FIFO that is
    # swapped in is never touched: only the very node that was judged is then opened for reading.
    node = os.open(name, _NODE, dir_fd=directory)
    try:
        mode = os.fstat(node).st_mode
        if stat.S_ISDIR(mode):
            raise IsADirectoryError(errno.EISDIR, "is a directory")
        _require_regular(path, mode)
        return os.open(f"/proc/self/fd/{node}", _CONTENT)
    finally:
        os.close(node)


def _read_up_to(descriptor: int, count: int) -> bytes:
    chunks: list[bytes] = []
    while count > 0:
        chunk = os.read(descriptor, min(count, _CHUNK_BYTES))
        if not chunk:
            break
        chunks.append(chunk)
        count -= len(chunk)
    return chunks[0] if len(chunks) == 1 else b"".join(chunks)


def _require_regular(path: str, mode: int) -> None:
    if stat.S_ISLNK(mode):
        raise refusal(
            path, ErrorCode.SYMLINK_REJECTED, "is a symbolic link; name the real file instead"
        )
    if not stat.S_ISREG(mode):
        raise refusal(
            path, ErrorCode.SPECIAL_FILE_REJECTED, "is a device, socket or FIFO, not a file"
        )


def _require_unicode(path: str) -> None:
    try:
        path.encode()
    except UnicodeEncodeError as error:
        raise CodeSpaceError(
            ErrorCode.INVALID_ARGUMENT,
            f"The path {shown(path)} is not valid Unicode; name files in UTF-8.",
            details={"path": shown_raw(path)},
        ) from error


def _why_blocked(
    path: str, component: str, parent: int, name: str, error: OSError
) -> CodeSpaceError:
    # The kernel says ENOTDIR for a link, too. What stands there now decides the word, no more;
    # a directory by now means that somebody swapped it in, and that asking again is worth it.
    if error.errno not in (errno.ENOTDIR, errno.ELOOP):
        return failure(path, error)
    try:
        mode = os.lstat(name, dir_fd=parent).st_mode
    except OSError:
        return failure(path, error)
    if stat.S_ISDIR(mode):
        return failure(path, BlockingIOError(errno.EAGAIN, "changed while it was resolved"))
    if stat.S_ISLNK(mode):
        code, what = ErrorCode.SYMLINK_REJECTED, "which is a symbolic link; name the real file"
    elif stat.S_ISREG(mode):
        code, what = ErrorCode.PATH_NOT_DIRECTORY, "which is no directory; find lists what there is"
    else:
        code, what = ErrorCode.SPECIAL_FILE_REJECTED, "which is a device, socket or FIFO"
    return refusal(path, code, f"leads through {shown(component)}, {what}", component=component)


def _look_at_obstacle(obstacle: _Obstacle) -> Look:
    if obstacle.error.code is ErrorCode.FILE_NOT_FOUND:
        return Look("absent")
    if obstacle.error.code is ErrorCode.PATH_NOT_DIRECTORY:
        return Look("absent", blocked_by=obstacle.component)
    raise obstacle.error


def _another_root(number: int | None) -> CodeSpaceError:
    return CodeSpaceError(
        ErrorCode.FILE_OPERATION_FAILED,
        "The workspace's root is not the directory that was registered; ask the operator to check"
        " it and start the server again.",
        details={"path": ROOT, "errno": _symbol(number)},
    )


def _symbol(number: int | None) -> str:
    return errno.errorcode.get(number or errno.EIO, str(number))
