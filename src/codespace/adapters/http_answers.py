"""Two answers that the SDK gives over HTTP and that must not leave as they are.

It accepts a message that is no request to its types with 202 and never answers it. A request whose
id is none (a fraction, null) is one of these, and its client would wait for ever: it is refused.

And it answers a notification first and hands it to the session then. If the client's DELETE came
between, it raises and answers once more, which is no fault of anybody's: the first answer stands.
"""

import json
from typing import cast

from anyio import BrokenResourceError, ClosedResourceError
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


class OneAnswer:
    """ASGI middleware: one complete answer to a request, and a refusal where there is no id."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Run the application; drop what it sends, or raises for a closed session, too late."""
        exchange = _Exchange(receive, send)
        try:
            await self._app(scope, exchange.receive, exchange.send)
        except (BrokenResourceError, ClosedResourceError):
            if not exchange.complete:
                raise


class _Exchange:
    """One request and its answer."""

    __slots__ = ("_body", "_receive", "_send", "complete")

    def __init__(self, receive: Receive, send: Send) -> None:
        self._receive = receive
        self._send = send
        self._body: list[bytes] = []
        self.complete = False

    async def receive(self) -> Message:
        message = await self._receive()
        if not self.complete:
            self._body.append(message.get("body", b""))
        return message

    async def send(self, message: Message) -> None:
        if self.complete:
            return
        if message["type"] == "http.response.body":
            self.complete = not message.get("more_body")
        else:
            self.complete = message["status"] == ACCEPTED and _is_request(b"".join(self._body))
            self._body.clear()
            if self.complete:
                await _refuse(self._send)
                return
        await self._send(message)


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
