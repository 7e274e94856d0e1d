"""A turn of the event loop has room for some runs, and no more."""

import asyncio
import time

import pytest

from codespace.codemode.loop_turn import MOST_SECONDS, LoopTurn


@pytest.mark.anyio
async def test_a_turn_of_which_much_was_taken_is_used_up_until_the_next_one() -> None:
    turn = LoopTurn()
    assert not turn.used_up

    turn.taken_since(time.perf_counter() - 2 * MOST_SECONDS)
    assert turn.used_up

    await asyncio.sleep(0)
    assert not turn.used_up


@pytest.mark.anyio
async def test_who_comes_to_a_turn_that_is_used_up_begins_in_the_next() -> None:
    turn, order = LoopTurn(), list[str]()
    turn.taken_since(time.perf_counter() - 2 * MOST_SECONDS)
    asyncio.get_running_loop().call_soon(order.append, "others")

    await turn.begin()

    assert order == ["others"]


@pytest.mark.anyio
async def test_a_turn_with_time_left_is_entered_at_once() -> None:
    turn, order = LoopTurn(), list[str]()
    asyncio.get_running_loop().call_soon(order.append, "others")

    await turn.begin()

    assert order == []


def test_a_turn_of_a_loop_that_was_closed_is_over() -> None:
    turn = LoopTurn()

    async def take() -> None:
        turn.taken_since(time.perf_counter() - 2 * MOST_SECONDS)
        asyncio.get_running_loop().stop()

    loop = asyncio.new_event_loop()
    task = loop.create_task(take())
    loop.run_forever()
    assert task.done()
    loop.close()

    async def look() -> bool:
        return turn.used_up

    assert not asyncio.run(look())
