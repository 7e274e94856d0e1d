"""Errors as their block raised them, where a task group would wrap them in a group."""

from collections.abc import AsyncGenerator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import TypeVar, cast

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
    except ExceptionGroup as group:
        raise _alone(group) from None
    if raised is not None:
        raise raised


def _alone(error: Exception) -> Exception:
    parts = cast("tuple[Exception, ...]", getattr(error, "exceptions", ()))
    return _alone(parts[0]) if len(parts) == 1 else error
