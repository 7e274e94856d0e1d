"""What a killed keeper leaves: this process adopts it, ends it, and knows when none of it is left.

Only as long as a runner with keepers is open, and only what can have come from a keeper: children
that others of this process started are neither ended nor collected.
"""

import contextlib
import ctypes
import os
import signal
import time
from collections.abc import Set as AbstractSet
from pathlib import Path

from codespace.runner.keeper import (
    WAIT_FOR_ALL,
    children_of,
    kill_below,
    prctl_function,
    signal_quietly,
)
from codespace.runner.launchers import start_time

_PR_SET_CHILD_SUBREAPER = 36
_PR_GET_CHILD_SUBREAPER = 37
_BURST_SECONDS = 0.02


class Adoption:
    """Makes this process the next of kin of whatever loses its keeper.

    Runners that overlap in one process are to be closed last opened, first closed.
    """

    def __init__(self) -> None:
        self._prctl = prctl_function()
        self._before: int | None = None

    def begin(self) -> None:
        """Adopt from now on; good more than once.

        Raises:
            OSError: the system does not let us.
        """
        if self._before is None:
            adopting = ctypes.c_int()
            self._prctl(_PR_GET_CHILD_SUBREAPER, ctypes.addressof(adopting))
            self._before = adopting.value
        self._prctl(_PR_SET_CHILD_SUBREAPER, 1)

    def end(self) -> None:
        """Go back to what was before `begin`."""
        before, self._before = self._before, None
        if before is not None:
            self._prctl(_PR_SET_CHILD_SUBREAPER, before)


class Orphans:
    """Those of one keeper, as far as they can be told from other children of this process.

    `since` is when the keeper started, as `start_time` tells it: nothing of its is older. `known`
    are the runner's own keepers at any time. One kind cannot be told apart: where this process can
    gain no rights itself, a younger child of others in a session of its own that nobody holds.
    """

    def __init__(self, since: int, known: AbstractSet[int]) -> None:
        self._since = since
        self._known = known
        self._session = os.getsid(0)
        self._others: set[int] = set()

    def end(self) -> bool:
        """Kill and collect what was adopted; return whether there was anything.

        Blocks for some milliseconds. A look may miss one that moves, so that only a second empty
        look tells that nothing is left.

        Raises:
            OSError: there was no looking; nothing is known.
        """
        self._others = _held() | self._known | self._others.intersection(children_of(os.getpid()))
        enough = time.monotonic() + _BURST_SECONDS
        found = False
        while sum(self._is_dealt_with(pid) for pid in self._stop_new()):
            found = True
            if time.monotonic() > enough:
                break
        return found

    def _stop_new(self) -> list[int]:
        # Stopped at once and judged then: by the time that a look takes, who forks without pause
        # is somebody else.
        stopped: list[int] = []
        for pid in children_of(os.getpid()):
            if pid not in self._others and _session_of(pid) != self._session:
                signal_quietly(pid, signal.SIGSTOP)
                stopped.append(pid)
        return stopped

    def _is_dealt_with(self, pid: int) -> bool:
        """Kill a stopped child, or return false when it is somebody else's, which goes on."""
        try:
            status = Path(f"/proc/{pid}/status").read_bytes()
        except (FileNotFoundError, ProcessLookupError):
            return True
        started = int(start_time(pid) or self._since)
        # No process joins a session from outside, and a keeper begins one. None can lay off that
        # it gains no rights, and a keeper takes that on.
        if b"\nNoNewPrivs:\t1" not in status or started < self._since:
            self._others.add(pid)
            signal_quietly(pid, signal.SIGCONT)
            return False
        kill_below(pid)
        signal_quietly(pid, signal.SIGKILL)
        with contextlib.suppress(OSError):  # somebody who collects everything was quicker
            os.waitpid(pid, os.WNOHANG | WAIT_FOR_ALL)
        return True


def _session_of(pid: int) -> int | None:
    try:
        return os.getsid(pid)
    except OSError:
        return None


def _held() -> set[int]:
    """Return the processes that somebody in this process holds a descriptor of.

    Nobody holds one of an orphan; every runner does of each of its own children, and so does a
    modern event loop. Before Linux 5.18 a process that is not dumpable cannot look, so that this
    is not all there is to go by.
    """
    held: set[int] = set()
    try:
        entries = list(Path("/proc/self/fdinfo").iterdir())
    except PermissionError:
        return held
    for entry in entries:
        with contextlib.suppress(FileNotFoundError, PermissionError):
            _, found, rest = entry.read_bytes().partition(b"\nPid:\t")
            if found and rest.split()[0].isdigit():
                held.add(int(rest.split()[0]))
    return held
