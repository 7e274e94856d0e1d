"""Answers that wait for the script's next step, in the order in which they came."""

import asyncio

from codespace.codemode.steps import Delivery


class Inbox:
    """Filled by calls and questions, emptied by the run that drives the script.

    Attributes:
        items: what has come and was not taken.
    """

    __slots__ = ("_waiter", "items")

    def __init__(self) -> None:
        self.items: list[Delivery] = []
        self._waiter: asyncio.Future[None] | None = None

    def put(self, delivery: Delivery) -> None:
        """Add an answer. A run that waits does not see it before `wake`."""
        self.items.append(delivery)

    def wake(self) -> None:
        """Let a run that waits look again."""
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)

    async def wait(self) -> None:
        """Wait until there is an answer, or until somebody calls `wake`."""
        self._waiter = asyncio.get_running_loop().create_future()
        try:
            await self._waiter
        finally:
            self._waiter = None

    def take(self) -> list[Delivery]:
        """Return all answers, and forget them."""
        items, self.items = self.items, []
        return items
