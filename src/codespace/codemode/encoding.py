"""Results as JSON for the engine; a large one in pieces, so that others get their turn."""

import asyncio
from collections.abc import Iterator
from typing import cast

from codespace.codemode.checking import is_large
from codespace.codemode.json_text import encode
from codespace.codemode.tool import ToolError

PIECE = 2_000
"""Parts of a value that are encoded without a pause: less than a millisecond."""


async def encoded(value: object) -> bytes:
    """Return a result as JSON.

    Raises:
        ToolError: INVALID_RESULT: it is no JSON value.
    """
    try:
        if is_large(value, PIECE):
            return await asyncio.to_thread(lambda: b"".join(pieces(value, PIECE)))
        return encode(value)
    except (TypeError, ValueError, RecursionError) as error:
        raise ToolError(
            "INVALID_RESULT",
            f"The tool returned what JSON cannot hold ({type(error).__name__}).",
        ) from error


def pieces(value: object, most: int) -> Iterator[bytes]:
    """Yield the JSON of `value`; no more than `most` of its parts are encoded at a time.

    Between two pieces the interpreter may run another thread: the event loop's.
    """
    if not is_large(value, most):
        yield encode(value)
    elif isinstance(value, dict):
        yield b"{"
        yield from _members(list(cast("dict[object, object]", value).items()), most)
        yield b"}"
    else:
        yield b"["
        yield from _items(list(cast("list[object]", value)), most)
        yield b"]"


def _items(items: list[object], most: int) -> Iterator[bytes]:
    if len(items) == 1:
        yield from pieces(items[0], most)
    elif not is_large(items, most):
        yield encode(items)[1:-1]
    else:
        middle = len(items) // 2
        yield from _items(items[:middle], most)
        yield b","
        yield from _items(items[middle:], most)


def _members(members: list[tuple[object, object]], most: int) -> Iterator[bytes]:
    if len(members) == 1:
        key, value = members[0]
        yield encode({key: None})[1 : -len(b"null}")]
        yield from pieces(value, most)
    elif not is_large([value for _, value in members], most):
        yield encode(dict(members))[1:-1]
    else:
        middle = len(members) // 2
        yield from _members(members[:middle], most)
        yield b","
        yield from _members(members[middle:], most)
