"""The process keeps its memory and its token to itself: commands of the same user may look at it.

Where a PID namespace hides the gateway from its commands this adds little; elsewhere it is all.
"""

import ctypes
import sys
from pathlib import Path

_SET_DUMPABLE = 4
_ENVIRONMENT_START, _ENVIRONMENT_END = 47, 48
"""Fields 50 and 51 of `stat`, counted from behind the program's name."""


def keep_to_itself(*secrets: str) -> None:
    """Close this process to others of its user, and wipe variables out of what they could read.

    Other processes of the user can read neither memory nor environment of one that is not dumpable;
    those of root can, so the variables named in `secrets` go from the memory that the system shows
    as the environment. What Python holds of them already stays.
    """
    if sys.platform != "linux":
        return
    zero = ctypes.c_ulong(0)
    ctypes.CDLL(None).prctl(_SET_DUMPABLE, zero, zero, zero, zero)
    shown = _shown_environment()
    for name in secrets:
        _wipe(shown, f"{name}=".encode())


def _shown_environment() -> "ctypes.Array[ctypes.c_char]":
    # In the program's own memory, where the kernel put it before the first instruction ran.
    fields = Path("/proc/self/stat").read_text("utf-8", "replace").rpartition(")")[2].split()
    start, end = int(fields[_ENVIRONMENT_START]), int(fields[_ENVIRONMENT_END])
    return (ctypes.c_char * (end - start)).from_address(start)


def _wipe(shown: "ctypes.Array[ctypes.c_char]", beginning: bytes) -> None:
    at = 0
    for entry in shown.raw.split(b"\0"):
        if entry.startswith(beginning):
            shown[at : at + len(entry)] = bytes(len(entry))
        at += len(entry) + 1
