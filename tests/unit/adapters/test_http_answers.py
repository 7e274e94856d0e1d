"""An answer that is complete stands; a request without an id is refused, over real HTTP."""

import json

import anyio
import httpx2
import pytest
from starlette.types import Message, Receive, Scope, Send

from codespace.adapters.http_answers import OneAnswer
from codespace.adapters.http_app import listen, serve_http
from codespace.adapters.http_guard import access_for
from codespace.domain.limits import Limits
from doubles.echo_server import echo_server

START: Message = {"type": "http.response.start", "status": 202, "headers": []}
PART: Message = {"type": "http.response.body", "body": b"a", "more_body": True}
END: Message = {"type": "http.response.body", "body": b"b"}
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


async def answers_of(messages: list[Message], error: Exception | None) -> list[Message]:
    """Return what leaves of the messages of an application that raises after them."""
    left: list[Message] = []

    async def application(_scope: Scope, _receive: Receive, send: Send) -> None:
        for message in messages:
            await send(message)
        if error is not None:
            raise error

    async def send(message: Message) -> None:
        left.append(message)

    async def receive() -> Message:
        return {"type": "http.disconnect"}

    await OneAnswer(application)({"type": "http"}, receive, send)
    return left


@pytest.mark.anyio
async def test_a_second_answer_does_not_leave() -> None:
    assert await answers_of([START, PART, END, START, END], None) == [START, PART, END]


@pytest.mark.anyio
@pytest.mark.parametrize("error", [anyio.ClosedResourceError(), anyio.BrokenResourceError()])
async def test_a_session_that_ended_after_the_answer_raises_nothing(error: Exception) -> None:
    assert await answers_of([START, END], error) == [START, END]


@pytest.mark.anyio
async def test_a_session_that_ended_before_the_answer_raises() -> None:
    with pytest.raises(anyio.ClosedResourceError):
        await answers_of([START, PART], anyio.ClosedResourceError())


@pytest.mark.anyio
async def test_any_other_error_raises() -> None:
    with pytest.raises(KeyError):
        await answers_of([START, END], KeyError())


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
