"""How long scripts may hold an event loop before it looks at anything else.

Runs that begin together would each take their slice in one and the same turn of the loop.
"""

import asyncio
import time

MOST_SECONDS = 0.0005


class LoopTurn:
    """The time that runs have taken of the loop's present turn."""

    def __init__(self) -> None:
        self._since: float | None = None
        self._loop: asyncio.AbstractEventLoop | None = None

    @property
    def used_up(self) -> bool:
        """Whether it is time for others."""
        if self._since is None or time.perf_counter() - self._since <= MOST_SECONDS:
            return False
        # A loop that was closed in between will not say that its turn is over.
        return self._loop is asyncio.get_running_loop()

    def taken_since(self, began: float) -> None:
        """Note that one took time of this turn, from `began` of `time.perf_counter` on."""
        loop = asyncio.get_running_loop()
        if self._since is None or self._loop is not loop:
            self._since, self._loop = began, loop
            loop.call_soon(self._over)

    async def begin(self) -> None:
        """Wait for a turn with time left, and take of it."""
        while self.used_up:  # noqa: ASYNC110 -- the next turn is what it waits for
            await asyncio.sleep(0)
        self.taken_since(time.perf_counter())

    def _over(self) -> None:
        self._since = None
