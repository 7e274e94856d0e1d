"""Works and the user's instructions. One method is one transaction.

What may become of a work or an instruction is `domain.work`'s to decide; its refusals roll back.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from sqlalchemy import Connection, func, select

from codespace.domain.errors import CodeSpaceError, ErrorCode
from codespace.domain.ids import IntentId, WorkId, WorkspaceId
from codespace.domain.work import (
    CLAIMABLE,
    Delivery,
    Intent,
    IntentState,
    Work,
    WorkState,
    intent_not_found,
)
from codespace.store.engine import Store
from codespace.store.schema import INTENTS, WORKS
from codespace.store.work_rows import (
    insert_intent,
    insert_work,
    place_at_end,
    queue_changed,
    select_intents,
    select_works,
    the_intent,
    the_work,
    update_intent,
    update_state,
)

LIVE = (IntentState.DRAFT, IntentState.QUEUED, IntentState.CLAIMED)


@dataclass(frozen=True, slots=True)
class Most:
    """How many works may be open, and how many instructions of one may be live."""

    open_works: int
    live_intents: int


@dataclass(frozen=True, slots=True)
class Change:
    """What a change came to: the instruction, and its work with the counts after it."""

    intent: Intent
    work: Work


@dataclass(frozen=True, slots=True)
class WorkRecords:
    """Reads and writes them. Its methods block; call them from a worker thread."""

    store: Store
    most: Most

    def find(self, work_id: WorkId) -> Work | None:
        """Return a work with its counts."""
        with self.store.read() as connection:
            found = select_works(connection, WORKS.c.work_id == work_id)
        return found[0] if found else None

    def open_works(self) -> tuple[Work, ...]:
        """Return every work that is not closed."""
        with self.store.read() as connection:
            return select_works(connection, WORKS.c.state != WorkState.CLOSED)

    def listed(self, workspace_id: WorkspaceId | None, most: int) -> tuple[Work, ...]:
        """Return works, the open ones first, then the newest first; at most `most`."""
        where = [] if workspace_id is None else [WORKS.c.workspace_id == workspace_id]
        with self.store.read() as connection:
            return select_works(connection, *where, most=most)

    def intents(self, work_id: WorkId) -> tuple[Intent, ...]:
        """Return the instructions of a work, in the user's order.

        Raises:
            CodeSpaceError: WORK_NOT_FOUND.
        """
        with self.store.read() as connection:
            the_work(connection, work_id)
            return select_intents(connection, INTENTS.c.work_id == work_id)

    def open(self, work: Work, now_ms: int) -> Work:
        """Record a work; what waited for the next one in its workspace moves to it.

        Raises:
            CodeSpaceError: LIMIT_EXCEEDED.
        """
        with self.store.write() as connection:
            open_now = connection.execute(
                select(func.count()).where(WORKS.c.state != WorkState.CLOSED)
            ).scalar_one()
            _require_room("works_open_max", open_now, self.most.open_works)
            waiting = select_intents(
                connection,
                INTENTS.c.workspace_id == work.workspace_id,
                INTENTS.c.delivery == Delivery.NEXT_WORK,
                INTENTS.c.state == IntentState.QUEUED,
            )
            for intent in waiting:
                update_intent(connection, intent.moved(work.work_id, now_ms))
            insert_work(
                connection, replace(work, queue_revision=work.queue_revision + len(waiting))
            )
            return the_work(connection, work.work_id)

    def finish(self, work_id: WorkId, now_ms: int) -> Work:
        """Close a work, or let it be closing while the user is owed something.

        Raises:
            CodeSpaceError: WORK_NOT_FOUND.
        """
        with self.store.write() as connection:
            update_state(connection, the_work(connection, work_id).finished(now_ms))
            return the_work(connection, work_id)

    def add(self, intent: Intent) -> Change:
        """Record a draft.

        Raises:
            CodeSpaceError: WORK_NOT_FOUND, WORK_CLOSED, or LIMIT_EXCEEDED.
        """
        with self.store.write() as connection:
            work = the_work(connection, intent.work_id)
            work.require_takes(intent.delivery)
            self._require_room(connection, work)
            placed = replace(
                intent, workspace_id=work.workspace_id, place=place_at_end(connection, last=True)
            )
            insert_intent(connection, placed)
            return Change(placed, work)

    def stop(self, notice: Intent) -> Change:
        """Record an instruction as the first of its queue: it goes before all others.

        Raises:
            CodeSpaceError: WORK_NOT_FOUND, or WORK_CLOSED.
        """
        with self.store.write() as connection:
            work = the_work(connection, notice.work_id)
            work.require_open()
            placed = replace(
                notice, workspace_id=work.workspace_id, place=place_at_end(connection, last=False)
            )
            insert_intent(connection, placed)
            return Change(placed, queue_changed(connection, work.work_id))

    def edit(
        self,
        intent_id: IntentId,
        seen: int,
        now_ms: int,
        *,
        body: str | None = None,
        delivery: Delivery | None = None,
    ) -> Change:
        """Change the text or the delivery of a draft or a queued instruction.

        Raises:
            CodeSpaceError: INTENT_NOT_FOUND, WORK_CLOSED, or as `Intent.edited`.
        """
        with self.store.write() as connection:
            before = the_intent(connection, intent_id)
            after = before.edited(seen, now_ms, body, delivery)
            if after.state is IntentState.QUEUED:
                the_work(connection, after.work_id).require_takes(after.delivery)
            return _changed(connection, before, after)

    def queue(self, intent_id: IntentId, seen: int, now_ms: int) -> Change:
        """Put a draft at the end of the queue.

        Raises:
            CodeSpaceError: INTENT_NOT_FOUND, WORK_CLOSED, or as `Intent.queued`.
        """
        with self.store.write() as connection:
            before = the_intent(connection, intent_id)
            after = before.queued(seen, now_ms, place_at_end(connection, last=True))
            the_work(connection, after.work_id).require_takes(after.delivery)
            return _changed(connection, before, after)

    def cancel(self, intent_id: IntentId, seen: int, now_ms: int) -> Change:
        """Withdraw a draft or a queued instruction.

        Raises:
            CodeSpaceError: INTENT_NOT_FOUND, or as `Intent.cancelled`.
        """
        with self.store.write() as connection:
            before = the_intent(connection, intent_id)
            return _changed(connection, before, before.cancelled(seen, now_ms))

    def claim(self, work_id: WorkId, now_ms: int) -> tuple[Intent | None, Work]:
        """Take the first instruction that can be claimed; nobody else gets it.

        Raises:
            CodeSpaceError: WORK_NOT_FOUND, or WORK_CLOSED.
        """
        with self.store.write() as connection:
            work = the_work(connection, work_id)
            work.require_open()
            found = select_intents(
                connection,
                INTENTS.c.work_id == work_id,
                INTENTS.c.state == IntentState.QUEUED,
                INTENTS.c.delivery.in_(CLAIMABLE[work.state]),
                most=1,
            )
            if not found:
                return None, work
            change = _changed(connection, found[0], found[0].taken(now_ms))
            return change.intent, change.work

    def hand_back(self, intent_id: IntentId, now_ms: int) -> Change | None:
        """Put a claimed instruction back into its queue; nothing happens to any other."""
        with self.store.write() as connection:
            before = the_intent(connection, intent_id)
            if before.state is not IntentState.CLAIMED:
                return None
            return _changed(connection, before, before.handed_back(now_ms))

    def complete(
        self,
        work_id: WorkId,
        intent_id: IntentId,
        outcome: IntentState,
        note: str | None,
        now_ms: int,
    ) -> Change:
        """Record how a claimed instruction ended.

        Raises:
            CodeSpaceError: WORK_NOT_FOUND, INTENT_NOT_FOUND, or as `Intent.completed`.
        """
        with self.store.write() as connection:
            the_work(connection, work_id)
            before = the_intent(connection, intent_id)
            if before.work_id != work_id:
                raise intent_not_found(intent_id)
            after = before.completed(outcome, note, now_ms)
            if after is not before:
                update_intent(connection, after)
            return Change(after, the_work(connection, work_id))

    def reorder(self, work_id: WorkId, wanted: Sequence[IntentId], now_ms: int) -> Work:
        """Give a queue another order: `wanted` names each instruction that waits in it, once.

        Raises:
            CodeSpaceError: WORK_NOT_FOUND, WORK_CLOSED, INTENT_NOT_FOUND, as
                `Intent.require_queued`, or INTENT_REVISION_CONFLICT when something is missing.
        """
        with self.store.write() as connection:
            the_work(connection, work_id).require_open()
            mine = {
                each.intent_id: each
                for each in select_intents(connection, INTENTS.c.work_id == work_id)
            }
            for intent_id in wanted:
                if intent_id not in mine:
                    raise intent_not_found(intent_id)
                mine[intent_id].require_queued()
            queue = [each.intent_id for each in mine.values() if each.waits_for_its_work]
            if not set(queue) <= set(wanted):
                raise CodeSpaceError(
                    ErrorCode.INTENT_REVISION_CONFLICT,
                    "The queue has changed since it was seen; name all of it in its new order.",
                    details={"intent_ids": queue},
                )
            places = sorted(mine[intent_id].place for intent_id in wanted)
            for intent_id, place in zip(wanted, places, strict=True):
                if mine[intent_id].place != place:
                    update_intent(connection, mine[intent_id].placed(place, now_ms))
            return queue_changed(connection, work_id)

    def _require_room(self, connection: Connection, work: Work) -> None:
        live = connection.execute(
            select(func.count()).where(INTENTS.c.work_id == work.work_id, INTENTS.c.state.in_(LIVE))
        ).scalar_one()
        _require_room("intents_max", live, self.most.live_intents)


def _require_room(limit: str, number: int, most: int) -> None:
    if number >= most:
        raise CodeSpaceError(
            ErrorCode.LIMIT_EXCEEDED,
            f"There are {number} already ({limit}); finish or cancel some first.",
            details={"limit": limit, "maximum": most},
        )


def _changed(connection: Connection, before: Intent, after: Intent) -> Change:
    """Write a changed instruction; the queue's revision grows if the queue is another one now."""
    update_intent(connection, after)
    if before.waits_for_its_work or after.waits_for_its_work:
        return Change(after, queue_changed(connection, after.work_id))
    return Change(after, the_work(connection, after.work_id))
