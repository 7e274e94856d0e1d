"""Answers that wait for the script's next step, in the order in which they came."""

import asyncio

from codespace.codemode.steps import Delivery


class Inbox:
    """Filled by calls and questions, emptied by the run that drives the script."""

    def __init__(self) -> None:
        self._items: list[Delivery] = []
        self._waiter: asyncio.Future[None] | None = None

    def put(self, delivery: Delivery) -> None:
        """Add an answer. A run that waits does not see it before `wake`."""
        self._items.append(delivery)

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
        items, self._items = self._items, []
        return items

    def __len__(self) -> int:
        return len(self._items)
