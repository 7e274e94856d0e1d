"""Arguments and results against the schemas of one tool, without holding up the event loop."""

import asyncio
from collections.abc import Collection, Sequence
from functools import cached_property
from typing import Protocol, cast

from codespace.codemode.misfit import Misfit
from codespace.codemode.quick_check import Check, quick_check

LARGE = 300
"""A value with more parts is judged on a worker thread."""
LARGE_FOR_QUICK = 2_000
"""The same for the fast yes, which takes less than a millisecond for so many."""


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

    def accepts(self, value: object) -> bool:
        """Return whether `value` plainly fits; a no is not final."""
        return self._quick is not None and self._quick(value)

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
    def _quick(self) -> Check | None:
        return quick_check(self._schema)

    @cached_property
    def _judge(self) -> Judge:
        from codespace.codemode.schema_check import SchemaCheck  # noqa: PLC0415 -- most runs never need it, and its import costs more than a run

        return SchemaCheck(self._schema)


def is_large(value: object, most: int = LARGE) -> bool:
    """Return whether a JSON value has more than `most` parts, looking at no more of them."""
    left = most - 1
    waiting = [value]
    while waiting:
        parts = _parts(waiting.pop())
        left -= len(parts)
        if left < 0:
            return True
        waiting += [part for part in parts if isinstance(part, _HOLDERS)]
    return False


_HOLDERS = (dict, list, tuple)


def _parts(value: object) -> Collection[object]:
    if isinstance(value, dict):
        return cast("dict[str, object]", value).values()
    return cast("Collection[object]", value) if isinstance(value, list | tuple) else ()
