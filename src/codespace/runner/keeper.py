"""Keeps one command's whole subtree where no PID namespace is to be had, and ends it.

Run as a program: `python -I -S keeper.py LIFE_FD STATUS_FD tty|pipe PROGRAM [ARGUMENT…]`, standard
library only. It is a child sub-reaper, so what a command leaves behind stays below it. On LIFE_FD
a byte asks the subtree to end; end of file, as when the gateway was killed, ends it at once. On
STATUS_FD it says `started PID`, and `ended STATUS` once nothing is left.
"""

import ctypes
import errno
import fcntl
import itertools
import os
import select
import signal
import sys
import termios
from collections.abc import Callable, Iterator

_PR_SET_PDEATHSIG = 1
_PR_SET_CHILD_SUBREAPER = 36
_PR_SET_NO_NEW_PRIVS = 38
_SHELL = "/bin/sh"
_CANNOT_EXECUTE = 126
_NOT_FOUND = 127
_PAUSE_SECONDS = 0.001


def descendants(pid: int) -> Iterator[int]:
    """Yield what lives below a process now, parents before children.

    A process between fork and exit may be missed: who must be sure looks again.
    """
    listed = os.path.exists(f"/proc/self/task/{os.getpid()}/children")  # noqa: PTH110 -- pathlib doubles the start
    children = _listed_children if listed else _children_by_parent().get
    waiting = [pid]
    while waiting:
        found = children(waiting.pop()) or ()
        yield from found
        waiting += found


def ask_to_end(pid: int, *, at_most: int = 1_000) -> None:
    """Send SIGTERM to all below a process, and wake those that are stopped so that they notice."""
    # Listed first: who dies of the signal hands its children on to others.
    for descendant in list(itertools.islice(descendants(pid), at_most)):
        signal_quietly(descendant, signal.SIGTERM)
        signal_quietly(descendant, signal.SIGCONT)


def signal_quietly(pid: int, number: int) -> None:
    """Send a signal to a process that may be gone by now."""
    try:
        os.kill(pid, number)
    except OSError:
        return


def _listed_children(pid: int) -> list[int]:
    found: list[int] = []
    # The list is kept by thread, and any thread may fork.
    for task in _names(f"/proc/{pid}/task"):
        found += map(int, _content(f"/proc/{pid}/task/{task}/children").split())
    return found


def _children_by_parent() -> dict[int, list[int]]:
    """Return all children of all processes, for a kernel that does not list them."""
    children: dict[int, list[int]] = {}
    for name in filter(str.isdecimal, _names("/proc")):
        fields = _content(f"/proc/{name}/stat").rpartition(b")")[2].split()
        if fields:
            children.setdefault(int(fields[1]), []).append(int(name))
    return children


def _names(directory: str) -> list[str]:
    try:
        return os.listdir(directory)  # noqa: PTH208 -- pathlib doubles the start
    except OSError:
        return []


def _content(path: str) -> bytes:
    try:
        with open(path, "rb") as file:  # noqa: PTH123 -- pathlib doubles the start
            return file.read()
    except OSError:
        return b""


class _Keeper:
    def __init__(self, life: int, status: int) -> None:
        self._life = life
        self._status = status
        self._leader = 0
        self._leader_status: int | None = None
        self._wake, wake_writer = os.pipe()
        os.set_blocking(self._wake, False)
        os.set_blocking(wake_writer, False)
        signal.set_wakeup_fd(wake_writer, warn_on_full_buffer=False)
        signal.signal(signal.SIGCHLD, lambda _number, _frame: None)
        for descriptor in (life, status):
            fcntl.fcntl(descriptor, fcntl.F_SETFD, fcntl.FD_CLOEXEC)

    def run(self, prctl: Callable[[int, int], None], argv: list[str], *, tty: bool) -> None:
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGQUIT):
            signal.signal(number, signal.SIG_IGN)
        if self._gateway_is_gone():
            return
        self._leader = os.fork()
        if self._leader == 0:
            prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
            _become(argv, tty=tty)
        if not tty:  # a terminal stays open: its output ends when the keeper does
            null = os.open(os.devnull, os.O_RDWR)
            for descriptor in range(3):
                os.dup2(null, descriptor)
            os.close(null)
        self._say(f"started {self._leader}")
        self._watch()
        self._end_all()
        if self._leader_status is not None:
            self._say(f"ended {os.waitstatus_to_exitcode(self._leader_status)}")

    def _gateway_is_gone(self) -> bool:
        ready, _, _ = select.select([self._life], [], [], 0)
        return bool(ready) and not os.read(self._life, 512)

    def _watch(self) -> None:
        asked = False
        # Who was asked to end is given the time, also when the leader goes first.
        while self._reap() and (asked or self._leader_status is None):
            ready, _, _ = select.select([self._life, self._wake], [], [])
            if self._wake in ready:
                os.read(self._wake, 512)
            if self._life in ready:
                if not os.read(self._life, 512):
                    return
                asked = True
                ask_to_end(os.getpid())

    def _end_all(self) -> None:
        # Freeze first, so that nothing forks away between the look and the kill. No walk proves
        # that nothing is left; only having no child at all does.
        while self._reap():
            if self._leader_status is None:
                signal_quietly(self._leader, signal.SIGKILL)
            for number in (signal.SIGSTOP, signal.SIGKILL):
                for pid in list(descendants(os.getpid())):
                    signal_quietly(pid, number)
            select.select([], [], [], _PAUSE_SECONDS)

    def _reap(self) -> bool:
        """Collect what has ended; return whether any child is left."""
        try:
            while True:
                pid, status = os.waitpid(-1, os.WNOHANG)
                if pid == 0:
                    return True
                if pid == self._leader:
                    self._leader_status = status
        except ChildProcessError:
            return False

    def _say(self, text: str) -> None:
        try:
            os.write(self._status, f"{text}\n".encode())
        except OSError:  # the gateway is gone; the life line says so next
            return


def _become(argv: list[str], *, tty: bool) -> None:
    """Turn this process into the command; never returns."""
    try:
        os.setsid()
        if tty:
            fcntl.ioctl(0, termios.TIOCSCTTY, 0)
        signal.set_wakeup_fd(-1)
        for number in signal.valid_signals() - {signal.SIGKILL, signal.SIGSTOP}:
            if signal.getsignal(number) is not signal.SIG_DFL:
                signal.signal(number, signal.SIG_DFL)
        _execute(argv, _environment())
    except OSError as error:
        os.write(2, f"{argv[0]}: {os.strerror(error.errno or 0)}\n".encode())
        os._exit(_NOT_FOUND if error.errno == errno.ENOENT else _CANNOT_EXECUTE)
    finally:
        os._exit(_CANNOT_EXECUTE)


def _environment() -> dict[bytes, bytes]:
    """Return what this program was given, without what the interpreter added for itself."""
    given = _content("/proc/self/environ").split(b"\0")
    pairs = (entry.partition(b"=") for entry in given if b"=" in entry)
    return {**{name: value for name, _, value in pairs}, b"PWD": os.getcwdb()}  # noqa: PTH109 -- pathlib doubles the start


def _execute(argv: list[str], environment: dict[bytes, bytes]) -> None:
    try:
        os.execve(argv[0], argv, environment)  # noqa: S606 -- the command itself
    except OSError as error:
        if error.errno != errno.ENOEXEC:
            raise
        # A script without an interpreter line runs by the shell, as in any shell.
        os.execve(_SHELL, [_SHELL, *argv], environment)  # noqa: S606 -- the command itself


def _prctl() -> Callable[[int, int], None]:
    library = ctypes.CDLL(None, use_errno=True)

    def call(option: int, value: int) -> None:
        zero = ctypes.c_ulong(0)
        if library.prctl(option, ctypes.c_ulong(value), zero, zero, zero):
            raise OSError(ctypes.get_errno(), "prctl")

    return call


def _main() -> None:
    life, status, mode, *argv = sys.argv[1:]
    prctl = _prctl()
    prctl(_PR_SET_CHILD_SUBREAPER, 1)
    # A set-user-id program below would be out of reach of our signals.
    prctl(_PR_SET_NO_NEW_PRIVS, 1)
    _Keeper(int(life), int(status)).run(prctl, argv, tty=mode == "tty")
    os._exit(0)  # tidying the interpreter up would keep the gateway waiting


if __name__ == "__main__":
    _main()
