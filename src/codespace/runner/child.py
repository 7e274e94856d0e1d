"""The worker process as the gateway holds it: its start, its way in, its end, what it leaves."""

import asyncio
import contextlib
import os
import secrets
import socket
import subprocess  # noqa: TID251 -- an owner of the ban: it starts the worker
import sys
import tempfile
from collections.abc import Generator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Self

import anyio

from codespace.runner.handshake import Invitation, is_process
from codespace.runner.launchers import start_time
from codespace.runner.orphans import Orphans
from codespace.runner.tree import Watched
from codespace.runner.worker import SOCKET_NAME

_BEGIN = "import sys; sys.path[:] = sys.argv[1:]; from codespace.runner.worker import main; main()"
_LOOK_SECONDS = 0.000_5
_LOOK_SECONDS_MAX = 0.05
_EMPTY_LOOKS = 2


@dataclass(frozen=True, slots=True)
class Door:
    """A socket that listens in a directory of the gateway's own, for as long as a worker comes."""

    directory: str
    listener: socket.socket

    async def admit(self, pid: int) -> socket.socket:
        """Return the connection of that process; whoever else comes is sent away."""
        while True:
            connected, _ = await asyncio.get_running_loop().sock_accept(self.listener)
            if is_process(connected, pid):
                return connected
            connected.close()


@contextmanager
def open_door() -> Generator[Door]:
    """Listen for the block, in a new directory that nobody else may enter.

    Raises:
        OSError: there is no place for it.
    """
    with ExitStack() as stack:
        directory = stack.enter_context(tempfile.TemporaryDirectory(prefix="codespace-"))
        held = os.open(directory, os.O_PATH | os.O_DIRECTORY)
        stack.callback(os.close, held)
        listener = stack.enter_context(socket.socket(socket.AF_UNIX))
        address = f"/proc/self/fd/{held}/{SOCKET_NAME}"
        listener.bind(address)
        os.chmod(address, 0o600)  # noqa: PTH101 -- by the descriptor, as it was bound
        listener.listen()
        listener.settimeout(0)
        yield Door(directory, listener)


class Child:
    """A worker process. Made on the event loop's own thread, with which it ends."""

    def __init__(self, process: subprocess.Popen[bytes], pidfd: int) -> None:
        self._process = process
        self._ended = anyio.Event()
        self._watch = Watched(pidfd, self._on_end)
        self._orphans = Orphans(int(start_time(process.pid) or 0), set())

    @classmethod
    def start(cls, directory: str, nonce: str, search_path: str) -> Self:
        """Start a worker that comes to the door in `directory` and says `nonce`.

        Raises:
            OSError: nothing was started.
        """
        # What this process imports from, and not the directory where it happens to be: that may
        # be a workspace. No secret is an argument, for arguments are public.
        process = subprocess.Popen(  # noqa: S603 -- our own text, and our own interpreter
            [sys.executable, "-I", "-S", "-c", _BEGIN, *import_path()],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            cwd="/",
            env={"PATH": search_path, "LANG": "C.UTF-8"},
            start_new_session=True,
        )
        try:
            pidfd = os.pidfd_open(process.pid)
        except OSError:
            process.kill()
            process.communicate()
            raise
        child = cls(process, pidfd)
        child._invite(Invitation(directory, nonce, os.getpid()))
        return child

    @property
    def pid(self) -> int:
        """The process that may come through the door."""
        return self._process.pid

    @property
    def has_ended(self) -> bool:
        """Whether it is known to be gone, now."""
        return self._process.poll() is not None

    def kill(self) -> None:
        """End it, if it has not ended."""
        self._process.kill()

    async def ended(self) -> None:
        """Return when the process itself is gone."""
        await self._ended.wait()

    async def cleared(self) -> None:
        """Return when nothing that it started is left; for after its end.

        This process has to be the one that adopts (`Adoption`). What the kernel does not end with
        the worker is ended here.
        """
        empty, pause = 0, _LOOK_SECONDS
        while empty < _EMPTY_LOOKS:
            try:
                empty = 0 if self._orphans.end() else empty + 1
            except OSError:  # no descriptor left to look with: nothing is known yet
                empty = 0
            pause = min(2 * pause, _LOOK_SECONDS_MAX)
            await anyio.sleep(pause)

    def _invite(self, invitation: Invitation) -> None:
        pipe = self._process.stdin
        if pipe is not None:
            # So little always fits. Whoever ended before it read is noticed at the door.
            with contextlib.suppress(OSError), pipe:
                pipe.write(invitation.sealed())

    def _on_end(self) -> None:
        if self._process.poll() is not None:
            self._watch.close()
            self._ended.set()


def new_nonce() -> str:
    """Return a word that nobody guesses."""
    return secrets.token_urlsafe(32)


def import_path() -> list[str]:
    """Return where this process imports from: absolute places, ours among them."""
    own = str(Path(__file__).resolve().parents[2])
    return [*dict.fromkeys(entry for entry in [*sys.path, own] if entry.startswith("/"))]
