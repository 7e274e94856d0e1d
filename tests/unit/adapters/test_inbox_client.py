"""The inbox's client against real servers: answers, refusals, and what is no inbox."""

import socket
from collections.abc import AsyncIterator

import pytest

from codespace.adapters.client import TurnedAwayError
from codespace.adapters.http_app import listen, serve_http
from codespace.adapters.http_guard import access_for
from codespace.adapters.inbox_client import NoInboxError, ask_inbox, base_of
from codespace.adapters.inbox_http import InboxApp
from codespace.adapters.inbox_models import NewIntent
from codespace.adapters.inbox_routes import Asked, Route
from codespace.domain.errors import CodeSpaceError, ErrorCode
from codespace.domain.limits import Limits
from codespace.domain.tool import Json
from doubles.echo_server import echo_server

pytestmark = pytest.mark.anyio
TOKEN = "0123456789abcdef"


async def listed(asked: Asked) -> Json:
    return {"asked": asked.query}


async def refused(asked: Asked) -> Json:
    raise CodeSpaceError(ErrorCode.WORK_CLOSED, "Closed.")


@pytest.fixture
async def url() -> AsyncIterator[str]:
    app = InboxApp(
        [
            Route("GET", "/inbox/works", "List", listed, query="workspace_id"),
            Route("POST", "/inbox/works", "Add", refused, takes=NewIntent),
        ],
        version="9",
        body_max_bytes=1_000,
    )
    listener = listen("127.0.0.1", 0)
    access, port = access_for("127.0.0.1", (), TOKEN), listener.getsockname()[1]
    async with serve_http(echo_server(), listener, access, Limits(), inbox=app):
        yield f"http://127.0.0.1:{port}/mcp"


@pytest.mark.parametrize("url", ["http://h:1/mcp", "http://h:1/", "http://h:1", "http://h:1/mcp/"])
def test_an_inbox_is_beside_the_tools(url: str) -> None:
    assert base_of(url) == "http://h:1"


async def test_an_answer_is_good_or_an_error(url: str) -> None:
    good = await ask_inbox(url, "GET", "works", query={"workspace_id": "a&b"}, token=TOKEN)
    assert (good.is_error, good.body) == (False, {"asked": "a&b"})
    bad = await ask_inbox(url, "POST", "works", body={"body": "b"}, token=TOKEN)
    assert (bad.is_error, bad.body["code"]) == (True, "WORK_CLOSED")


@pytest.mark.parametrize("token", [None, "wrong-wrong-wrong"])
async def test_without_the_token_there_is_no_way_in(url: str, token: str | None) -> None:
    with pytest.raises(TurnedAwayError) as caught:
        await ask_inbox(url, "GET", "works", token=token)
    assert caught.value.wants_token


async def test_what_is_no_inbox_is_said_to_be_none(url: str) -> None:
    with pytest.raises(NoInboxError, match="404"):
        await ask_inbox(f"{url}/x", "GET", "works", token=TOKEN)
    with pytest.raises(NoInboxError):
        await ask_inbox("no address", "GET", "works")
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        with pytest.raises(NoInboxError):
            await ask_inbox(f"http://127.0.0.1:{taken.getsockname()[1]}", "GET", "works")
