"""A tool's result on its way into the script: its size, its JSON, its promise kept or not."""

import asyncio
import json
from typing import NamedTuple

from codespace.codemode.checking import LARGE_FOR_QUICK, Checker, is_large
from codespace.codemode.encoding import encoded
from codespace.codemode.json_text import encode
from codespace.codemode.misfit import Misfit
from codespace.codemode.protocol import resolve, resolve_json
from codespace.codemode.tool import ToolError


class Ready(NamedTuple):
    """A result as a record for the VM, and where it breaks the tool's output schema."""

    record: bytes
    misfit: Misfit | None


def ready_at_once(
    call_no: int, result: object, *, checker: Checker | None, most: int
) -> bytes | None:
    """Return the record of a small result that plainly fits; None: `ready` has to look."""
    if is_large(result, LARGE_FOR_QUICK) or not (checker is None or checker.accepts(result)):
        return None
    if isinstance(result, str):
        return resolve(call_no, result) if len(result) <= most else None
    try:
        text = encode(result)
    except (TypeError, ValueError, RecursionError):
        return None
    return resolve_json(call_no, text) if len(text) <= most else None


async def ready(call_no: int, result: object, *, checker: Checker | None, most: int) -> Ready:
    """Prepare a result of at most `most` bytes of JSON.

    Raises:
        ToolError: LIMIT_EXCEEDED: it is larger; INVALID_RESULT: it is no JSON value.
    """
    if isinstance(result, str):
        _require_size(len(result), most)
        record = await asyncio.to_thread(resolve, call_no, result)
    else:
        text = await encoded(result)
        _require_size(len(text), most)
        record = resolve_json(call_no, text)
    if checker is None or await checker.accepts_any(result):
        return Ready(record, None)
    # What the script gets is judged: to JSON a tuple is an array.
    judged = await asyncio.to_thread(lambda: json.loads(encode(result)))
    misfits = await checker.misfits(judged)
    return Ready(record, misfits[0] if misfits else None)


def _require_size(size: int, most: int) -> None:
    if size > most:
        raise ToolError(
            "LIMIT_EXCEEDED",
            f"The result has {size} bytes, the limit of one result is {most}; ask for less.",
            {"limit": "result_bytes", "bytes": size, "max": most},
        )
