"""Works and instructions in a real database: transactions, order, claims, moves, a restart."""

import threading
from collections.abc import Iterator
from itertools import count
from pathlib import Path

import pytest

from codespace.domain.errors import CodeSpaceError, ErrorCode
from codespace.domain.ids import IntentId, WorkId, WorkspaceId
from codespace.domain.work import Delivery, Intent, IntentKind, IntentState, Work, WorkState
from codespace.store.engine import Store
from codespace.store.works import Most, WorkRecords

HERE = WorkspaceId("here")
NOW = 1_000


class World:
    """Records over one store, with short ways to fill them."""

    def __init__(self, path: str | None = None, most: Most | None = None) -> None:
        self.store = Store(path)
        self.records = WorkRecords(self.store, most or Most(100, 100))
        self._numbers = count(1)

    def open(self, workspace_id: str = HERE, work_id: str | None = None) -> Work:
        name = WorkId(work_id or f"work-{next(self._numbers)}")
        work = Work(name, WorkspaceId(workspace_id), "t", WorkState.ACTIVE, 0, NOW)
        return self.records.open(work, NOW)

    def draft(self, work: Work, delivery: Delivery = Delivery.NEXT_CHECKPOINT) -> Intent:
        return self.records.add(self._intent(work, delivery)).intent

    def notice(self, work: Work) -> Intent:
        return self.records.stop(
            self._intent(work, Delivery.NEXT_CHECKPOINT, IntentState.QUEUED)
        ).intent

    def queued(self, work: Work, delivery: Delivery = Delivery.NEXT_CHECKPOINT) -> Intent:
        return self.records.queue(self.draft(work, delivery).intent_id, 1, NOW).intent

    def claimed(self, work: Work) -> Intent:
        intent, _ = self.records.claim(work.work_id, NOW)
        assert intent is not None
        return intent

    def standing(self, work: Work) -> Work:
        found = self.records.find(work.work_id)
        assert found is not None
        return found

    def waiting(self, work: Work) -> list[str]:
        found = self.records.intents(work.work_id)
        return [intent.intent_id for intent in found if intent.waits_for_its_work]

    def _intent(
        self, work: Work, delivery: Delivery, state: IntentState = IntentState.DRAFT
    ) -> Intent:
        number = next(self._numbers)
        return Intent(
            intent_id=IntentId(f"int-{number}"),
            work_id=work.work_id,
            workspace_id=WorkspaceId(""),
            kind=IntentKind.NOTE,
            delivery=delivery,
            state=state,
            body=f"body {number} é\0😀",
            revision=1,
            place=0,
            created_at=NOW,
            changed_at=NOW,
        )


@pytest.fixture
def world() -> Iterator[World]:
    world = World()
    yield world
    world.store.close()


def refused(code: ErrorCode) -> "pytest.RaisesExc[CodeSpaceError]":
    return pytest.RaisesExc(CodeSpaceError, check=lambda error: error.code is code)


def test_a_work_is_found_as_it_was_opened(world: World) -> None:
    work = world.open()
    assert world.standing(work) == work
    assert (work.state, work.queue_revision, work.queued) == (WorkState.ACTIVE, 0, 0)
    assert world.records.find(WorkId("work-none")) is None


def test_instructions_are_claimed_in_the_order_in_which_they_were_queued(world: World) -> None:
    work = world.open()
    drafts = [world.draft(work) for _ in range(3)]
    for draft in (drafts[1], drafts[2], drafts[0]):
        world.records.queue(draft.intent_id, 1, NOW)
    claimed = [world.claimed(work) for _ in range(3)]
    assert [intent.intent_id for intent in claimed] == ["int-3", "int-4", "int-2"]
    assert {intent.state for intent in claimed} == {IntentState.CLAIMED}
    assert claimed[0].body == "body 3 é\0😀"
    assert world.records.claim(work.work_id, NOW)[0] is None


def test_the_queues_revision_grows_with_each_change_of_the_queue_alone(world: World) -> None:
    work = world.open()
    draft = world.draft(work)
    assert world.standing(work).queue_revision == 0
    world.records.edit(draft.intent_id, 1, NOW, body="more")
    assert world.standing(work).queue_revision == 0
    world.records.queue(draft.intent_id, 2, NOW)
    world.records.edit(draft.intent_id, 3, NOW, body="still more")
    first = world.queued(work)
    world.records.reorder(work.work_id, [first.intent_id, draft.intent_id], NOW)
    assert world.standing(work).queue_revision == 4
    assert world.claimed(work).intent_id == first.intent_id
    assert world.standing(work).queue_revision == 5
    world.records.complete(work.work_id, first.intent_id, IntentState.DONE, None, NOW)
    assert world.standing(work).queue_revision == 5


def test_a_refused_change_changes_nothing(world: World) -> None:
    work = world.open()
    intent = world.queued(work)
    before = world.records.intents(work.work_id), world.standing(work)
    with refused(ErrorCode.INTENT_REVISION_CONFLICT):
        world.records.edit(intent.intent_id, 1, NOW, body="late")
    with refused(ErrorCode.INTENT_REVISION_CONFLICT):
        world.records.cancel(intent.intent_id, 9, NOW)
    with refused(ErrorCode.INTENT_NOT_FOUND):
        world.records.cancel(IntentId("int-none"), 1, NOW)
    with refused(ErrorCode.INTENT_NOT_FOUND):
        world.records.reorder(work.work_id, [intent.intent_id, IntentId("int-none")], NOW)
    assert (world.records.intents(work.work_id), world.standing(work)) == before


def test_a_new_order_names_all_that_waits(world: World) -> None:
    work = world.open()
    names = [world.queued(work).intent_id for _ in range(4)]
    later = world.queued(work, Delivery.NEXT_WORK).intent_id
    world.records.reorder(work.work_id, names[::-1], NOW)
    assert world.waiting(work) == names[::-1]
    with refused(ErrorCode.INTENT_REVISION_CONFLICT):
        world.records.reorder(work.work_id, names[:3], NOW)
    world.records.reorder(work.work_id, [later, *names], NOW)
    assert world.waiting(work) == names
    taken = world.claimed(work).intent_id
    with refused(ErrorCode.INTENT_ALREADY_CLAIMED):
        world.records.reorder(work.work_id, [taken, *names[1:]], NOW)
    draft = world.draft(work).intent_id
    with refused(ErrorCode.INTENT_NOT_EDITABLE):
        world.records.reorder(work.work_id, [draft, *names[1:]], NOW)


def test_what_waits_for_the_next_work_moves_to_it_in_its_order(world: World) -> None:
    first, elsewhere = world.open(), world.open("elsewhere")
    waiting = [world.queued(first, Delivery.NEXT_WORK).intent_id for _ in range(2)]
    other = world.queued(elsewhere, Delivery.NEXT_WORK).intent_id
    draft = world.draft(first, Delivery.NEXT_WORK).intent_id
    assert world.standing(first).queued == 0
    assert world.records.finish(first.work_id, NOW).state is WorkState.CLOSED
    second = world.open()
    assert (second.queued, second.claimable, second.queue_revision) == (2, 2, 2)
    assert [world.claimed(second).intent_id for _ in range(2)] == waiting
    assert [intent.intent_id for intent in world.records.intents(first.work_id)] == [draft]
    assert [intent.intent_id for intent in world.records.intents(elsewhere.work_id)] == [other]
    # What was still a draft can be sent on, though its work is closed.
    world.records.queue(draft, 1, NOW)
    assert world.claimed(world.open()).intent_id == draft


def test_a_work_with_something_left_is_closing_and_gives_what_was_for_later(world: World) -> None:
    work = world.open()
    later = world.queued(work, Delivery.AFTER_CURRENT_WORK)
    assert world.records.claim(work.work_id, NOW)[0] is None
    closing = world.records.finish(work.work_id, NOW)
    assert (closing.state, closing.queued, closing.claimable) == (WorkState.CLOSING, 1, 1)
    assert world.claimed(work).intent_id == later.intent_id
    assert world.records.finish(work.work_id, NOW).state is WorkState.CLOSING
    world.records.complete(work.work_id, later.intent_id, IntentState.BLOCKED, "no", NOW)
    assert world.records.finish(work.work_id, NOW + 1).closed_at == NOW + 1
    assert world.records.finish(work.work_id, NOW + 2).closed_at == NOW + 1


def test_a_closed_work_takes_nothing_but_what_is_for_the_next(world: World) -> None:
    work = world.open()
    draft = world.draft(work)
    world.records.finish(work.work_id, NOW)
    with refused(ErrorCode.WORK_CLOSED):
        world.draft(work)
    with refused(ErrorCode.WORK_CLOSED):
        world.notice(work)
    with refused(ErrorCode.WORK_CLOSED):
        world.records.queue(draft.intent_id, 1, NOW)
    with refused(ErrorCode.WORK_CLOSED):
        world.records.claim(work.work_id, NOW)
    with refused(ErrorCode.WORK_CLOSED):
        world.records.reorder(work.work_id, [], NOW)
    later = world.queued(work, Delivery.NEXT_WORK)
    with refused(ErrorCode.WORK_CLOSED):
        world.records.edit(later.intent_id, 2, NOW, delivery=Delivery.NEXT_CHECKPOINT)
    world.records.edit(draft.intent_id, 1, NOW, delivery=Delivery.NEXT_WORK)
    world.records.queue(draft.intent_id, 2, NOW)
    assert world.open().queued == 2


def test_a_notice_goes_before_all_that_waits(world: World) -> None:
    work = world.open()
    first = world.queued(work)
    notices = [world.notice(work).intent_id for _ in range(2)]
    assert world.standing(work).queue_revision == 3
    assert [world.claimed(work).intent_id for _ in range(3)] == [*notices[::-1], first.intent_id]


def test_a_claim_that_is_handed_back_is_the_next_again(world: World) -> None:
    work = world.open()
    first, _ = world.queued(work), world.queued(work)
    assert world.claimed(work).intent_id == first.intent_id
    assert world.records.hand_back(first.intent_id, NOW) is not None
    assert world.records.hand_back(first.intent_id, NOW) is None
    assert world.claimed(work).intent_id == first.intent_id


def test_an_instruction_of_another_work_is_not_completed(world: World) -> None:
    work, other = world.open(), world.open()
    world.queued(work)
    taken = world.claimed(work)
    with refused(ErrorCode.INTENT_NOT_FOUND):
        world.records.complete(other.work_id, taken.intent_id, IntentState.DONE, None, NOW)
    with refused(ErrorCode.WORK_NOT_FOUND):
        world.records.complete(WorkId("none"), taken.intent_id, IntentState.DONE, None, NOW)


def test_there_is_room_for_so_much_and_what_has_ended_makes_room() -> None:
    world = World(most=Most(open_works=2, live_intents=2))
    work, second = world.open(), world.open()
    with refused(ErrorCode.LIMIT_EXCEEDED):
        world.open()
    world.records.finish(second.work_id, NOW)
    world.open()
    draft, _ = world.draft(work), world.queued(work)
    with refused(ErrorCode.LIMIT_EXCEEDED):
        world.draft(work)
    world.records.cancel(draft.intent_id, 1, NOW)
    world.draft(work)
    world.notice(work)  # the user can always stop
    world.store.close()


def test_open_works_are_listed_first_and_then_the_newest(world: World) -> None:
    for number in (1, 2, 3):
        work = Work(WorkId(f"work-{number}"), HERE, "t", WorkState.ACTIVE, 0, NOW + number)
        world.records.open(work, NOW)
    world.open("elsewhere", "work-9")
    world.records.finish(WorkId("work-3"), NOW)
    listed = [work.work_id for work in world.records.listed(HERE, 10)]
    assert listed == ["work-2", "work-1", "work-3"]
    assert [work.work_id for work in world.records.listed(None, 2)] == ["work-2", "work-1"]
    assert {work.work_id for work in world.records.open_works()} == {"work-1", "work-2", "work-9"}


def test_twenty_claimers_at_once_get_each_instruction_once(tmp_path: Path) -> None:
    world = World(str(tmp_path / "ledger.db"))
    work = world.open()
    names: list[str] = [world.queued(work).intent_id for _ in range(30)]
    together, taken = threading.Barrier(20), list[list[str]]()

    def claim() -> None:
        together.wait(20)
        mine = list[str]()
        while (found := world.records.claim(work.work_id, NOW)[0]) is not None:
            mine.append(found.intent_id)
        taken.append(mine)

    threads = [threading.Thread(target=claim) for _ in range(20)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(40)
    assert sorted(name for mine in taken for name in mine) == sorted(names)
    assert all(mine == sorted(mine, key=names.index) for mine in taken)
    world.store.close()


def test_all_of_it_outlives_its_store(tmp_path: Path) -> None:
    path = str(tmp_path / "ledger.db")
    world = World(path)
    work = world.open()
    world.queued(work)
    world.queued(work, Delivery.AFTER_CURRENT_WORK)
    world.claimed(work)
    before = world.standing(work), world.records.intents(work.work_id)
    world.store.close()
    again = World(path)
    assert (again.standing(work), again.records.intents(work.work_id)) == before
    assert again.records.open_works() == (before[0],)
    again.store.close()
