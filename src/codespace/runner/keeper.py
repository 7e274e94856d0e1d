"""Keeps one command's whole subtree where no PID namespace is to be had, and ends it.

Run as a program: `python -I -S keeper.py MARK LIFE_FD STATUS_FD tty|pipe PROGRAM [ARGUMENT…]`,
standard library only. It is a child sub-reaper, so what a command leaves behind stays below it. On
LIFE_FD a byte asks the subtree to end; end of file, as when the gateway was killed, ends it at
once. On STATUS_FD it says `started PID`, and `ended STATUS` once nothing is left. MARK is for
whoever looks for keepers.
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
_PR_SET_DUMPABLE = 4
_PR_SET_CHILD_SUBREAPER = 36
_PR_SET_NO_NEW_PRIVS = 38
_LANDLOCK_CREATE_RULESET = 444
_LANDLOCK_RESTRICT_SELF = 446
_LANDLOCK_TELL_VERSION = 1
_LANDLOCK_SCOPE_SIGNAL = 2
_SIGNALS_SCOPED_SINCE = 6
_SHELL = "/bin/sh"
_CANNOT_EXECUTE = 126
_NOT_FOUND = 127
_PAUSE_SECONDS = 0.001
WAIT_FOR_ALL = 0x4000_0000
"""Wait also for a child that tells its end by another signal, or by none."""


def descendants(pid: int) -> Iterator[int]:
    """Yield what lives below a process now, parents before children.

    A process between fork and exit may be missed: who must be sure looks again.
    """
    children = _children_lister()
    waiting = [pid]
    while waiting:
        found = children(waiting.pop()) or ()
        yield from found
        waiting += found


def children_of(pid: int) -> list[int]:
    """Return a process's own children, the dead that nobody collected among them."""
    return _children_lister()(pid) or []


def kill_below(pid: int) -> None:
    """Kill what lives below a process; who must be sure looks again."""
    # Freeze first, so that nothing forks away between the look and the kill.
    for number in (signal.SIGSTOP, signal.SIGKILL):
        for descendant in list(descendants(pid)):
            signal_quietly(descendant, number)


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


def _children_lister() -> Callable[[int], list[int] | None]:
    listed = os.path.exists(f"/proc/self/task/{os.getpid()}/children")  # noqa: PTH110 -- pathlib doubles the start
    return _listed_children if listed else _children_by_parent().get


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
        self._gateway = os.getppid()
        self._environment = _environment()
        self._children = _own_children()
        self._leader = 0
        self._leader_status: int | None = None
        self._wake, wake_writer = os.pipe()
        os.set_blocking(self._wake, False)
        os.set_blocking(wake_writer, False)
        _hear_only_what_wakes(wake_writer)
        for descriptor in (life, status):
            fcntl.fcntl(descriptor, fcntl.F_SETFD, fcntl.FD_CLOEXEC)

    def run(self, prctl: Callable[[int, int], None], argv: list[str], *, tty: bool) -> None:
        # The command may have stopped us when the gateway dies, and hold the life line open; the
        # kernel wakes us all the same. It may do so at the end of a mere thread, too, so we look.
        prctl(_PR_SET_PDEATHSIG, signal.SIGCONT)
        prctl(_PR_SET_DUMPABLE, 0)  # nobody of our user traces us or opens our descriptors
        if self._gateway_is_gone():
            return
        self._leader = os.fork()
        if self._leader == 0:
            prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
            # Said here and not by the keeper, which the command may kill before it comes to that.
            self._say(f"started {os.getpid()}")
            _become(argv, self._environment, tty=tty)
        if not tty:  # a terminal stays open: its output ends when the keeper does
            null = os.open(os.devnull, os.O_RDWR)
            for descriptor in range(3):
                os.dup2(null, descriptor)
            os.close(null)
        self._watch()
        self._end_all()
        if self._leader_status is not None:
            self._say(f"ended {os.waitstatus_to_exitcode(self._leader_status)}")

    def _gateway_is_gone(self) -> bool:
        ready, _, _ = select.select([self._life], [], [], 0)
        return os.getppid() != self._gateway or (bool(ready) and not os.read(self._life, 512))

    def _watch(self) -> None:
        asked = False
        # Who was asked to end is given the time, also when the leader goes first.
        while self._reap() and (asked or self._leader_status is None):
            ready, _, _ = select.select([self._life, self._wake], [], [])
            if self._wake in ready:
                os.read(self._wake, 512)
            if os.getppid() != self._gateway:
                return
            if self._life in ready:
                if not os.read(self._life, 512):
                    return
                asked = True
                ask_to_end(os.getpid())

    def _end_all(self) -> None:
        # No walk proves that nothing is left; only having no child at all does.
        while self._reap():
            if self._leader_status is None:
                signal_quietly(self._leader, signal.SIGKILL)
            kill_below(os.getpid())
            self._kill_children()
            select.select([], [], [], _PAUSE_SECONDS)

    def _kill_children(self) -> None:
        # The command may have lowered our limit of descriptors, so that no walk sees anything.
        # What is below a killed child becomes our child next.
        if self._children is not None:
            for pid in os.pread(self._children, 1 << 16, 0).split():
                signal_quietly(int(pid), signal.SIGKILL)

    def _reap(self) -> bool:
        """Collect what has ended; return whether any child is left."""
        try:
            while True:
                pid, status = os.waitpid(-1, os.WNOHANG | WAIT_FOR_ALL)
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


def _own_children() -> int | None:
    pid = os.getpid()
    try:
        return os.open(f"/proc/self/task/{pid}/children", os.O_RDONLY | os.O_CLOEXEC)
    except OSError:  # a kernel that does not list them
        return None


def _hear_only_what_wakes(wake_writer: int) -> None:
    for number in signal.valid_signals() - {signal.SIGKILL, signal.SIGSTOP}:
        signal.signal(number, signal.SIG_IGN)
    signal.set_wakeup_fd(wake_writer, warn_on_full_buffer=False)
    for number in (signal.SIGCHLD, signal.SIGCONT):
        signal.signal(number, lambda _number, _frame: None)


def _become(argv: list[str], environment: dict[bytes, bytes], *, tty: bool) -> None:
    """Turn this process into the command; never returns."""
    try:
        os.setsid()
        if tty:
            fcntl.ioctl(0, termios.TIOCSCTTY, 0)
        signal.set_wakeup_fd(-1)
        for number in signal.valid_signals() - {signal.SIGKILL, signal.SIGSTOP}:
            if signal.getsignal(number) is not signal.SIG_DFL:
                signal.signal(number, signal.SIG_DFL)
        _keep_signals_inside()
        _execute(argv, environment)
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


def _keep_signals_inside() -> None:
    """Let the command signal and trace what is below us only, where the kernel can do that.

    Elsewhere it can still stop or kill us; the gateway and its successor see to that.
    """
    call = ctypes.CDLL(None).syscall
    size_of_none = ctypes.c_size_t(0)
    version = call(_LANDLOCK_CREATE_RULESET, None, size_of_none, _LANDLOCK_TELL_VERSION)
    if version < _SIGNALS_SCOPED_SINCE:
        return
    rules = (ctypes.c_uint64 * 3)(0, 0, _LANDLOCK_SCOPE_SIGNAL)  # no rule on files and network
    domain = call(_LANDLOCK_CREATE_RULESET, rules, ctypes.c_size_t(ctypes.sizeof(rules)), 0)
    if domain >= 0:
        call(_LANDLOCK_RESTRICT_SELF, domain, 0)
        os.close(domain)


def prctl_function() -> Callable[[int, int], None]:
    """Return the system call, which raises `OSError` when it is refused."""
    library = ctypes.CDLL(None, use_errno=True)

    def call(option: int, value: int) -> None:
        zero = ctypes.c_ulong(0)
        if library.prctl(option, ctypes.c_ulong(value), zero, zero, zero):
            raise OSError(ctypes.get_errno(), "prctl")

    return call


def _main() -> None:
    _mark, life, status, mode, *argv = sys.argv[1:]
    prctl = prctl_function()
    prctl(_PR_SET_CHILD_SUBREAPER, 1)
    # A set-user-id program below would be out of reach of our signals.
    prctl(_PR_SET_NO_NEW_PRIVS, 1)
    _Keeper(int(life), int(status)).run(prctl, argv, tty=mode == "tty")
    os._exit(0)  # tidying the interpreter up would keep the gateway waiting


if __name__ == "__main__":
    _main()
