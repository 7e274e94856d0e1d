"""What tests of the runner share: one with short limits, commands in it, and a look at /proc."""

import contextlib
import ctypes
import dataclasses
import os
import random
import shutil
import subprocess
import sys
import time
from collections.abc import AsyncGenerator, Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TypedDict, Unpack

import anyio
import pytest

from codespace.domain.errors import CodeSpaceError
from codespace.domain.ids import ProcessId
from codespace.domain.limits import Limits
from codespace.domain.workspace import Root
from codespace.runner import keeper
from codespace.runner.api import Containment, ProcessState, Runner, StartRequest, Stdin
from codespace.runner.local import LocalRunner
from codespace.runner.sandbox import probe
from codespace.runner.uds import UdsRunner

PROGRAMS = Path(__file__).parent
ENVIRONMENT = {"PATH": "/usr/bin:/bin:/usr/sbin:/sbin", "HOME": "/", "LANG": "C.UTF-8"}
LIMITS = dataclasses.replace(
    Limits(), terminate_grace_ms=200, stdin_timeout_ms=300, max_processes=64
)
PATIENCE = 20.0

both_containments = pytest.mark.parametrize(
    "containment",
    [
        pytest.param(
            Containment.PID_NAMESPACE,
            marks=pytest.mark.skipif(
                not probe().works, reason=f"no PID namespace here: {probe().reason}"
            ),
        ),
        Containment.KEEPER,
    ],
)
"""Runs a test in a PID namespace and below a keeper; tells why if only the second is there."""


RUNNER: type[LocalRunner] | type[UdsRunner] = LocalRunner
"""What `commands` opens: the in-process runner, unless a test asks for `each_backend`."""

each_backend = pytest.mark.usefixtures("backend")
"""Runs a test with the runner in this process, and with the one in a worker process."""


class Options(TypedDict, total=False):
    tty: bool
    paced: bool
    stdin: Stdin
    time_limit_ms: int
    environment: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Finished:
    state: ProcessState
    text: str


class Commands:
    """A runner and one root; each command gets an id of its own."""

    def __init__(self, runner: Runner, root: Root) -> None:
        self.runner = runner
        self.root = root

    async def start(self, *argv: str, **options: Unpack[Options]) -> ProcessId:
        process_id = ProcessId(f"proc-{new_token()}")
        await self.runner.start(self.request(process_id, *argv, **options))
        return process_id

    def request(
        self, process_id: ProcessId, *argv: str, **options: Unpack[Options]
    ) -> StartRequest:
        options.setdefault("environment", ENVIRONMENT)
        return StartRequest(process_id, self.root, argv, **options)

    async def run(self, *argv: str, **options: Unpack[Options]) -> Finished:
        return await self.finish(await self.start(*argv, **options))

    async def finish(self, process_id: ProcessId) -> Finished:
        text = await self.read_all(process_id)
        return Finished(await self.runner.status(process_id), text)

    async def read_all(self, process_id: ProcessId) -> str:
        text, cursor = "", 0
        with anyio.fail_after(PATIENCE):
            while True:
                chunk = await self.runner.read(process_id, cursor, max_bytes=1 << 20, wait_ms=1_000)
                text, cursor = text + chunk.text, chunk.cursor
                if chunk.eof:
                    return text

    async def read_until(self, process_id: ProcessId, awaited: str, cursor: int = 0) -> str:
        """Return the output from `cursor` up to the first look that shows `awaited`."""
        text = ""
        with anyio.move_on_after(PATIENCE):
            while awaited not in text:
                chunk = await self.runner.read(process_id, cursor, max_bytes=1 << 20, wait_ms=1_000)
                assert not (chunk.eof and not chunk.text), f"the output ended without it: {text!r}"
                text, cursor = text + chunk.text, chunk.cursor
        assert awaited in text, f"not within {PATIENCE} s: {awaited!r} in {text!r}"
        return text

    async def end(self, process_id: ProcessId) -> ProcessState:
        with anyio.fail_after(PATIENCE):
            while (state := await self.runner.status(process_id, wait_ms=1_000)).running:
                pass
        return state


@contextlib.asynccontextmanager
async def commands(
    containment: Containment | None, directory: Path, limits: Limits = LIMITS
) -> AsyncGenerator[Commands]:
    async with RUNNER.running(limits=limits, containment=containment) as runner:
        yield Commands(runner, root_at(directory))


def older_kernels_keeper(directory: Path) -> str:
    """Return a keeper as it acts where the kernel cannot confine a command's signals."""
    text = Path(keeper.__file__).read_text(encoding="utf-8")
    older = text.replace("_SIGNALS_SCOPED_SINCE = 6\n", "_SIGNALS_SCOPED_SINCE = 1_000_000\n")
    assert older != text
    path = directory / f"keeper-{new_token()}.py"
    path.write_text(older, encoding="utf-8")
    return str(path)


def signals_are_scoped() -> bool:
    """Tell whether the kernel can confine a command's signals (Linux 6.12 with Landlock)."""
    version = ctypes.CDLL(None).syscall(444, None, ctypes.c_size_t(0), 1)
    return version >= keeper._SIGNALS_SCOPED_SINCE  # pyright: ignore[reportPrivateUsage] -- the very number


def root_at(directory: Path) -> Root:
    status = directory.stat()
    return Root(str(directory), status.st_dev, status.st_ino)


async def until(condition: Callable[[], bool], what: str) -> None:
    """Wait, bounded, until something that announces itself to nobody has happened."""
    deadline = time.monotonic() + PATIENCE
    while not condition():
        assert time.monotonic() < deadline, f"not within {PATIENCE} s: {what}"
        await anyio.sleep(0.005)


def new_token() -> str:
    return str(random.SystemRandom().randrange(10**11, 10**12))


def living(token: str) -> list[int]:
    """Return the processes with `token` in their command line; one that is dead has none."""
    found: list[int] = []
    for entry in Path("/proc").iterdir():
        with contextlib.suppress(OSError):
            if entry.name.isdecimal() and token.encode() in (entry / "cmdline").read_bytes():
                found.append(int(entry.name))
    return found


def descriptors() -> int:
    return sum(1 for _ in Path("/proc/self/fd").iterdir())


def python() -> str:
    """Return an interpreter that commands can run, whoever they are."""
    return sys.executable


def code_of(caught: pytest.ExceptionInfo[CodeSpaceError]) -> str:
    return caught.value.code.value


def setpriv_line() -> list[str] | None:
    """Return the words that run a program as an ordinary user; `None` where that cannot be."""
    program = shutil.which("setpriv")
    if os.geteuid() != 0 or program is None:
        return None
    return [program, "--reuid=65534", "--regid=65534", "--clear-groups", "--no-new-privs"]


def python_for_all() -> str | None:
    """Return an interpreter of our own version that an ordinary user can reach."""
    prefix = setpriv_line() or []
    own = f"{sys.version_info.major}.{sys.version_info.minor}"
    for candidate in (sys.executable, f"/usr/bin/python{own}", f"/usr/local/bin/python{own}"):
        # By way of a shell: setpriv itself still has root's rights when it starts a program.
        line = [*prefix, "/bin/sh", "-c", 'exec "$0" -c pass', candidate]
        with contextlib.suppress(OSError):
            if subprocess.run(line, capture_output=True, check=False).returncode == 0:
                return candidate
    return None
