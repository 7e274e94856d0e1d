"""A command below a keeper process (keeper.py), for machines where no PID namespace can be made."""

import contextlib
import os
import signal
from pathlib import Path

import anyio

from codespace.runner.keeper import signal_quietly
from codespace.runner.spawn import Spawned
from codespace.runner.tree import OnEnd, Watched, did_not_start

_SESSION_FIELD = 3


class KeptTree:
    """Owns the keeper; the keeper owns the subtree."""

    def __init__(self, spawned: Spawned, on_end: OnEnd) -> None:
        self._spawned = spawned
        self._on_end = on_end
        self._keeper = Watched(spawned.pidfd, self._on_keeper_end)
        self._news = Watched(spawned.news, self._on_news)
        self._order: int | None = spawned.order
        self._said = bytearray()
        self._leader: int | None = None
        self._status: int | None = None
        self._settled = anyio.Event()
        os.set_blocking(spawned.order, False)

    async def begin(self) -> None:
        """Return once the keeper made the process of the command."""
        await self._settled.wait()
        if self._leader is None:
            raise did_not_start()

    def ask_to_end(self) -> None:
        """Let the keeper send SIGTERM to all below it."""
        if self._order is None:
            return
        self._wake_keeper()
        with contextlib.suppress(OSError):  # it is ending already
            os.write(self._order, b"\n")

    def kill(self) -> None:
        """Cut the keeper's life line."""
        if self._order is not None:
            self._close_order()
            self._wake_keeper()

    def _close_order(self) -> None:
        order, self._order = self._order, None
        if order is not None:
            os.close(order)

    def _wake_keeper(self) -> None:
        # The command may have stopped it: they have the same user.
        with contextlib.suppress(OSError):
            signal.pidfd_send_signal(self._keeper.descriptor, signal.SIGCONT)

    def _on_news(self) -> None:
        data = self._news.read()
        if data == b"":
            self._news.close()
        if not data:
            return
        self._said += data
        *lines, rest = self._said.split(b"\n")
        self._said = rest
        for line in lines:
            self._note(*bytes(line).split())

    def _note(self, word: bytes, value: bytes) -> None:
        if word == b"started":
            self._leader = int(value)
            self._settled.set()
        elif word == b"ended":
            self._status = int(value)

    def _on_keeper_end(self) -> None:
        if self._spawned.process.poll() is None:
            return
        self._on_news()
        self._news.close()
        self._keeper.close()
        self._close_order()
        if self._spawned.process.returncode and self._leader is not None:
            _kill_session(self._leader)
        self._settled.set()
        self._on_end(self._status)


def _kill_session(leader: int) -> None:
    """End what can still be found of a command that killed its own keeper."""
    for entry in Path("/proc").iterdir():
        with contextlib.suppress(OSError, ValueError):
            fields = (entry / "stat").read_bytes().rpartition(b")")[2].split()
            if entry.name.isdecimal() and int(fields[_SESSION_FIELD]) == leader:
                signal_quietly(int(entry.name), signal.SIGKILL)
