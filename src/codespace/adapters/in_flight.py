"""Which calls are being answered, so that a shutdown can let them end and admit no more."""

from collections.abc import Generator
from contextlib import contextmanager

import anyio


class InFlight:
    """Counts the calls of all transports of one gateway."""

    def __init__(self) -> None:
        self._count = 0
        self._idle = anyio.Event()
        self._idle.set()
        self.open = True

    @contextmanager
    def entered(self) -> Generator[None]:
        """Count one call for as long as the block runs."""
        self._count += 1
        if self._count == 1:
            self._idle = anyio.Event()
        try:
            yield
        finally:
            self._count -= 1
            if self._count == 0:
                self._idle.set()

    def close(self) -> None:
        """Admit no more calls."""
        self.open = False

    async def drained(self, seconds: float) -> bool:
        """Wait until no call runs, at most `seconds`; say whether that came true."""
        with anyio.move_on_after(seconds):
            await self._idle.wait()
        return self._count == 0
