"""Lets a program that is started here open nothing but one directory and what programs need.

A second line of defence where the kernel has Landlock; without it the program runs unconfined, and
what it says must not be trusted, which holds in either case.
"""

import ctypes
import os
import struct
import threading
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TypeVar

_CREATE_RULESET = 444
_ADD_RULE = 445
_RESTRICT_SELF = 446
_PATH_BENEATH = 1
_SET_NO_NEW_PRIVS = 38

_EXECUTE = 1 << 0
_READ_FILE = 1 << 2
_READ_DIRECTORY = 1 << 3
_EVERYTHING = (1 << 13) - 1
"""What the first version of Landlock governs: each way to open, make or remove a file."""

_LIBRARIES = (
    "/lib",
    "/lib32",
    "/lib64",
    "/usr/lib",
    "/usr/lib32",
    "/usr/lib64",
    "/usr/local/lib",
    "/etc/ld.so.cache",
    "/nix/store",
    "/gnu/store",
)

T = TypeVar("T")


def confined(start: Callable[[], T], *, program: str, directory: int) -> T:
    """Call `start` in a thread whose children may read below `directory`, and run `program`.

    Whatever `start` opens itself is subject to the same rule.
    """
    outcome: list[T] = []
    failed: list[BaseException] = []

    def run() -> None:
        try:
            _restrict_this_thread(program, directory)
            outcome.append(start())
        except BaseException as error:  # noqa: BLE001 -- carried to the caller, who raises it
            failed.append(error)

    # The restriction cannot be lifted: it ends with its thread.
    thread = threading.Thread(target=run, name="confined start")
    thread.start()
    thread.join()
    if failed:
        raise failed[0]
    return outcome[0]


def _restrict_this_thread(program: str, directory: int) -> None:
    libc = ctypes.CDLL(None, use_errno=True)
    attributes = struct.pack("=Q", _EVERYTHING)
    ruleset = libc.syscall(_CREATE_RULESET, attributes, ctypes.c_size_t(len(attributes)), 0)
    if ruleset < 0:
        return
    try:
        _allow(libc, ruleset, directory, _READ_FILE | _READ_DIRECTORY)
        own_libraries = str(Path(program).parent.parent / "lib")
        for path in _existing((program, own_libraries, *_LIBRARIES)):
            _allow_path(libc, ruleset, path)
        if libc.prctl(_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0:
            libc.syscall(_RESTRICT_SELF, ruleset, 0)
    finally:
        os.close(ruleset)


def _existing(paths: Iterable[str]) -> list[str]:
    return [path for path in paths if Path(path).exists()]


def _allow_path(libc: ctypes.CDLL, ruleset: int, path: str) -> None:
    descriptor = os.open(path, os.O_PATH | os.O_CLOEXEC)
    try:
        _allow(libc, ruleset, descriptor, _EXECUTE | _READ_FILE)
    finally:
        os.close(descriptor)


def _allow(libc: ctypes.CDLL, ruleset: int, descriptor: int, access: int) -> None:
    rule = struct.pack("=Qi", access, descriptor)
    libc.syscall(_ADD_RULE, ruleset, _PATH_BENEATH, rule, 0)
