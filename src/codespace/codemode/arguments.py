"""The global `args` of a run as JSON; a large value on a worker thread, piece by piece.

Between two pieces another thread has its turn: the event loop's.
"""

import asyncio
import json
import time
from collections.abc import Iterable, Iterator
from itertools import islice
from typing import cast

from codespace.codemode.protocol import utf8

PIECE = 2_000
"""The weight of what is encoded without a pause: it takes less than a millisecond."""
PAUSE_SECONDS = 0.00005
CHARS = 50
"""So many characters weigh as much as an object or a number."""


async def encoded_args(value: object) -> bytes:
    """Return `value` as JSON; nothing is an empty object.

    Raises:
        ValueError: it is no JSON value.
    """
    given = {} if value is None else value
    try:
        if weight(given) <= PIECE:
            return utf8(_dumps(given))
        return await asyncio.to_thread(_joined, given)
    except (TypeError, ValueError, RecursionError) as error:
        raise ValueError("args must be a JSON value") from error


def _joined(value: object) -> bytes:
    done: list[bytes] = []
    for piece in pieces(value):
        done.append(utf8(piece))
        # The interpreter asks a thread to let others run after 5 ms only.
        time.sleep(PAUSE_SECONDS)
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


def pieces(value: object) -> Iterator[str]:
    """Yield the JSON of `value`, at most `PIECE` of it at a time."""
    if weight(value) <= PIECE:
        yield _dumps(value)
    elif isinstance(value, str):
        step = PIECE * CHARS
        yield '"'
        yield from (_dumps(value[at : at + step])[1:-1] for at in range(0, len(value), step))
        yield '"'
    elif isinstance(value, dict):
        yield from _object(cast("dict[object, object]", value))
    else:
        yield from _array(cast("list[object]", value))


def _array(items: Iterable[object]) -> Iterator[str]:
    batch: list[object] = []
    left, comma = PIECE, ""
    yield "["
    for item in items:
        own = 1 if _is_light(item) else weight(item)
        if batch and own > left:
            yield comma + _dumps(batch)[1:-1]
            batch, left, comma = [], PIECE, ","
        if own > PIECE:
            yield comma
            yield from pieces(item)
            comma = ","
        else:
            batch.append(item)
            left -= own
    if batch:
        yield comma + _dumps(batch)[1:-1]
    yield "]"


def _object(members: dict[object, object]) -> Iterator[str]:
    batch: dict[object, object] = {}
    left, comma = PIECE, ""
    yield "{"
    for key, value in members.items():
        own = weight(key) + (1 if _is_light(value) else weight(value))
        if batch and own > left:
            yield comma + _dumps(batch)[1:-1]
            batch, left, comma = {}, PIECE, ","
        if own > PIECE:
            yield comma + _dumps({key: None})[1 : -len("null}")]
            yield from pieces(value)
            comma = ","
        else:
            batch[key] = value
            left -= own
    if batch:
        yield comma + _dumps(batch)[1:-1]
    yield "}"


def _is_light(value: object) -> bool:
    return not value or isinstance(value, int | float)


def _dumps(value: object) -> str:
    return json.dumps(value, ensure_ascii=False, allow_nan=False)
