"""A large value as JSON, piece by piece on a worker thread.

Between two pieces another thread has its turn: the event loop's.
"""

import asyncio
import time
from collections.abc import Callable, Iterator
from itertools import islice
from typing import cast

from codespace.codemode.checking import is_large
from codespace.codemode.json_text import text_of_json, utf8
from codespace.codemode.tool import ToolError

PIECE = 2_000
"""The weight of what is encoded without a pause: it takes less than a millisecond."""
HELD_SECONDS = 0.0005
"""Then the thread lets others run, between two pieces."""
PAUSE_SECONDS = 0.00005
CHARS = 50
"""So many characters weigh as much as an object or a number."""

Dumps = Callable[[object], str]
"""Makes JSON text of a small value."""


async def encoded(value: object) -> bytes:
    """Return a tool's result as JSON.

    Raises:
        ToolError: INVALID_RESULT: it is no JSON value.
    """
    try:
        return await encoded_by(text_of_json, value)
    except (TypeError, ValueError, RecursionError) as error:
        raise ToolError(
            "INVALID_RESULT",
            f"The tool returned what JSON cannot hold ({type(error).__name__}).",
        ) from error


async def encoded_by(dumps: Dumps, value: object) -> bytes:
    """Return `value` as JSON, without holding up the event loop.

    Raises:
        TypeError, ValueError, RecursionError: it is no JSON value.
    """
    if weight(value) <= PIECE:
        return utf8(dumps(value))
    return await asyncio.to_thread(_joined, dumps, value)


def _joined(dumps: Dumps, value: object) -> bytes:
    done: list[bytes] = []
    since = time.perf_counter()
    for piece in pieces(value, dumps):
        done.append(utf8(piece))
        # The interpreter asks a thread to let others run after 5 ms only.
        if time.perf_counter() - since > HELD_SECONDS:
            time.sleep(PAUSE_SECONDS)
            since = time.perf_counter()
    return b"".join(done)


def weight(value: object) -> int:
    """Return how many parts a value has; it may be too little for one that is above `PIECE`."""
    total, waiting = 0, [value]
    while waiting and total <= PIECE:
        each = waiting.pop()
        total += 1
        if isinstance(each, str):
            total += len(each) // CHARS
        elif isinstance(each, dict):
            members = cast("dict[object, object]", each)
            total += len(members)
            waiting += islice(members.values(), PIECE)
        elif isinstance(each, list | tuple):
            waiting += islice(cast("list[object]", each), PIECE)
    return total


def pieces(value: object, dumps: Dumps) -> Iterator[str]:
    """Yield the JSON of `value`, at most `PIECE` of it at a time."""
    if weight(value) <= PIECE:
        yield dumps(value)
    elif isinstance(value, str):
        step = PIECE * CHARS
        yield '"'
        yield from (dumps(value[at : at + step])[1:-1] for at in range(0, len(value), step))
        yield '"'
    elif isinstance(value, dict):
        yield from _object(cast("dict[object, object]", value), dumps)
    else:
        yield from _array(cast("list[object]", value), dumps)


def _array(items: list[object], dumps: Dumps) -> Iterator[str]:
    yield "["
    yield from _items(items, dumps)
    yield "]"


def _items(items: list[object], dumps: Dumps) -> Iterator[str]:
    # Halves, until one is small: a look at each item by itself would take longer than its text.
    if len(items) == 1:
        yield from pieces(items[0], dumps)
    elif not is_large(items, PIECE):
        yield dumps(items)[1:-1]
    else:
        middle = len(items) // 2
        yield from _items(items[:middle], dumps)
        yield ","
        yield from _items(items[middle:], dumps)


def _object(members: dict[object, object], dumps: Dumps) -> Iterator[str]:
    batch: dict[object, object] = {}
    left, comma = PIECE, ""
    yield "{"
    for key, value in members.items():
        own = weight(key) + (1 if _is_light(value) else weight(value))
        if batch and own > left:
            yield comma + dumps(batch)[1:-1]
            batch, left, comma = {}, PIECE, ","
        if own > PIECE:
            yield comma + dumps({key: None})[1 : -len("null}")]
            yield from pieces(value, dumps)
            comma = ","
        else:
            batch[key] = value
            left -= own
    if batch:
        yield comma + dumps(batch)[1:-1]
    yield "}"


def _is_light(value: object) -> bool:
    return not value or isinstance(value, int | float)
