"""One request to an ASGI application, without a socket."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import cast

from starlette.types import ASGIApp, Message, Scope

from codespace.domain.tool import Json


@dataclass(frozen=True, slots=True)
class Answered:
    """What came back."""

    status: int
    headers: Mapping[str, str]
    content: bytes

    @property
    def body(self) -> Json:
        """The JSON object."""
        return cast("Json", json.loads(self.content))


async def ask(
    app: ASGIApp,
    method: str,
    target: str,
    body: object = None,
    *,
    pieces: Sequence[bytes] | None = None,
    headers: Sequence[tuple[bytes, bytes]] = ((b"content-type", b"application/json"),),
    path: str | None = None,
) -> Answered:
    """Send a request; `body` is sent as JSON, or `pieces` as they are.

    `path` is the address without its escapes, where `target` has some.
    """
    sent = list(pieces) if pieces is not None else [b"" if body is None else _json(body)]
    address, _, query = target.partition("?")
    scope: Scope = {
        "type": "http",
        "method": method,
        "path": path or address,
        "raw_path": address.encode(),
        "query_string": query.encode("latin-1"),
        "headers": list(headers),
    }
    messages: list[Message] = [
        {"type": "http.request", "body": piece, "more_body": number < len(sent)}
        for number, piece in enumerate(sent, 1)
    ]
    told = list[Message]()

    async def receive() -> Message:
        return messages.pop(0) if messages else {"type": "http.disconnect"}

    async def send(message: Message) -> None:
        told.append(message)

    await app(scope, receive, send)
    given = cast("Sequence[tuple[bytes, bytes]]", told[0]["headers"])
    return Answered(
        cast("int", told[0]["status"]),
        {name.decode(): value.decode() for name, value in given},
        b"".join(cast("bytes", message["body"]) for message in told[1:]),
    )


def _json(value: object) -> bytes:
    return json.dumps(value).encode()
