"""What goes over the inbox's wire: domain values as JSON, with the words of the domain."""

from typing import get_args

from codespace.adapters.inbox_models import IntentView, Kind, When, WorkView, intent_view, work_view
from codespace.domain.ids import IntentId, WorkId, WorkspaceId
from codespace.domain.work import Delivery, Intent, IntentKind, IntentState, Work, WorkState


def words(model: type[WorkView] | type[IntentView], field: str) -> set[object]:
    return set(get_args(model.model_fields[field].annotation))


def test_the_words_are_those_of_the_domain() -> None:
    assert set(get_args(Kind)) == {kind.value for kind in IntentKind}
    assert set(get_args(When)) == {delivery.value for delivery in Delivery}
    assert words(WorkView, "state") == {state.value for state in WorkState}
    assert words(IntentView, "state") == {state.value for state in IntentState}


def test_a_work_is_told_with_its_counts() -> None:
    work = Work(WorkId("w"), WorkspaceId("d"), "t", WorkState.CLOSING, 5, 6, None, 3, 2, 1)
    assert work_view(work).model_dump(exclude_none=True) == {
        "work_id": "w",
        "workspace_id": "d",
        "title": "t",
        "state": "closing",
        "queued": 3,
        "claimed": 2,
        "claimable_now": 1,
        "queue_revision": 5,
        "created_at": 6,
    }


def test_an_instruction_is_told_without_its_place() -> None:
    intent = Intent(
        intent_id=IntentId("i"),
        work_id=WorkId("w"),
        workspace_id=WorkspaceId("d"),
        kind=IntentKind.NOTE,
        delivery=Delivery.NEXT_WORK,
        state=IntentState.BLOCKED,
        body="b",
        revision=3,
        place=9,
        created_at=1,
        changed_at=2,
        note="n",
    )
    assert intent_view(intent).model_dump() == {
        "intent_id": "i",
        "work_id": "w",
        "workspace_id": "d",
        "kind": "note",
        "delivery": "next_work",
        "state": "blocked",
        "body": "b",
        "revision": 3,
        "created_at": 1,
        "changed_at": 2,
        "note": "n",
    }
