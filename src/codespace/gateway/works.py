"""Works and the user's instructions: every use-case but `stop`, and the counts that calls add.

The counts of open works are kept in memory, written through to the store: a call that names a
work asks no database.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Literal, ParamSpec, TypeVar

import anyio
import anyio.lowlevel
import anyio.to_thread

from codespace.domain.ids import INTENT_PREFIX, WORK_PREFIX, IntentId, WorkId, WorkspaceId
from codespace.domain.tool import Json
from codespace.domain.work import (
    Delivery,
    Intent,
    IntentKind,
    IntentState,
    Work,
    WorkState,
    work_not_found,
)
from codespace.gateway.writing import ledger_failed
from codespace.store.errors import StoreError
from codespace.store.works import Change, WorkRecords

P = ParamSpec("P")
T = TypeVar("T")

_NOWHERE = WorkspaceId("")
"""An instruction's workspace is that of its work, which the store looks up."""


@dataclass(frozen=True, slots=True)
class Wish:
    """An instruction as the user writes it."""

    body: str
    kind: IntentKind = IntentKind.FOLLOW_UP
    delivery: Delivery = Delivery.AFTER_CURRENT_WORK


@dataclass(frozen=True, slots=True)
class Works:
    """Opens, steers and closes works.

    Attributes:
        records: the store's works and instructions.
        now_ms: Unix milliseconds.
        mint: makes an unguessable id of a prefix.
        listed_max: at most so many works are listed.
    """

    records: WorkRecords
    now_ms: Callable[[], int]
    mint: Callable[[str], str]
    listed_max: int = 500
    _open: dict[WorkId, Work] = field(default_factory=dict[WorkId, Work], init=False)
    # One change at a time, so that the counts in memory are never older than those in the store.
    _turn: anyio.Lock = field(default_factory=anyio.Lock, init=False)

    async def load(self) -> None:
        """Learn which works are open; call it before any other."""
        for work in await self._read(self.records.open_works):
            self._open[work.work_id] = work

    async def require_open(self, work_id: WorkId) -> Work:
        """Return an open work.

        Raises:
            CodeSpaceError: WORK_NOT_FOUND, or WORK_CLOSED.
        """
        work = self._open.get(work_id)
        if work is None:
            work = await self.find(work_id)
            work.require_open()
        return work

    def coordination(self, work: Work) -> Json:
        """Return what a call of this work adds to its result: counts, never text."""
        now = self._open.get(work.work_id, work)
        return {
            "work_id": now.work_id,
            "pending_user_items": now.queued,
            "queue_revision": now.queue_revision,
        }

    async def open(self, workspace_id: WorkspaceId, title: str) -> Work:
        """Open a work; what waited for the next one in its workspace moves to it.

        Raises:
            CodeSpaceError: LIMIT_EXCEEDED.
        """
        now = self.now_ms()
        work_id = WorkId(self.mint(WORK_PREFIX))
        work = Work(work_id, workspace_id, title, WorkState.ACTIVE, 0, now)
        async with self._turn:
            return self._noted(await self._read(self.records.open, work, now))

    async def find(self, work_id: WorkId) -> Work:
        """Return a work, open or closed, with its counts.

        Raises:
            CodeSpaceError: WORK_NOT_FOUND.
        """
        work = await self._read(self.records.find, work_id)
        if work is None:
            raise work_not_found(work_id)
        return work

    async def listed(self, workspace_id: WorkspaceId | None = None) -> tuple[Work, ...]:
        """Return works, the open ones first, then the newest first."""
        return await self._read(self.records.listed, workspace_id, self.listed_max)

    async def intents(self, work_id: WorkId) -> tuple[Intent, ...]:
        """Return the instructions of a work, in the user's order.

        Raises:
            CodeSpaceError: WORK_NOT_FOUND.
        """
        return await self._read(self.records.intents, work_id)

    async def finish(self, work_id: WorkId) -> Work:
        """Close a work, or let it be closing while the user is owed something.

        Raises:
            CodeSpaceError: WORK_NOT_FOUND.
        """
        async with self._turn:
            return self._noted(await self._read(self.records.finish, work_id, self.now_ms()))

    async def claim(self, work_id: WorkId) -> Intent | None:
        """Take the first instruction that can be claimed; nobody else gets it.

        One whose caller has gone meanwhile is handed back.

        Raises:
            CodeSpaceError: WORK_NOT_FOUND, or WORK_CLOSED.
        """
        async with self._turn:
            intent, work = await self._read(self.records.claim, work_id, self.now_ms())
            self._noted(work)
        if intent is not None:
            try:
                await anyio.lowlevel.checkpoint_if_cancelled()
            except anyio.get_cancelled_exc_class():
                with anyio.CancelScope(shield=True):
                    await self.hand_back(intent.intent_id)
                raise
        return intent

    async def hand_back(self, intent_id: IntentId) -> None:
        """Put a claimed instruction that reached nobody back into its queue."""
        async with self._turn:
            change = await self._read(self.records.hand_back, intent_id, self.now_ms())
            if change is not None:
                self._noted(change.work)

    async def complete(
        self, work_id: WorkId, intent_id: IntentId, outcome: Literal["done", "blocked"], note: str
    ) -> Intent:
        """Record how a claimed instruction ended.

        Raises:
            CodeSpaceError: WORK_NOT_FOUND, INTENT_NOT_FOUND, or INTENT_NOT_EDITABLE.
        """
        return await self._change(
            self.records.complete,
            work_id,
            intent_id,
            IntentState(outcome),
            note or None,
            self.now_ms(),
        )

    async def add(self, work_id: WorkId, wish: Wish) -> Intent:
        """Record a draft.

        Raises:
            CodeSpaceError: WORK_NOT_FOUND, WORK_CLOSED, or LIMIT_EXCEEDED.
        """
        return await self._change(self.records.add, self._intent(work_id, wish))

    async def add_notice(self, work_id: WorkId, body: str) -> Intent:
        """Put a `stop_notice` before all else that waits.

        Raises:
            CodeSpaceError: WORK_NOT_FOUND, or WORK_CLOSED.
        """
        wish = Wish(body, IntentKind.STOP_NOTICE, Delivery.NEXT_CHECKPOINT)
        notice = self._intent(work_id, wish, IntentState.QUEUED)
        return await self._change(self.records.stop, notice)

    async def edit(
        self,
        intent_id: IntentId,
        seen: int,
        *,
        body: str | None = None,
        delivery: Delivery | None = None,
    ) -> Intent:
        """Change a draft or a queued instruction.

        Raises:
            CodeSpaceError: INTENT_NOT_FOUND, INTENT_ALREADY_CLAIMED, INTENT_NOT_EDITABLE,
                INTENT_REVISION_CONFLICT, or WORK_CLOSED.
        """
        return await self._change(
            self.records.edit, intent_id, seen, self.now_ms(), body=body, delivery=delivery
        )

    async def queue(self, intent_id: IntentId, seen: int) -> Intent:
        """Put a draft at the end of its queue.

        Raises:
            CodeSpaceError: as `edit`.
        """
        return await self._change(self.records.queue, intent_id, seen, self.now_ms())

    async def cancel(self, intent_id: IntentId, seen: int) -> Intent:
        """Withdraw a draft or a queued instruction, and return it with its text.

        Raises:
            CodeSpaceError: as `edit`.
        """
        return await self._change(self.records.cancel, intent_id, seen, self.now_ms())

    async def reorder(self, work_id: WorkId, intent_ids: list[IntentId]) -> Work:
        """Give a queue a new order.

        Raises:
            CodeSpaceError: WORK_NOT_FOUND, WORK_CLOSED, INTENT_NOT_FOUND, INTENT_ALREADY_CLAIMED,
                INTENT_NOT_EDITABLE, or INTENT_REVISION_CONFLICT when the queue is another one.
        """
        async with self._turn:
            return self._noted(
                await self._read(self.records.reorder, work_id, intent_ids, self.now_ms())
            )

    def _intent(
        self, work_id: WorkId, wish: Wish, state: IntentState = IntentState.DRAFT
    ) -> Intent:
        now = self.now_ms()
        return Intent(
            intent_id=IntentId(self.mint(INTENT_PREFIX)),
            work_id=work_id,
            workspace_id=_NOWHERE,
            kind=wish.kind,
            delivery=wish.delivery,
            state=state,
            body=wish.body,
            revision=1,
            place=0,
            created_at=now,
            changed_at=now,
        )

    def _noted(self, work: Work) -> Work:
        if work.state is WorkState.CLOSED:
            self._open.pop(work.work_id, None)
        else:
            self._open[work.work_id] = work
        return work

    async def _change(self, work: Callable[P, Change], *args: P.args, **kwargs: P.kwargs) -> Intent:
        async with self._turn:
            change = await self._read(work, *args, **kwargs)
            self._noted(change.work)
        return change.intent

    async def _read(self, work: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        # A thread that has begun is waited for, also by who is cancelled: what it changed is noted.
        try:
            return await anyio.to_thread.run_sync(lambda: work(*args, **kwargs))
        except StoreError as error:
            raise ledger_failed(error) from error
