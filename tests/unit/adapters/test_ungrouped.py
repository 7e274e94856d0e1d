"""Errors come out of a block of task groups as they were raised in it."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

import anyio
import pytest

from codespace.adapters.ungrouped import ungrouped

pytestmark = pytest.mark.anyio


@asynccontextmanager
async def groups(*failures: Exception) -> AsyncGenerator[str]:
    """Two task groups, one in the other; each failure comes from a task of the inner one."""

    async def fail(failure: Exception) -> None:
        raise failure

    async with anyio.create_task_group(), anyio.create_task_group() as inner:
        for failure in failures:
            inner.start_soon(fail, failure)
        yield "entered"
        inner.cancel_scope.cancel()


async def test_a_block_that_ends_well_ends_well() -> None:
    async with ungrouped(groups()) as entered:
        assert entered == "entered"


async def test_what_the_block_raises_keeps_its_type() -> None:
    error = KeyError("mine")
    with pytest.raises(KeyError) as caught:
        async with ungrouped(groups()):
            raise error
    assert caught.value is error


async def test_a_lone_failure_of_the_context_loses_its_groups() -> None:
    with pytest.raises(OSError, match="refused"):
        async with ungrouped(groups(OSError("refused"))):
            await anyio.sleep_forever()


async def test_several_failures_stay_together() -> None:
    with pytest.raises(ExceptionGroup) as caught:
        async with ungrouped(groups(OSError("a"), ValueError("b"))):
            await anyio.sleep_forever()
    assert caught.group_contains(OSError)
    assert caught.group_contains(ValueError)


async def test_leaving_a_block_is_no_error() -> None:
    with anyio.move_on_after(0) as scope:
        async with ungrouped(groups()):
            await anyio.sleep_forever()
    assert scope.cancelled_caught
