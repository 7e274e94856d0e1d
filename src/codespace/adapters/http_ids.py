"""A request whose id is none is refused over HTTP, too.

The SDK's types let such an id go, and what is left is a notification, which it accepts with 202 and
never answers: a client would wait for ever. Only what is accepted so is looked at again.
"""

import json
from typing import cast

from pydantic_core import from_json
from starlette.types import ASGIApp, Message, Receive, Scope, Send

ACCEPTED = 202
INVALID_REQUEST = -32600
_REFUSAL = json.dumps(
    {
        "jsonrpc": "2.0",
        "id": None,
        "error": {
            "code": INVALID_REQUEST,
            "message": "The id of a request is text or a whole number.",
        },
    }
).encode()


class WholeIds:
    """ASGI middleware that answers a request without a usable id, which was only accepted."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Run the application; refuse what it accepts as a notification and is none."""
        body: list[bytes] = []
        refused = False

        async def heard() -> Message:
            message = await receive()
            body.append(message.get("body", b""))
            return message

        async def answer(message: Message) -> None:
            nonlocal refused
            if message["type"] == "http.response.start":
                refused = message["status"] == ACCEPTED and _is_request(b"".join(body))
                body.clear()
                if refused:
                    await _refuse(send)
            if not refused:
                await send(message)

        await self._app(scope, heard, answer)


def _is_request(body: bytes) -> bool:
    try:
        content: object = from_json(body)
    except ValueError:
        return False
    if not isinstance(content, dict):
        return False
    return {"id", "method"} <= cast("dict[str, object]", content).keys()


async def _refuse(send: Send) -> None:
    headers = [
        (b"content-type", b"application/json"),
        (b"content-length", str(len(_REFUSAL)).encode()),
    ]
    await send({"type": "http.response.start", "status": 400, "headers": headers})
    await send({"type": "http.response.body", "body": _REFUSAL})
