"""Which processes of this machine carry a mark in their command line."""

import contextlib
from pathlib import Path


def marked(mark: str) -> list[int]:
    """Return the processes whose arguments hold a mark that only a test's command has."""
    found: list[int] = []
    for entry in Path("/proc").iterdir():
        with contextlib.suppress(OSError):
            if entry.name.isdecimal() and mark.encode() in (entry / "cmdline").read_bytes():
                found.append(int(entry.name))
    return found
