import anyio
import pytest

from codespace.codemode.inbox import Inbox
from codespace.codemode.steps import Delivery


@pytest.mark.anyio
async def test_answers_come_out_in_their_order_and_once() -> None:
    inbox = Inbox()
    inbox.put(Delivery(2, b"b"))
    inbox.put(Delivery(1, b"a"))

    assert len(inbox.items) == 2
    assert [each.number for each in inbox.take()] == [2, 1]
    assert inbox.take() == []


@pytest.mark.anyio
async def test_a_waiting_run_is_woken_once_or_many_times() -> None:
    inbox = Inbox()
    woken: list[int] = []

    async def wait() -> None:
        await inbox.wait()
        woken.append(len(inbox.items))

    with anyio.fail_after(5):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(wait)
            await anyio.wait_all_tasks_blocked()
            inbox.put(Delivery(1, b"a"))
            inbox.wake()
            inbox.wake()

    assert woken == [1]
    inbox.wake()
