"""Moves a process's output from its descriptor into the kept window, on the loop's own thread.

It never blocks, stops reading while the window has no room, and knows nothing of exit statuses.
"""

import asyncio
import errno
import fcntl
import os
from collections.abc import Callable

from codespace.runner.output import OutputWindow

_PIPE_BYTES = 256 * 1024
_READ_BYTES = 128 * 1024
_DRAIN_BYTES = 4 * 1024 * 1024
_DRAIN_SECONDS = 2.0


class OutputPump:
    """Reads one descriptor until its end and closes it then."""

    def __init__(
        self, descriptor: int, window: OutputWindow, on_change: Callable[[], None]
    ) -> None:
        self._loop = asyncio.get_running_loop()
        self._descriptor: int | None = descriptor
        self._window = window
        self._on_change = on_change
        self._reading = False
        self._finishing = False
        self._give_up: asyncio.TimerHandle | None = None
        os.set_blocking(descriptor, False)

    @property
    def descriptor(self) -> int | None:
        """The open descriptor, `None` after the end."""
        return self._descriptor

    def start(self) -> None:
        """Begin, or go on after a read made room."""
        if self._descriptor is None or self._reading or not self._window.room:
            return
        self._reading = True
        self._loop.add_reader(self._descriptor, self._on_readable)
        if self._finishing:
            self._give_up = self._loop.call_later(_DRAIN_SECONDS, self.close)

    def finish(self) -> None:
        """Take what is left, now that no process of the command lives.

        Who handed the descriptor to a stranger does not keep the output open: after two seconds
        in which it could be read, it counts as ended.
        """
        self._finishing = True
        taken = 0
        while self._descriptor is not None and self._window.room and taken < _DRAIN_BYTES:
            data = self._read()
            if data is None:
                break
            taken += len(data)
        self._pause()
        self.start()

    def close(self) -> None:
        """End the output here, whatever may still come."""
        if self._descriptor is None:
            return
        self._pause()
        os.close(self._descriptor)
        self._descriptor = None
        self._window.end()
        self._on_change()

    def _on_readable(self) -> None:
        self._read()
        if self._descriptor is not None and not self._window.room:
            self._pause()

    def _read(self) -> bytes | None:
        """Feed one piece; `None` when there was nothing to read yet."""
        if self._descriptor is None:
            return b""
        try:
            data = os.read(self._descriptor, min(_READ_BYTES, self._window.room))
        except BlockingIOError:
            return None
        except OSError as error:
            # The end of a terminal's output is EIO, once its last other side is closed.
            if error.errno != errno.EIO:
                raise
            data = b""
        if data:
            self._window.feed(data)
            self._on_change()
        else:
            self.close()
        return data

    def _pause(self) -> None:
        if self._give_up is not None:
            self._give_up.cancel()
            self._give_up = None
        if self._reading and self._descriptor is not None:
            self._loop.remove_reader(self._descriptor)
        self._reading = False


def enlarge(pipe: int) -> None:
    """Give a pipe a larger buffer where the system allows it: fewer switches for the same bytes."""
    try:
        fcntl.fcntl(pipe, fcntl.F_SETPIPE_SZ, _PIPE_BYTES)
    except OSError:
        return
