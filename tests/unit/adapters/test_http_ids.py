"""Ids that JSON-RPC does not have, over real HTTP in both protocol revisions."""

import json

import httpx2
import pytest

from codespace.adapters.http_app import listen, serve_http
from codespace.adapters.http_guard import access_for
from codespace.domain.limits import Limits
from doubles.echo_server import echo_server

HEADERS = {
    "Content-Type": "application/json",
    "Accept": "application/json, text/event-stream",
    "MCP-Protocol-Version": "2025-11-25",
}
OPENING = {
    "jsonrpc": "2.0",
    "id": 1,
    "method": "initialize",
    "params": {
        "protocolVersion": "2025-11-25",
        "capabilities": {},
        "clientInfo": {"name": "x", "version": "1"},
    },
}


async def answers_to(*messages: object) -> list[httpx2.Response]:
    """Return the answers to messages of one session."""
    listener = listen("127.0.0.1", 0)
    url = f"http://127.0.0.1:{listener.getsockname()[1]}/mcp"
    async with (
        serve_http(echo_server(), listener, access_for("", (), None), Limits()),
        httpx2.AsyncClient(timeout=10, trust_env=False, headers=HEADERS) as client,
    ):
        opened = await client.post(url, content=json.dumps(OPENING))
        session = {"Mcp-Session-Id": opened.headers["mcp-session-id"]}
        return [
            await client.post(url, content=json.dumps(message), headers=session)
            for message in messages
        ]


@pytest.mark.anyio
@pytest.mark.parametrize("number", [1.5, True, None, {}, [], [1]])
async def test_a_request_whose_id_is_none_is_refused(number: object) -> None:
    request = {"jsonrpc": "2.0", "id": number, "method": "tools/list"}
    (answer,) = await answers_to(request)
    assert answer.status_code == 400
    assert answer.json()["error"]["code"] == -32600
    assert answer.json()["id"] is None


@pytest.mark.anyio
@pytest.mark.parametrize("number", [0, -7, "", "a"])
async def test_a_request_with_an_id_is_answered(number: object) -> None:
    (answer,) = await answers_to({"jsonrpc": "2.0", "id": number, "method": "tools/list"})
    assert answer.status_code == 200
    data = answer.text.rpartition("data: ")[2]
    assert json.loads(data)["id"] == number


@pytest.mark.anyio
async def test_what_has_no_id_or_no_method_is_accepted() -> None:
    note = {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 9}}
    result: dict[str, object] = {"jsonrpc": "2.0", "id": 9, "result": {}}
    assert [answer.status_code for answer in await answers_to(note, result)] == [202, 202]
