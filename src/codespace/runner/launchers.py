"""The launcher processes themselves: how they are marked, and how half-made ones are ended.

A launcher binds its life to the gateway's late in its set-up. One whose gateway was killed before
that may stay for ever; it runs nothing, and the next gateway finds it by its mark.
"""

import contextlib
import logging
import os
import signal
import time
from pathlib import Path

from codespace.runner.keeper import descendants, signal_quietly

_MARK = "codespace-launcher"
_STATE_FIELD = 0
_START_FIELD = 19
_STOPPED_OR_GONE = ("T", "t", "Z", "X", "")
_LOOKS = 200
_LOOK_SECONDS = 0.000_5

_log = logging.getLogger(__name__)


def mark() -> str:
    """Return the name under which this process's launchers run: whose they are, exactly."""
    own = os.getpid()
    return f"{_MARK}:{_pid_namespace()}:{own}:{_start_time(own)}"


def end_launcher(pid: int) -> None:
    """End a launcher that may be at any point of its set-up, with all that it made so far."""
    for child in stop_launcher(pid):
        signal_quietly(child, signal.SIGKILL)
    signal_quietly(pid, signal.SIGKILL)


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
    """End every launcher whose gateway is gone; return how many there were.

    Launchers of live gateways, and of other PID namespaces, are left alone.
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
        name = (entry / "cmdline").read_bytes().split(b"\0", 1)[0].decode(errors="replace")
    except OSError:
        return False
    kind, *fields = name.split(":")
    if kind != _MARK or len(fields) != len(("namespace", "pid", "start")):
        return False
    namespace, pid, start = fields
    return namespace == _pid_namespace() and pid.isdecimal() and _start_time(int(pid)) != start


def _pid_namespace() -> str:
    return str(Path("/proc/self/ns/pid").stat().st_ino)


def _start_time(pid: int) -> str:
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
