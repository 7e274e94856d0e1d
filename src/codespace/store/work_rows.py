"""Works and instructions as rows: reading and writing them within somebody's transaction."""

from dataclasses import asdict, replace
from typing import cast

from sqlalchemy import (
    Case,
    ColumnElement,
    Connection,
    RowMapping,
    UnaryExpression,
    and_,
    case,
    func,
    insert,
    or_,
    select,
    update,
)

from codespace.domain.ids import IntentId, WorkId
from codespace.domain.work import (
    CLAIMABLE,
    Delivery,
    Intent,
    IntentKind,
    IntentState,
    Work,
    WorkState,
    intent_not_found,
    work_not_found,
)
from codespace.store.schema import INTENTS, WORKS

_OF_WORKS = tuple(column.name for column in WORKS.columns)


def select_works(
    connection: Connection, *where: ColumnElement[bool], most: int | None = None
) -> tuple[Work, ...]:
    """Return works with their counts, the open ones first, then the newest first."""
    order = _open_first(WORKS.c.state, WORKS.c.created_at, WORKS.c.work_id)
    chosen = select(WORKS).where(*where).order_by(*order).limit(most).subquery()
    works = chosen.c
    waits = and_(INTENTS.c.state == IntentState.QUEUED, INTENTS.c.delivery != Delivery.NEXT_WORK)
    in_turn = or_(
        *(
            and_(works.state == state, INTENTS.c.delivery.in_(deliveries))
            for state, deliveries in CLAIMABLE.items()
            if deliveries
        )
    )
    of_it = and_(
        INTENTS.c.work_id == works.work_id,
        INTENTS.c.state.in_((IntentState.QUEUED, IntentState.CLAIMED)),
    )
    counted = (
        select(
            chosen,
            _count(waits).label("queued"),
            _count(INTENTS.c.state == IntentState.CLAIMED).label("claimed"),
            _count(and_(waits, in_turn)).label("claimable"),
        )
        .outerjoin(INTENTS, of_it)
        .group_by(works.work_id)
        .order_by(*_open_first(works.state, works.created_at, works.work_id))
    )
    rows = connection.execute(counted).mappings()
    return tuple(_as_work(row) for row in rows)


def the_work(connection: Connection, work_id: WorkId) -> Work:
    """Return one work with its counts.

    Raises:
        CodeSpaceError: WORK_NOT_FOUND.
    """
    found = select_works(connection, WORKS.c.work_id == work_id)
    if not found:
        raise work_not_found(work_id)
    return found[0]


def insert_work(connection: Connection, work: Work) -> None:
    """Write a new work."""
    values = asdict(work)
    connection.execute(insert(WORKS).values({name: values[name] for name in _OF_WORKS}))


def update_state(connection: Connection, work: Work) -> None:
    """Write how far a work is."""
    connection.execute(
        update(WORKS)
        .where(WORKS.c.work_id == work.work_id)
        .values(state=work.state, closed_at=work.closed_at)
    )


def queue_changed(connection: Connection, work_id: WorkId) -> Work:
    """Let the revision of a queue grow; return the work with its counts."""
    connection.execute(
        update(WORKS)
        .where(WORKS.c.work_id == work_id)
        .values(queue_revision=WORKS.c.queue_revision + 1)
    )
    return the_work(connection, work_id)


def select_intents(
    connection: Connection, *where: ColumnElement[bool], most: int | None = None
) -> tuple[Intent, ...]:
    """Return instructions in the user's order."""
    query = select(INTENTS).where(*where).order_by(INTENTS.c.place, INTENTS.c.intent_id)
    return tuple(_as_intent(row) for row in connection.execute(query.limit(most)).mappings())


def the_intent(connection: Connection, intent_id: IntentId) -> Intent:
    """Return one instruction.

    Raises:
        CodeSpaceError: INTENT_NOT_FOUND.
    """
    found = select_intents(connection, INTENTS.c.intent_id == intent_id)
    if not found:
        raise intent_not_found(intent_id)
    return found[0]


def insert_intent(connection: Connection, intent: Intent) -> None:
    """Write a new instruction."""
    connection.execute(insert(INTENTS).values(asdict(intent)))


def update_intent(connection: Connection, intent: Intent) -> None:
    """Write a changed instruction."""
    connection.execute(
        update(INTENTS).where(INTENTS.c.intent_id == intent.intent_id).values(asdict(intent))
    )


def place_at_end(connection: Connection, *, last: bool) -> int:
    """Return a place behind all instructions, or before all of them."""
    end = func.max(INTENTS.c.place) if last else func.min(INTENTS.c.place)
    found = cast("int | None", connection.execute(select(end)).scalar_one())
    return (found or 0) + (1 if last else -1)


def _open_first(
    state: ColumnElement[str], created_at: ColumnElement[int], work_id: ColumnElement[str]
) -> tuple[Case[int], UnaryExpression[int], ColumnElement[str]]:
    return case((state == WorkState.CLOSED, 1), else_=0), created_at.desc(), work_id


def _count(condition: ColumnElement[bool]) -> ColumnElement[int]:
    return func.coalesce(func.sum(case((condition, 1), else_=0)), 0)


def _as_work(row: RowMapping) -> Work:
    work = Work(**row)
    return replace(work, state=WorkState(work.state))


def _as_intent(row: RowMapping) -> Intent:
    intent = Intent(**row)
    return replace(
        intent,
        kind=IntentKind(intent.kind),
        delivery=Delivery(intent.delivery),
        state=IntentState(intent.state),
    )
