"""A small client of the inbox's HTTP API, for the command line."""

import json
from collections.abc import Mapping
from typing import cast

import httpx2

from codespace.adapters.client import Answer, TurnedAwayError
from codespace.domain.tool import Json

SECONDS = 60
_TURNED_AWAY = (401, 403, 421)
_GOOD = 300


class NoInboxError(Exception):
    """Nobody answers there, or something that is no inbox. The message says which."""


def base_of(url: str) -> str:
    """Return where a gateway's inbox is, from the address at which it serves MCP or its root."""
    return url.rstrip("/").removesuffix("/mcp")


async def ask_inbox(
    url: str,
    method: str,
    path: str,
    *,
    body: Json | None = None,
    query: Mapping[str, str] | None = None,
    token: str | None = None,
) -> Answer:
    """Send one request below `/inbox/` and return the answer, good or an error.

    Raises:
        TurnedAwayError: the gateway's guard does not let this client in.
        NoInboxError: nobody answers, or not as an inbox.
    """
    headers = {} if token is None else {"Authorization": f"Bearer {token}"}
    address = f"{base_of(url)}/inbox/{path}"
    try:
        async with httpx2.AsyncClient(headers=headers, timeout=SECONDS, trust_env=False) as http:
            answer = await http.request(method, address, params=query, json=body)
    except (httpx2.HTTPError, httpx2.InvalidURL) as error:
        raise NoInboxError(str(error) or type(error).__name__) from error
    told = _object(answer.content)
    if told is None:
        raise NoInboxError(f"HTTP status {answer.status_code}, and no JSON object")
    if answer.status_code in _TURNED_AWAY and "details" not in told:
        raise TurnedAwayError(str(told.get("message", "")), wants_token=answer.status_code == 401)  # noqa: PLR2004 -- the status itself
    return Answer(told, answer.status_code >= _GOOD)


def _object(content: bytes) -> Json | None:
    try:
        found: object = json.loads(content)
    except ValueError:
        return None
    return cast("Json", found) if isinstance(found, dict) else None
