"""Starts the `rg` program in an open directory, streams its output, and always ends it.

What to ask of it, and what its output is worth, is `search`'s business.
"""

import errno
import os
import resource
import select
import shutil
import subprocess  # noqa: TID251 -- this is the one module of the workspace that starts a program
import sys
import sysconfig
import time
from collections.abc import Callable, Generator, Sequence
from contextlib import suppress
from importlib import metadata
from pathlib import Path

from codespace.domain.errors import CodeSpaceError, ErrorCode
from codespace.workspace.confinement import confined
from codespace.workspace.deadline import Deadline

_CHUNK_BYTES = 1024 * 1024
_COMPLAINT_MAX_BYTES = 16 * 1024
_MEMORY_MAX_BYTES = 4 * 1024**3
_SLICE_SECONDS = 0.05
"""How long an abandoned search may go on."""
_QUIET_SECONDS = 0.25
_QUIET_GROWTH = 4
_FATAL = 2
_ENDS = (0, 1, _FATAL)
"""Found, not found, and something went wrong: without a complaint, a file that cannot be read."""

# Nothing of the machine may leak in: no configuration, no global ignore files. Files that vanish
# or may not be read are no reason to complain, so what is left on stderr is fatal.
_ALWAYS = ("--no-config", "--no-messages", "--no-ignore-messages", "--no-follow", "--hidden")


def ripgrep_path() -> str | None:
    """Return the program of the `ripgrep` package, or of PATH, or `None` if there is none."""
    beside = (Path(sysconfig.get_path("scripts")), Path(sys.executable).parent)
    for directory in beside:
        program = directory / "rg"
        if os.access(program, os.X_OK):
            return str(program)
    return _packaged() or shutil.which("rg")


def stream(
    arguments: Sequence[str],
    *,
    directory: int,
    keep: Sequence[int] = (),
    deadline: Deadline,
    on_quiet: Callable[[], None] | None = None,
) -> Generator[bytes]:
    """Run `rg` in the open `directory`; yield its output in chunks.

    The descriptors in `keep` stay open in it. Whoever stops early closes the generator, and the
    program ends then; so it does when `on_quiet` raises, which is called when nothing has come
    for a while, and again after ever longer whiles.

    Raises:
        CodeSpaceError: INVALID_ARGUMENT with the reason, for a pattern that rg does not accept;
            TIMEOUT; FILE_OPERATION_FAILED if rg is missing or failed.
    """
    with os.fdopen(os.memfd_create("complaint", os.MFD_CLOEXEC), "w+b") as complaint:
        process = _start(arguments, directory, keep, complaint.fileno())
        try:
            yield from _chunks(process, deadline, on_quiet)
            _wait(process, deadline)
            _judge(process.returncode, os.pread(complaint.fileno(), _COMPLAINT_MAX_BYTES, 0))
        finally:
            _end(process)


def _start(
    arguments: Sequence[str], directory: int, keep: Sequence[int], complaint: int
) -> subprocess.Popen[bytes]:
    program = ripgrep_path()
    if program is None:
        raise _failed("ENOENT", "is not installed; install the Python package 'ripgrep'")
    with Path(os.devnull).open("rb") as nothing:

        def start() -> subprocess.Popen[bytes]:
            return subprocess.Popen(  # noqa: S603 -- no shell; a client's text is in `--name=` form
                [program, *_ALWAYS, *arguments],
                stdin=nothing,
                stdout=subprocess.PIPE,
                stderr=complaint,
                cwd=f"/proc/self/fd/{directory}",
                env={},
                pass_fds=keep,
                bufsize=0,
            )

        try:
            process = confined(start, program=program, directory=directory)
        except OSError as error:
            symbol = errno.errorcode.get(error.errno or errno.EIO, "EIO")
            raise _failed(symbol, f"did not start: {error.strerror}") from error
    # rg holds a whole line in memory, and a line may be as long as a disk is large.
    with suppress(OSError):
        resource.prlimit(process.pid, resource.RLIMIT_AS, (_MEMORY_MAX_BYTES, _MEMORY_MAX_BYTES))
    return process


def _chunks(
    process: subprocess.Popen[bytes], deadline: Deadline, on_quiet: Callable[[], None] | None
) -> Generator[bytes]:
    descriptor = _stdout(process)
    poll = select.poll()
    poll.register(descriptor, select.POLLIN)
    patience = _QUIET_SECONDS
    last = time.monotonic()
    while True:
        if not poll.poll(min(deadline.remaining(), _SLICE_SECONDS) * 1_000):
            if on_quiet is not None and time.monotonic() - last > patience:
                patience *= _QUIET_GROWTH
                on_quiet()
            continue
        chunk = os.read(descriptor, _CHUNK_BYTES)
        if not chunk:
            return
        yield chunk
        last = time.monotonic()


def _stdout(process: subprocess.Popen[bytes]) -> int:
    if process.stdout is None:
        raise _failed("EPIPE", "has no output")
    return process.stdout.fileno()


def _wait(process: subprocess.Popen[bytes], deadline: Deadline) -> None:
    try:
        process.wait(deadline.remaining())
    except subprocess.TimeoutExpired:
        deadline.remaining()


def _judge(code: int | None, complaint: bytes) -> None:
    if code == _FATAL and complaint:
        raise CodeSpaceError(
            ErrorCode.INVALID_ARGUMENT,
            f"The pattern cannot be searched for: {_reason(complaint)}.",
            details={"path": "pattern"},
        )
    if code not in _ENDS:
        raise _failed("EIO", f"ended with status {code}; ask for fewer files")


def _reason(complaint: bytes) -> str:
    """Return the one line of rg's complaint that says what is wrong."""
    lines = [line.strip() for line in complaint.decode("utf-8", "replace").splitlines()]
    lines = [line.removeprefix("rg: ") for line in lines if line]
    marked = [line.removeprefix("error: ") for line in lines if line.startswith("error: ")]
    return (marked or lines)[0][:300].rstrip(".:")


def _end(process: subprocess.Popen[bytes]) -> None:
    process.kill()
    process.wait()
    if process.stdout is not None:
        process.stdout.close()


def _packaged() -> str | None:
    try:
        files = metadata.files("ripgrep") or []
    except metadata.PackageNotFoundError:
        return None
    for file in files:
        if file.name == "rg" and os.access(file.locate(), os.X_OK):
            return str(file.locate())
    return None


def _failed(symbol: str, why: str) -> CodeSpaceError:
    return CodeSpaceError(
        ErrorCode.FILE_OPERATION_FAILED,
        f"The search program ripgrep {why}.",
        details={"errno": symbol},
    )
