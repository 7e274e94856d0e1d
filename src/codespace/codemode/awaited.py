"""Whether calling something gives an awaitable, as far as that can be known without calling it."""

import inspect
from functools import partial
from opcode import opmap
from types import FunctionType, MethodType

_CALLS = frozenset(number for name, number in opmap.items() if name.startswith("CALL"))
_AWAITABLE = ("Awaitable", "Coroutine", "Future", "Task")


def may_be_awaited(fn: object) -> bool:
    """Return False for what is certainly no async function.

    A plain function may still return an awaitable: one that says so, and a lambda that calls
    something, which cannot say anything, are taken at their word.
    """
    while isinstance(fn, partial):
        fn = fn.func
    if not callable(fn):
        return False
    if not isinstance(fn, FunctionType | MethodType):
        fn = type(fn).__call__ if not isinstance(fn, type) else fn
    if inspect.iscoroutinefunction(fn) or inspect.iscoroutinefunction(inspect.unwrap(fn)):
        return True
    if not isinstance(fn, FunctionType | MethodType):
        return not isinstance(fn, type)  # written in C: nobody knows
    promised = str(fn.__annotations__.get("return", ""))
    return _is_calling_lambda(fn) or any(word in promised for word in _AWAITABLE)


def _is_calling_lambda(fn: FunctionType | MethodType) -> bool:
    return fn.__name__ == "<lambda>" and not _CALLS.isdisjoint(fn.__code__.co_code[::2])
