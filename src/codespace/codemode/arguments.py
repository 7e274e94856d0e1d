"""The global `args` of a run as JSON."""

import json

from codespace.codemode.encoding import encoded_by


async def encoded_args(value: object) -> bytes:
    """Return `value` as JSON; nothing is an empty object.

    Raises:
        ValueError: it is no JSON value.
    """
    given: object = {} if value is None else value
    try:
        return await encoded_by(_strict, given)
    except (TypeError, ValueError, RecursionError) as error:
        raise ValueError("args must be a JSON value") from error


def _strict(value: object) -> str:
    return json.dumps(value, ensure_ascii=False, allow_nan=False)
