"""Which variables a command may see: a minimal environment plus what the operator passes.

Pure: the caller reads the gateway's own environment and hands in what it found.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from codespace.domain.errors import CodeSpaceError, ErrorCode

DEFAULT_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
OWN_PREFIX = "CODESPACE_"
"""The gateway's own settings, its token among them, begin with this."""

_TERMINAL_TYPE = "xterm-256color"


@dataclass(frozen=True, slots=True)
class CommandEnvironment:
    """What every command of a workspace starts with.

    `passed` is the operator's and wins over the minimal variables. Nothing is inherited.

    Raises:
        CodeSpaceError: INVALID_ARGUMENT for a name or value that no environment can hold, and for
            a name of the gateway's own settings.
    """

    home: str
    path: str = DEFAULT_PATH
    temporary_directory: str = "/tmp"  # noqa: S108 -- the name that programs expect, not a file of ours
    passed: Mapping[str, str] = field(default_factory=dict[str, str])

    def __post_init__(self) -> None:
        minimal = {"HOME": self.home, "PATH": self.path, "TMPDIR": self.temporary_directory}
        for name, value in (*minimal.items(), *self.passed.items()):
            _check_name(name)
            _check_value(name, value)

    def variables(self, *, tty: bool) -> dict[str, str]:
        """Return the variables of one command; a terminal adds `TERM`."""
        terminal = {"TERM": _TERMINAL_TYPE} if tty else {}
        return {
            "PATH": self.path,
            "HOME": self.home,
            "LANG": "C.UTF-8",
            "TMPDIR": self.temporary_directory,
            **terminal,
            **self.passed,
        }


def select(names: Iterable[str], available: Mapping[str, str]) -> dict[str, str]:
    """Return those of `available` that the operator named; a name that is not there is left out.

    Raises:
        CodeSpaceError: INVALID_ARGUMENT as for `CommandEnvironment`.
    """
    wanted = tuple(names)
    for name in wanted:
        _check_name(name)
    return {name: available[name] for name in wanted if name in available}


def _check_name(name: str) -> None:
    if not name or "=" in name or "\0" in name or not _is_unicode(name):
        raise _refusal(name, "is not a name that a variable can have; leave out '=' and NUL")
    if name.upper().startswith(OWN_PREFIX):
        raise _refusal(name, "is the gateway's own; commands never see it")


def _check_value(name: str, value: str) -> None:
    if "\0" in value or not _is_unicode(value):
        raise _refusal(name, "has a value with a NUL or with broken Unicode")


def _is_unicode(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def _refusal(name: str, why: str) -> CodeSpaceError:
    shown = name.encode("ascii", "backslashreplace").decode("ascii")[:100]
    return CodeSpaceError(
        ErrorCode.INVALID_ARGUMENT,
        f"The environment variable {shown!r} {why}.",
        details={"variable": shown},
    )
