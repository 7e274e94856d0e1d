"""Errors as their block raised them, where a task group would wrap them in a group."""

from collections.abc import AsyncGenerator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import TypeVar

T = TypeVar("T")


@asynccontextmanager
async def ungrouped(context: AbstractAsyncContextManager[T]) -> AsyncGenerator[T]:
    """Enter a context that is made of task groups; a lone error leaves it without its group.

    What the block raises is raised again once the context has ended, so that callers can catch it
    by its type.
    """
    raised: Exception | None = None
    try:
        async with context as entered:
            try:
                yield entered
            except Exception as error:  # noqa: BLE001 -- raised again below
                raised = error
    except BaseExceptionGroup as group:
        raise _alone(group) from None
    if raised is not None:
        raise raised


def _alone(error: BaseException) -> BaseException:
    while isinstance(error, BaseExceptionGroup) and len(error.exceptions) == 1:
        error = error.exceptions[0]
    return error
