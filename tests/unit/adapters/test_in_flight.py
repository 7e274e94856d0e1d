"""Which calls are being answered."""

import anyio
import pytest

from codespace.adapters.in_flight import InFlight

pytestmark = pytest.mark.anyio


async def test_with_no_call_it_is_drained_at_once() -> None:
    assert await InFlight().drained(0)


async def test_it_is_drained_when_the_last_of_several_calls_ends() -> None:
    in_flight, first, second = InFlight(), anyio.Event(), anyio.Event()
    drained: list[bool] = []

    async def call(end: anyio.Event) -> None:
        with in_flight.entered():
            await end.wait()

    async def drain() -> None:
        drained.append(await in_flight.drained(30))

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(call, first)
        tasks.start_soon(call, second)
        await anyio.wait_all_tasks_blocked()
        tasks.start_soon(drain)
        first.set()
        await anyio.wait_all_tasks_blocked()
        assert drained == []
        second.set()
    assert drained == [True]


async def test_patience_ends_and_says_that_a_call_still_runs() -> None:
    in_flight = InFlight()
    with in_flight.entered():
        assert not await in_flight.drained(0.01)
    assert await in_flight.drained(0)


async def test_a_call_that_fails_is_no_longer_counted() -> None:
    in_flight = InFlight()
    with pytest.raises(ZeroDivisionError), in_flight.entered():
        raise ZeroDivisionError
    assert await in_flight.drained(0)


async def test_it_can_be_busy_again_after_it_was_idle() -> None:
    in_flight = InFlight()
    for _ in range(2):
        with in_flight.entered():
            assert not await in_flight.drained(0)
        assert await in_flight.drained(0)


async def test_it_admits_calls_until_it_is_closed() -> None:
    in_flight = InFlight()
    assert in_flight.open
    in_flight.close()
    assert not in_flight.open
