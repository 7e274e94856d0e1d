"""What is certainly no async function is known without a call."""

import functools
from collections.abc import Awaitable, Callable, Coroutine

import pytest

from codespace.codemode.awaited import may_be_awaited


async def plain(arguments: object) -> object:
    return arguments


def blocking(arguments: object) -> object:
    return arguments


def promising(arguments: object) -> Awaitable[object]:
    return plain(arguments)


def promising_in_words(arguments: object) -> "Coroutine[object, object, object]":
    return plain(arguments)


def wrapped(fn: Callable[[object], Awaitable[object]]) -> Callable[[object], object]:
    @functools.wraps(fn)
    def inner(arguments: object) -> object:
        return fn(arguments)

    return inner


CONSTANT: Callable[[object], object] = lambda arguments: {"given": arguments}  # noqa: E731 -- as below
UNNAMED: Callable[[object], object] = lambda arguments: plain({"given": arguments})  # noqa: E731 -- a lambda is what is tested


class Tools:
    async def method(self, arguments: object) -> object:
        return arguments

    def blocking(self, arguments: object) -> object:
        return arguments

    async def __call__(self, arguments: object) -> object:
        return arguments


class Blocking:
    def __call__(self, arguments: object) -> object:
        return arguments


@pytest.mark.parametrize(
    "fn",
    [
        plain,
        promising,
        promising_in_words,
        wrapped(plain),
        Tools().method,
        Tools(),
        functools.partial(plain),
        functools.partial(functools.partial(Tools())),
        UNNAMED,
    ],
)
def test_what_gives_an_awaitable_is_taken(fn: object) -> None:
    assert may_be_awaited(fn)


@pytest.mark.parametrize(
    "fn",
    [
        *(blocking, Tools().blocking, Blocking(), functools.partial(blocking)),
        *(CONSTANT, Tools, "text", None),
    ],
)
def test_what_cannot_give_one_is_not(fn: object) -> None:
    assert not may_be_awaited(fn)
