"""A command below a keeper process (keeper.py), for machines where no PID namespace can be made.

The command may be able to stop and kill its keeper. Whatever it does, the end is told only when
nothing of it is left: the keeper's own word when it ended by itself, and else our looking.
"""

import asyncio
import contextlib
import os
import signal

import anyio

from codespace.runner.launchers import end_below, start_time
from codespace.runner.orphans import Orphans
from codespace.runner.spawn import Spawned
from codespace.runner.tree import OnEnd, Watched, did_not_start

_URGE_SECONDS = 0.1
_URGES_ALONE = 5
_LOOK_SECONDS = 0.000_5
_LOOK_SECONDS_MAX = 0.05
_EMPTY_LOOKS = 2


class KeptTree:
    """Owns the keeper; the keeper owns the subtree. `keepers` are the runner's living ones."""

    def __init__(self, spawned: Spawned, on_end: OnEnd, keepers: set[int]) -> None:
        self._spawned = spawned
        self._on_end = on_end
        self._keeper = Watched(spawned.pidfd, self._on_keeper_end)
        self._news = Watched(spawned.news, self._on_news)
        self._order: int | None = spawned.order
        self._said = bytearray()
        self._leader: int | None = None
        self._status: int | None = None
        self._settled = anyio.Event()
        self._loop = asyncio.get_running_loop()
        self._keepers = keepers
        self._orphans = Orphans(int(start_time(spawned.process.pid) or 0), keepers)
        keepers.add(spawned.process.pid)
        self._urges = 0
        self._empty_looks = 0
        self._looking = _LOOK_SECONDS
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
        self._send_keeper(signal.SIGCONT)  # the command may have stopped it
        with contextlib.suppress(OSError):  # it is ending already
            os.write(self._order, b"\n")

    def kill(self) -> None:
        """Cut the keeper's life line, and see to it that the keeper acts."""
        if self._order is not None:
            self._close_order()
            self._urge()

    def _urge(self) -> None:
        """Wake the keeper until it ended; help it when it is held up, or does not come up."""
        if not self._keeper.is_open:
            return
        keeper = self._spawned.process.pid
        if self._urges >= _URGES_ALONE and not end_below(keeper):
            self._send_keeper(signal.SIGKILL)
        self._send_keeper(signal.SIGCONT)
        self._urges += 1
        self._loop.call_later(_URGE_SECONDS, self._urge)

    def _close_order(self) -> None:
        order, self._order = self._order, None
        if order is not None:
            os.close(order)

    def _send_keeper(self, number: int) -> None:
        with contextlib.suppress(OSError):
            signal.pidfd_send_signal(self._keeper.descriptor, number)

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
        self._keepers.discard(self._spawned.process.pid)
        self._on_news()
        self._news.close()
        self._keeper.close()
        self._close_order()
        if self._spawned.process.returncode == 0:  # it had no child any more
            self._tell_end()
        else:
            self._end_orphans()

    def _end_orphans(self) -> None:
        try:
            self._empty_looks = 0 if self._orphans.end() else self._empty_looks + 1
        except OSError:  # no descriptor left to look with: nothing is known yet
            self._empty_looks = 0
        if self._empty_looks >= _EMPTY_LOOKS:
            self._tell_end()
        else:
            self._looking = min(2 * self._looking, _LOOK_SECONDS_MAX)
            self._loop.call_later(self._looking, self._end_orphans)

    def _tell_end(self) -> None:
        self._settled.set()
        self._on_end(self._status)
