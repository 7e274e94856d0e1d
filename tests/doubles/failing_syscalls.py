"""System calls of which chosen ones fail: `workspace.syscalls.Syscalls` with a counter."""

import os
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import NamedTuple

from codespace.workspace.syscalls import Syscalls


class Call(NamedTuple):
    """One system call: its place among all, its name, and the name that it is about."""

    number: int
    name: str
    target: str


def never(_call: Call) -> int | None:
    return None


def nothing(_call: Call) -> None:
    return None


@dataclass(slots=True)
class Faults:
    """When to fail, and what was called: `fails` is asked before each call; `before` may act."""

    fails: Callable[[Call], int | None] = never
    before: Callable[[Call], None] = nothing
    called: list[str] = field(default_factory=list[str])

    def check(self, name: str, target: str = "") -> None:
        call = Call(len(self.called), name, target)
        self.called.append(name)
        self.before(call)
        error = self.fails(call)
        if error is not None:
            raise OSError(error, os.strerror(error))


class FailingSyscalls(Syscalls):
    """Asks `faults` first, then does the real call."""

    def __init__(self, faults: Faults) -> None:
        super().__init__()
        self.faults = faults

    def create(self, name: str, mode: int, *, dir_fd: int) -> int:
        self.faults.check("create", name)
        return super().create(name, mode, dir_fd=dir_fd)

    def write(self, fd: int, data: memoryview) -> int:
        # Only half of it: whoever takes one call for the whole loses the rest.
        self.faults.check("write")
        return super().write(fd, data[: max(1, len(data) // 2)])

    def chown(self, fd: int, uid: int, gid: int) -> None:
        self.faults.check("chown")
        super().chown(fd, uid, gid)

    def chmod(self, fd: int, mode: int) -> None:
        self.faults.check("chmod")
        super().chmod(fd, mode)

    def set_attribute(self, fd: int, name: str, value: bytes) -> None:
        self.faults.check("set_attribute", name)
        super().set_attribute(fd, name, value)

    def remove_attribute(self, fd: int, name: str) -> None:
        self.faults.check("remove_attribute", name)
        super().remove_attribute(fd, name)

    def sync(self, fd: int) -> None:
        # The other programs of a test machine have much to sync; a test does not wait for them.
        self.faults.check("sync")

    def sync_filesystem(self, fd: int) -> None:
        self.faults.check("sync_filesystem")

    def rename(self, source: str, destination: str, *, dir_fd: int) -> None:
        self.faults.check("rename", destination)
        super().rename(source, destination, dir_fd=dir_fd)

    def unlink(self, name: str, *, dir_fd: int) -> None:
        self.faults.check("unlink", name)
        super().unlink(name, dir_fd=dir_fd)

    def mkdir(self, name: str, *, dir_fd: int) -> None:
        self.faults.check("mkdir", name)
        super().mkdir(name, dir_fd=dir_fd)

    def rmdir(self, name: str, *, dir_fd: int) -> None:
        self.faults.check("rmdir", name)
        super().rmdir(name, dir_fd=dir_fd)

    def status(self, name: str, *, dir_fd: int) -> os.stat_result:
        self.faults.check("status", name)
        return super().status(name, dir_fd=dir_fd)
