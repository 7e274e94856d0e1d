"""What owns one command's whole subtree: the port between the process and its containment."""

import asyncio
import os
from collections.abc import Callable
from typing import Protocol

from codespace.domain.errors import CodeSpaceError, ErrorCode

OnEnd = Callable[[int | None], None]
"""Told the leader's status (as `os.waitstatus_to_exitcode`, or `None` if it is not known) once no
process of the subtree is left."""


class Tree(Protocol):
    """A subtree that was spawned. Ends at the leader's end, at `kill`, and with the gateway."""

    async def begin(self) -> None:
        """Return once the command runs.

        Raises:
            CodeSpaceError: PROCESS_SPAWN_FAILED; nothing of the command ran. FILE_OPERATION_FAILED
                when the working directory is not the root; the caller then kills.
        """
        ...

    def ask_to_end(self) -> None:
        """Send SIGTERM to every process of the subtree, and wait for them all to end.

        From then on the leader's end alone does not end the rest.
        """
        ...

    def kill(self) -> None:
        """End the whole subtree at once; good at any time, also before `begin` returned."""
        ...


class Watched:
    """A descriptor that the loop watches until it is let go, and that is closed then."""

    def __init__(self, descriptor: int, on_readable: Callable[[], None]) -> None:
        self._loop = asyncio.get_running_loop()
        self._descriptor: int | None = descriptor
        os.set_blocking(descriptor, False)
        self._loop.add_reader(descriptor, on_readable)

    @property
    def is_open(self) -> bool:
        """Whether it is still watched."""
        return self._descriptor is not None

    @property
    def descriptor(self) -> int:
        """The descriptor, which must still be open."""
        if self._descriptor is None:
            raise ValueError("the descriptor was let go")
        return self._descriptor

    def read(self, size: int = 4_096) -> bytes | None:
        """Return what is there, `b""` at the end, `None` when there is nothing yet."""
        if self._descriptor is None:
            return None
        try:
            return os.read(self._descriptor, size)
        except BlockingIOError:
            return None
        except OSError:  # a terminal whose other side is closed
            return b""

    def release(self) -> int | None:
        """Stop watching and return the descriptor, still open, for its next owner."""
        descriptor, self._descriptor = self._descriptor, None
        if descriptor is not None:
            self._loop.remove_reader(descriptor)
        return descriptor

    def close(self) -> None:
        """Stop watching and close; good more than once."""
        descriptor = self.release()
        if descriptor is not None:
            os.close(descriptor)


def did_not_start() -> CodeSpaceError:
    """Return the error for a command whose owner ended before the command ran."""
    return CodeSpaceError(
        ErrorCode.PROCESS_SPAWN_FAILED,
        "The command's containment did not come up, so nothing was started;"
        " the operator can run `codespace doctor`.",
    )
