"""Counts of a work: what waits for it, what was taken, what can be taken now."""

from collections.abc import Iterator
from itertools import count

import pytest

from codespace.domain.ids import IntentId, WorkId, WorkspaceId
from codespace.domain.work import (
    Delivery,
    Intent,
    IntentKind,
    IntentState,
    Work,
    WorkState,
    claimable,
)
from codespace.store.engine import Store
from codespace.store.work_rows import (
    insert_intent,
    insert_work,
    place_at_end,
    select_intents,
    the_work,
)

NUMBERS = count(1)


@pytest.fixture
def store() -> Iterator[Store]:
    store = Store()
    yield store
    store.close()


def intent(work: Work, state: IntentState, delivery: Delivery, place: int) -> Intent:
    return Intent(
        intent_id=IntentId(f"int-{next(NUMBERS)}"),
        work_id=work.work_id,
        workspace_id=work.workspace_id,
        kind=IntentKind.FOLLOW_UP,
        delivery=delivery,
        state=state,
        body="b",
        revision=1,
        place=place,
        created_at=1,
        changed_at=1,
    )


@pytest.mark.parametrize("state", WorkState)
def test_the_counts_are_what_the_rules_say_of_each_instruction(
    store: Store, state: WorkState
) -> None:
    work = Work(WorkId("work-1"), WorkspaceId("here"), "t", state, 5, 1)
    intents = [
        intent(work, standing, delivery, place)
        for place, (standing, delivery) in enumerate(
            (standing, delivery) for standing in IntentState for delivery in Delivery
        )
    ]
    with store.write() as connection:
        insert_work(connection, work)
        for each in intents:
            insert_intent(connection, each)
        found = the_work(connection, work.work_id)
        assert list(select_intents(connection)) == intents
    assert found.queued == sum(each.waits_for_its_work for each in intents)
    assert found.claimed == sum(each.state is IntentState.CLAIMED for each in intents)
    assert found.claimable == sum(claimable(state, each) for each in intents)
    assert (found.state, found.queue_revision) == (state, 5)


def test_places_grow_at_both_ends(store: Store) -> None:
    work = Work(WorkId("work-1"), WorkspaceId("here"), "t", WorkState.ACTIVE, 0, 1)
    with store.write() as connection:
        assert (place_at_end(connection, last=True), place_at_end(connection, last=False)) == (
            1,
            -1,
        )
        insert_work(connection, work)
        for place in (4, -7):
            new = intent(work, IntentState.QUEUED, Delivery.NEXT_CHECKPOINT, place)
            insert_intent(connection, new)
        assert (place_at_end(connection, last=True), place_at_end(connection, last=False)) == (
            5,
            -8,
        )
