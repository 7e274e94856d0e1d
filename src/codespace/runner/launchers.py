"""The launcher and keeper processes themselves: how they are marked, and how one is ended.

A launcher binds its life to the gateway's late in its set-up. One whose gateway was killed before
that may stay for ever; it runs nothing. A keeper may be held up by its command. The next gateway
finds both by their mark.
"""

import contextlib
import logging
import os
import signal
import time
from pathlib import Path

from codespace.runner.keeper import descendants, kill_below, signal_quietly

_MARK = "codespace-launcher"
_MARK_PLACES = (0, 4)  # a launcher's name; what a keeper's program is given first
_STATE_FIELD = 0
_START_FIELD = 19
_STOPPED_OR_GONE = ("T", "t", "Z", "X", "")
_DEAD = ("Z", "X", "")
_LOOKS = 200
_LOOK_SECONDS = 0.000_5
_KILLS = 2_000

_log = logging.getLogger(__name__)


def mark() -> str:
    """Return the word by which this process's launchers are known: whose they are, exactly."""
    own = os.getpid()
    return f"{_MARK}:{_pid_namespace()}:{own}:{start_time(own)}"


def end_launcher(pid: int) -> None:
    """End a launcher or keeper, at any point of its life, with all that is below it.

    Blocks until the latter is dead, at most for some seconds.
    """
    stop_launcher(pid)
    # Stopped, a keeper still adopts what its children leave, so that nothing gets away.
    for _ in range(_KILLS):
        if not end_below(pid):
            break
        time.sleep(_LOOK_SECONDS)
    signal_quietly(pid, signal.SIGKILL)


def end_below(pid: int) -> bool:
    """Kill what lives below a process; return whether anything did."""
    living = any(_state(descendant) not in _DEAD for descendant in descendants(pid))
    if living:
        kill_below(pid)
    return living


def stop_launcher(pid: int) -> list[int]:
    """Stop a launcher and return all that is below it.

    Killed at once, it could leave a child that nothing binds to us yet. Stopped, it makes no more
    of them. Blocks for a moment, at most a tenth of a second.
    """
    signal_quietly(pid, signal.SIGSTOP)
    for _ in range(_LOOKS):
        if _state(pid) in _STOPPED_OR_GONE:
            break
        time.sleep(_LOOK_SECONDS)
    return list(descendants(pid))


def end_orphaned_launchers() -> int:
    """End every launcher and keeper whose gateway is gone; return how many there were.

    Those of live gateways, and of other PID namespaces, are left alone.
    """
    ended = 0
    for entry in Path("/proc").iterdir():
        if entry.name.isdecimal() and _is_orphan(entry):
            end_launcher(int(entry.name))
            ended += 1
    if ended:
        _log.info("ended launchers that a killed gateway left", extra={"count": ended})
    return ended


def _is_orphan(entry: Path) -> bool:
    try:
        words = (entry / "cmdline").read_bytes().decode(errors="replace").split("\0", 5)
    except OSError:
        return False
    return any(_names_the_dead(words[place]) for place in _MARK_PLACES if place < len(words))


def _names_the_dead(word: str) -> bool:
    kind, *fields = word.split(":")
    if kind != _MARK or len(fields) != len(("namespace", "pid", "start")):
        return False
    namespace, pid, start = fields
    return namespace == _pid_namespace() and pid.isdecimal() and start_time(int(pid)) != start


def _pid_namespace() -> str:
    return str(Path("/proc/self/ns/pid").stat().st_ino)


def start_time(pid: int) -> str:
    """Return when a process started, in the kernel's ticks; empty when it is gone."""
    fields = _status_fields(pid)
    return fields[_START_FIELD] if fields else ""


def _state(pid: int) -> str:
    fields = _status_fields(pid)
    return fields[_STATE_FIELD] if fields else ""


def _status_fields(pid: int) -> list[str]:
    """Return the fields of /proc/PID/stat after the name, which may hold anything."""
    with contextlib.suppress(OSError):
        text = Path(f"/proc/{pid}/stat").read_text(encoding="ascii", errors="replace")
        return text.rpartition(")")[2].split()
    return []
