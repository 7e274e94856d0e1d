"""Works over a real store: the counts in memory are those in the store, and no claim is lost."""

from collections.abc import AsyncIterator
from itertools import count
from pathlib import Path

import anyio
import pytest

from codespace.domain.errors import CodeSpaceError, ErrorCode
from codespace.domain.ids import IntentId, WorkId, WorkspaceId
from codespace.domain.work import Delivery, Intent, IntentState, Work, WorkState
from codespace.gateway.works import Wish, Works
from codespace.store.engine import Store
from codespace.store.works import Most, WorkRecords

pytestmark = pytest.mark.anyio
HERE = WorkspaceId("here")


def over(store: Store) -> Works:
    numbers, clock = count(1), count(1_000)
    records = WorkRecords(store, Most(100, 100))
    return Works(records, lambda: next(clock), lambda prefix: f"{prefix}{next(numbers)}")


@pytest.fixture
async def works() -> AsyncIterator[Works]:
    store = Store()
    yield over(store)
    store.close()


async def queued(works: Works, work: Work, body: str = "b") -> Intent:
    draft = await works.add(work.work_id, Wish(body, delivery=Delivery.NEXT_CHECKPOINT))
    return await works.queue(draft.intent_id, draft.revision)


def pending(works: Works, work: Work) -> tuple[object, object]:
    told = works.coordination(work)
    return told["pending_user_items"], told["queue_revision"]


async def test_the_counts_that_calls_add_follow_every_change(works: Works) -> None:
    work = await works.open(HERE, "t")
    seen = [pending(works, work)]
    intent = await queued(works, work)
    seen.append(pending(works, work))
    await works.edit(intent.intent_id, intent.revision, body="c")
    seen.append(pending(works, work))
    assert (await works.claim(work.work_id)) is not None
    seen.append(pending(works, work))
    await works.hand_back(intent.intent_id)
    seen.append(pending(works, work))
    await works.add_notice(work.work_id, "stop")
    seen.append(pending(works, work))
    assert seen == [(0, 0), (1, 1), (1, 2), (0, 3), (1, 4), (2, 5)]
    assert pending(works, await works.find(work.work_id)) == seen[-1]


async def test_works_of_before_are_known_after_a_start(tmp_path: Path) -> None:
    store = Store(str(tmp_path / "ledger.db"))
    before = over(store)
    work = await before.open(HERE, "t")
    await queued(before, work)
    closed = await before.open(HERE, "u")
    await before.finish(closed.work_id)
    store.close()
    store = Store(str(tmp_path / "ledger.db"))
    after = over(store)
    await after.load()
    assert pending(after, work) == (1, 1)
    assert (await after.require_open(work.work_id)).queued == 1
    with pytest.raises(CodeSpaceError) as caught:
        await after.require_open(closed.work_id)
    assert caught.value.code is ErrorCode.WORK_CLOSED
    store.close()


async def test_an_unknown_work_is_not_found(works: Works) -> None:
    for ask in (works.require_open, works.find, works.finish, works.claim, works.intents):
        with pytest.raises(CodeSpaceError) as caught:
            await ask(WorkId("work-none"))
        assert caught.value.code is ErrorCode.WORK_NOT_FOUND


async def test_a_call_that_sees_its_work_closed_tells_the_last_counts(works: Works) -> None:
    work = await works.open(HERE, "t")
    open_before = await works.require_open(work.work_id)
    assert (await works.finish(work.work_id)).state is WorkState.CLOSED
    assert pending(works, open_before) == (0, 0)


async def test_what_a_caller_who_has_gone_had_claimed_waits_again(works: Works) -> None:
    work = await works.open(HERE, "t")
    intent = await queued(works, work)
    with anyio.CancelScope() as scope:
        scope.cancel()
        await works.claim(work.work_id)
    async with anyio.create_task_group() as tasks:
        # The first holds the turn, so that the second is in the midst of its claim when it ends.
        tasks.start_soon(works.claim, work.work_id)
        await anyio.lowlevel.checkpoint()
        tasks.cancel_scope.cancel()
    standing = await works.find(work.work_id)
    assert (standing.queued, standing.claimed) == (1, 0)
    assert pending(works, work)[0] == 1
    claimed = await works.claim(work.work_id)
    assert claimed is not None
    assert claimed.intent_id == intent.intent_id


async def test_twenty_claimers_at_once_get_each_instruction_once(works: Works) -> None:
    work = await works.open(HERE, "t")
    names = [(await queued(works, work)).intent_id for _ in range(15)]
    taken = list[IntentId]()

    async def claim() -> None:
        found = await works.claim(work.work_id)
        if found is not None:
            taken.append(found.intent_id)

    async with anyio.create_task_group() as tasks:
        for _ in range(20):
            tasks.start_soon(claim)
    assert taken == names


async def test_an_instruction_ends_with_what_the_agent_says_of_it(works: Works) -> None:
    work = await works.open(HERE, "t")
    await queued(works, work)
    claimed = await works.claim(work.work_id)
    assert claimed is not None
    done = await works.complete(work.work_id, claimed.intent_id, "blocked", "no access")
    assert (done.state, done.note) == (IntentState.BLOCKED, "no access")
    assert [each.note for each in await works.intents(work.work_id)] == ["no access"]


async def test_a_queue_takes_a_new_order_and_a_withdrawn_text_comes_back(works: Works) -> None:
    work = await works.open(HERE, "t")
    first, second = await queued(works, work, "one"), await queued(works, work, "two")
    await works.reorder(work.work_id, [second.intent_id, first.intent_id])
    back = (await works.intents(work.work_id))[1]
    assert (await works.cancel(back.intent_id, back.revision)).body == "one"
    claimed = await works.claim(work.work_id)
    assert claimed is not None
    assert claimed.body == "two"
    assert [each.work_id for each in await works.listed(HERE)] == [work.work_id]


async def test_a_store_that_fails_is_an_error_that_says_so(works: Works) -> None:
    works.records.store.close()
    with pytest.raises(CodeSpaceError) as caught:
        await works.open(HERE, "t")
    assert caught.value.code is ErrorCode.FILE_OPERATION_FAILED
