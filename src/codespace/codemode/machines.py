"""The engine of this process, compiled or loaded when the first script needs it; its threads."""

import os
import threading
from functools import cache
from pathlib import Path

from codespace.codemode.wasm import Machine
from codespace.codemode.workers import Workers

_lock = threading.Lock()


def default_cache() -> Path | None:
    """Return the user's own folder for machine code, if there is a home to have it in."""
    try:
        return Path.home() / ".cache" / "codespace" / "codemode"
    except RuntimeError:
        return None


def machine(folder: Path | None) -> Machine:
    """Return the engine, one for the whole process; its machine code is kept in `folder`."""
    with _lock:
        return _machine(folder)


@cache
def _machine(folder: Path | None) -> Machine:
    return Machine.load(cache=folder)


@cache
def workers() -> Workers:
    """Return the threads that end long steps: one for each processor but one.

    That one is the event loop's. With a thread for it, too, the loop waits for its turn like any
    other thread, some milliseconds each time.
    """
    return Workers(max(1, _processors() - 1))


def _processors() -> int:
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1
