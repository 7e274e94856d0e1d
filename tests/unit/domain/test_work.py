"""What may become of a work and of an instruction: every transition, and every refusal."""

from collections.abc import Callable
from dataclasses import replace
from functools import partial

import pytest

from codespace.domain.errors import CodeSpaceError, ErrorCode
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

WORK = Work(WorkId("work-1"), WorkspaceId("demo"), "", WorkState.ACTIVE, 0, 1)
DRAFT = Intent(
    intent_id=IntentId("int-1"),
    work_id=WORK.work_id,
    workspace_id=WORK.workspace_id,
    kind=IntentKind.FOLLOW_UP,
    delivery=Delivery.AFTER_CURRENT_WORK,
    state=IntentState.DRAFT,
    body="first",
    revision=3,
    place=1,
    created_at=1,
    changed_at=1,
)
EDITABLE = (IntentState.DRAFT, IntentState.QUEUED)
CHANGES: dict[str, Callable[[Intent], Intent]] = {
    "edit": lambda intent: intent.edited(3, 2, "second", None),
    "queue": lambda intent: intent.queued(3, 2, 7),
    "cancel": lambda intent: intent.cancelled(3, 2),
}


def at(state: IntentState) -> Intent:
    return replace(DRAFT, state=state)


def refusal(change: Callable[[], object]) -> ErrorCode:
    with pytest.raises(CodeSpaceError) as caught:
        change()
    return caught.value.code


@pytest.mark.parametrize(
    ("state", "queued", "claimed", "after"),
    [
        (WorkState.ACTIVE, 0, 0, WorkState.CLOSED),
        (WorkState.CLOSING, 0, 0, WorkState.CLOSED),
        (WorkState.ACTIVE, 1, 0, WorkState.CLOSING),
        (WorkState.ACTIVE, 0, 1, WorkState.CLOSING),
        (WorkState.CLOSING, 1, 1, WorkState.CLOSING),
        (WorkState.CLOSED, 0, 0, WorkState.CLOSED),
    ],
)
def test_a_work_is_closed_only_when_the_user_is_owed_nothing(
    state: WorkState, queued: int, claimed: int, after: WorkState
) -> None:
    work = replace(WORK, state=state, queued=queued, claimed=claimed).finished(9)
    assert work.state is after
    assert (work.closed_at == 9) is (after is WorkState.CLOSED and state is not WorkState.CLOSED)


def test_a_closed_work_takes_only_what_is_for_the_next() -> None:
    closed = replace(WORK, state=WorkState.CLOSED)
    closed.require_takes(Delivery.NEXT_WORK)
    for delivery in (Delivery.NEXT_CHECKPOINT, Delivery.AFTER_CURRENT_WORK):
        assert refusal(partial(closed.require_takes, delivery)) is ErrorCode.WORK_CLOSED
        WORK.require_takes(delivery)


@pytest.mark.parametrize("state", WorkState)
@pytest.mark.parametrize("delivery", Delivery)
def test_what_can_be_claimed_follows_from_state_and_delivery(
    state: WorkState, delivery: Delivery
) -> None:
    expected = {
        WorkState.ACTIVE: {Delivery.NEXT_CHECKPOINT},
        WorkState.CLOSING: {Delivery.NEXT_CHECKPOINT, Delivery.AFTER_CURRENT_WORK},
        WorkState.CLOSED: set[Delivery](),
    }[state]
    queued = replace(at(IntentState.QUEUED), delivery=delivery)
    assert claimable(state, queued) is (delivery in expected)
    assert not claimable(state, replace(queued, state=IntentState.CLAIMED))


@pytest.mark.parametrize("state", EDITABLE)
def test_a_draft_and_a_queued_one_can_be_edited_and_cancelled(state: IntentState) -> None:
    edited = at(state).edited(3, 2, "second", Delivery.NEXT_WORK)
    assert (edited.body, edited.delivery, edited.state) == ("second", Delivery.NEXT_WORK, state)
    assert (edited.revision, edited.changed_at) == (4, 2)
    assert at(state).edited(3, 2, None, None).body == "first"
    cancelled = at(state).cancelled(3, 2)
    assert (cancelled.state, cancelled.body) == (IntentState.CANCELLED, "first")


def test_a_draft_is_queued_once_at_its_place() -> None:
    queued = at(IntentState.DRAFT).queued(3, 2, 7)
    assert (queued.state, queued.place, queued.revision) == (IntentState.QUEUED, 7, 4)
    assert refusal(lambda: queued.queued(4, 3, 8)) is ErrorCode.INTENT_NOT_EDITABLE


@pytest.mark.parametrize("change", CHANGES)
def test_a_change_carries_the_revision_that_it_saw(change: str) -> None:
    for seen in (2, 4):
        newer = replace(DRAFT, revision=seen)
        code = refusal(lambda newer=newer: CHANGES[change](newer))
        assert code is ErrorCode.INTENT_REVISION_CONFLICT


@pytest.mark.parametrize("change", CHANGES)
@pytest.mark.parametrize("state", [state for state in IntentState if state not in EDITABLE])
def test_what_was_claimed_or_has_ended_is_frozen(change: str, state: IntentState) -> None:
    code = refusal(lambda: CHANGES[change](at(state)))
    claimed = state is IntentState.CLAIMED
    assert code is (ErrorCode.INTENT_ALREADY_CLAIMED if claimed else ErrorCode.INTENT_NOT_EDITABLE)


def test_only_a_claimed_one_is_completed_and_the_same_again_is_the_same() -> None:
    done = at(IntentState.CLAIMED).completed(IntentState.DONE, "ok", 2)
    assert (done.state, done.note, done.revision) == (IntentState.DONE, "ok", 4)
    assert done.completed(IntentState.DONE, "ok", 3) is done
    for outcome, note in ((IntentState.DONE, "else"), (IntentState.BLOCKED, "ok")):
        code = refusal(lambda outcome=outcome, note=note: done.completed(outcome, note, 3))
        assert code is ErrorCode.INTENT_NOT_EDITABLE
    for state in (IntentState.DRAFT, IntentState.QUEUED, IntentState.CANCELLED):
        code = refusal(lambda state=state: at(state).completed(IntentState.DONE, None, 3))
        assert code is ErrorCode.INTENT_NOT_EDITABLE


def test_a_claim_that_reached_nobody_goes_back_to_its_place() -> None:
    claimed = at(IntentState.QUEUED).taken(2)
    assert claimed.state is IntentState.CLAIMED
    back = claimed.handed_back(3)
    assert (back.state, back.place, back.revision) == (IntentState.QUEUED, 1, 5)


def test_one_that_moves_is_the_first_thing_of_the_next_work() -> None:
    waiting = replace(at(IntentState.QUEUED), delivery=Delivery.NEXT_WORK)
    moved = waiting.moved(WorkId("work-2"), 2)
    assert (moved.work_id, moved.delivery) == ("work-2", Delivery.NEXT_CHECKPOINT)
    assert claimable(WorkState.ACTIVE, moved)


@pytest.mark.parametrize("state", IntentState)
def test_only_what_is_queued_has_a_place_in_the_queue(state: IntentState) -> None:
    if state is IntentState.QUEUED:
        at(state).require_queued()
        assert at(state).waits_for_its_work
        assert not replace(at(state), delivery=Delivery.NEXT_WORK).waits_for_its_work
        return
    assert not at(state).waits_for_its_work
    code = refusal(at(state).require_queued)
    claimed = state is IntentState.CLAIMED
    assert code is (ErrorCode.INTENT_ALREADY_CLAIMED if claimed else ErrorCode.INTENT_NOT_EDITABLE)
