"""Arguments and results against the schemas of one tool, without holding up the event loop."""

import asyncio
from collections.abc import Sequence
from functools import cached_property
from typing import Protocol

from codespace.codemode.misfit import Misfit
from codespace.codemode.quick_check import Check, quick_check

LARGE = 300
"""A value with more parts is judged on a worker thread."""
LARGE_FOR_QUICK = 2_000
"""The same for the fast yes, which takes less than a millisecond for so many."""


CHARS_A_PART = 256
TEXT_CHARS = 4 * 1_048_576
"""A text that is no part of a value goes into the engine as it is: that is a copy, no more."""


class Judge(Protocol):
    """Tells where a value does not fit."""

    def misfits(self, value: object) -> list[Misfit]:
        """Return the first places."""
        ...

    def misfits_at_once(self, value: object) -> list[Misfit] | None:
        """Return the same; None when that would hold up others."""
        ...


class Checker:
    """One schema: a fast yes where that is possible, else the judgement of jsonschema."""

    def __init__(self, schema: object) -> None:
        self._schema = schema
        self._loaded = False

    @cached_property
    def accepts(self) -> Check:
        """Says whether a value plainly fits; a no is not final."""
        return quick_check(self._schema) or _undecided

    async def accepts_any(self, value: object) -> bool:
        """Return the same for a value of any size; a large one is looked at on a worker thread."""
        if is_large(value, LARGE_FOR_QUICK):
            return await asyncio.to_thread(self.accepts, value)
        return self.accepts(value)

    async def misfits(self, value: object) -> Sequence[Misfit]:
        """Return the first places where `value` does not fit."""
        if self._loaded and not is_large(value):
            found = self._judge.misfits_at_once(value)
            if found is not None:
                return found
        return await asyncio.to_thread(self._judged, value)

    def _judged(self, value: object) -> list[Misfit]:
        found = self._judge.misfits(value)
        self._loaded = True
        return found

    @cached_property
    def _judge(self) -> Judge:
        from codespace.codemode.schema_check import SchemaCheck  # noqa: PLC0415 -- most runs never need it, and its import costs more than a run

        return SchemaCheck(self._schema)


def _undecided(value: object) -> bool:
    return False


def is_large(value: object, most: int = LARGE) -> bool:
    """Return whether a JSON value has more than `most` parts, looking at no more of them.

    A long string counts as many.
    """
    if isinstance(value, str):
        return len(value) > TEXT_CHARS
    # The fast answer for a small object: it is asked of every call's arguments and result.
    if isinstance(value, dict) and _NUMBERS.issuperset(map(type, value.values())):  # pyright: ignore[reportUnknownArgumentType, reportUnknownMemberType] -- JSON
        return len(value) >= most  # pyright: ignore[reportUnknownArgumentType] -- JSON
    left, level = most - 1, _holders([value])
    while level:
        parts: list[object] = []
        for each in level:
            left -= len(each)
            if left < 0:
                return True
            parts += each.values() if isinstance(each, dict) else each
        kinds = set(map(type, parts))
        if str in kinds:
            left -= sum([len(part) for part in parts if isinstance(part, str)]) // CHARS_A_PART
        level = [] if kinds <= _LEAVES else _holders(parts)
    return left < 0


_NUMBERS = frozenset((int, float, bool, type(None)))
_LEAVES = _NUMBERS | {str}
_HOLDERS = (dict, list, tuple)
_Holder = dict[object, object] | list[object]


def _holders(parts: list[object]) -> list[_Holder]:
    return [part for part in parts if isinstance(part, _HOLDERS)]  # pyright: ignore[reportReturnType, reportUnknownVariableType] -- JSON
