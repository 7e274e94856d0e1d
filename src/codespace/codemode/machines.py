"""The engine of this process, compiled or loaded when the first script needs it."""

import threading
from functools import cache
from pathlib import Path

from codespace.codemode.wasm import Machine

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
