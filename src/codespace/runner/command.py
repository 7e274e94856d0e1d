"""Checks a command before anything exists: its arguments, its program, its working directory."""

import errno
import os
import shutil
import stat
from collections.abc import Sequence

from codespace.domain.errors import CodeSpaceError, ErrorCode
from codespace.domain.limits import Limits
from codespace.domain.workspace import Root
from codespace.runner.api import StartRequest

_PATH_VARIABLE = "PATH"


def check_arguments(argv: Sequence[str], limits: Limits) -> None:
    """Refuse what the kernel could not take, or would refuse only after a process exists.

    Raises:
        CodeSpaceError: INVALID_COMMAND; LIMIT_EXCEEDED with `limit` and `maximum`.
    """
    if not argv or not argv[0]:
        raise CodeSpaceError(
            ErrorCode.INVALID_COMMAND, "The command is empty; give a program and its arguments."
        )
    encoded = [_encoded(argument, at) for at, argument in enumerate(argv)]
    if len(encoded) > limits.argv_max_count:
        raise _over("argv_max_count", limits.argv_max_count, "arguments")
    if any(len(argument) > limits.argument_max_bytes for argument in encoded):
        raise _over("argument_max_bytes", limits.argument_max_bytes, "bytes in one argument")
    if sum(map(len, encoded)) > limits.argv_max_bytes:
        raise _over("argv_max_bytes", limits.argv_max_bytes, "bytes in all")


def resolve_program(request: StartRequest, directory: int) -> str:
    """Return the program's path, found as the command itself would find it.

    A name with a slash is taken from `directory`, an open descriptor of the root, and stays
    relative; any other is looked up on the command's PATH and becomes absolute. Neither can be
    mistaken for an option.

    Raises:
        CodeSpaceError: PROCESS_SPAWN_FAILED when there is no such program or it cannot execute.
    """
    name = request.argv[0]
    if "/" in name:
        path = name if name.startswith(("/", "./", "../")) else f"./{name}"
        if _is_executable(path, directory):
            return path
        raise _no_program(name, "is not an executable file")
    found = shutil.which(name, path=_absolute_only(request.environment.get(_PATH_VARIABLE, "")))
    if found is None:
        raise _no_program(name, "is not on the PATH of commands")
    return found


def open_root(root: Root) -> int:
    """Return a descriptor of the root, after making sure that it is still the registered one.

    Raises:
        CodeSpaceError: FILE_OPERATION_FAILED.
    """
    try:
        descriptor = os.open(root.path, os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
    except OSError as error:
        raise root_refusal(error.errno) from error
    if not is_root(os.fstat(descriptor), root):
        os.close(descriptor)
        raise root_refusal(errno.ESTALE)
    return descriptor


def is_root(status: os.stat_result, root: Root) -> bool:
    """Tell whether a directory is the one that was registered, whatever its path is now."""
    return (
        stat.S_ISDIR(status.st_mode)
        and status.st_dev == root.device
        and status.st_ino == root.inode
    )


def root_refusal(number: int | None) -> CodeSpaceError:
    """Return the refusal of a root that is not what was registered."""
    return CodeSpaceError(
        ErrorCode.FILE_OPERATION_FAILED,
        "The workspace's root is gone or was replaced since it was registered;"
        " restore it or restart the server.",
        details={"errno": errno.errorcode.get(number or 0, "EIO")},
    )


def _is_executable(path: str, directory: int) -> bool:
    try:
        status = os.stat(path, dir_fd=directory)
    except OSError:
        return False
    return stat.S_ISREG(status.st_mode) and os.access(path, os.X_OK, dir_fd=directory)


def _encoded(argument: str, at: int) -> bytes:
    try:
        encoded = argument.encode()
    except UnicodeEncodeError as error:
        raise _invalid(at, "broken Unicode") from error
    if b"\0" in encoded:
        raise _invalid(at, "a NUL")
    return encoded


def _absolute_only(search_path: str) -> str:
    # An empty or relative entry would look in the gateway's own directory, not in the workspace.
    return os.pathsep.join(
        entry for entry in search_path.split(os.pathsep) if entry.startswith("/")
    )


def _invalid(at: int, what: str) -> CodeSpaceError:
    return CodeSpaceError(
        ErrorCode.INVALID_COMMAND,
        f"Argument {at} of the command holds {what}; leave it out.",
        details={"argument": at},
    )


def _over(limit: str, maximum: int, unit: str) -> CodeSpaceError:
    return CodeSpaceError(
        ErrorCode.LIMIT_EXCEEDED,
        f"A command holds at most {maximum} {unit}; put the rest in a file.",
        details={"limit": limit, "maximum": maximum},
    )


def _no_program(name: str, why: str) -> CodeSpaceError:
    shown = name.encode("ascii", "backslashreplace").decode("ascii")[:200]
    return CodeSpaceError(
        ErrorCode.PROCESS_SPAWN_FAILED,
        f"The program {shown!r} {why}; check its name, or run it by its interpreter.",
        details={"program": shown},
    )
