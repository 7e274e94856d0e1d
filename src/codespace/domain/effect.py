"""What a call can change."""

from enum import StrEnum


class Effect(StrEnum):
    """What a call can change. Policy, hints and replay rules follow from it."""

    INSPECT = "inspect"
    """Looks at the gateway's own records; touches no file and no process of a workspace."""
    READ = "read"
    WRITE = "write"
    EXECUTE = "execute"
    SCRIPT = "script"
    """Runs a script; what its calls can change is judged call by call."""
    STEER = "steer"
    """Changes the gateway's own records of works; touches no file and no process of a workspace."""
