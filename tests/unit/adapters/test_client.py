"""The small client: what it hands over, and how it fails."""

import sys
from collections.abc import Sequence
from pathlib import Path

import anyio
import httpx2
import mcp_types as types
import pytest
from mcp import Client
from mcp.server import Server, ServerRequestContext

from codespace.adapters.client import (
    FAILURES,
    Connection,
    Era,
    TurnedAwayError,
    _refusal,  # pyright: ignore[reportPrivateUsage] -- what foreign servers may answer
    connect_http,
    connect_stdio,
)
from codespace.adapters.http_app import listen, serve_http
from codespace.adapters.http_guard import access_for
from codespace.domain.limits import Limits
from doubles.echo_server import echo_server

pytestmark = pytest.mark.anyio


async def test_an_answer_is_its_object_and_whether_it_is_an_error() -> None:
    async with Client(echo_server(), mode="legacy", cache=None) as client:
        connection = Connection(client)
        good = await connection.call("say", {"text": "x"})
        bad = await connection.call("say", {"text": 1})
        bare = await connection.call("say")
    assert (good.body, good.is_error) == ({"text": "x"}, False)
    assert (bad.body["code"], bad.is_error) == ("INVALID_ARGUMENT", True)
    assert bare.body == {"text": ""}


async def test_the_schemas_are_those_of_the_listed_tools() -> None:
    async with Client(echo_server(), mode="legacy", cache=None) as client:
        schemas = await Connection(client).input_schemas()
    assert list(schemas) == ["say"]
    assert schemas["say"]["type"] == "object"


async def test_an_answer_without_an_object_is_no_answer_of_ours() -> None:
    async def answer(
        context: ServerRequestContext[object, object], params: types.CallToolRequestParams
    ) -> types.CallToolResult:
        return types.CallToolResult(content=[types.TextContent(type="text", text="only text")])

    async def tools(
        context: ServerRequestContext[object, object], params: types.PaginatedRequestParams | None
    ) -> types.ListToolsResult:
        return types.ListToolsResult(
            tools=[types.Tool(name="say", input_schema={"type": "object"})]
        )

    other = Server("other", on_call_tool=answer, on_list_tools=tools)
    async with Client(other, mode="legacy", cache=None) as client:
        with pytest.raises(RuntimeError, match="without structured content"):
            await Connection(client).call("say")


async def test_a_server_that_is_not_there_is_a_failure_by_its_own_type() -> None:
    with listen("127.0.0.1", 0) as taken:
        port = taken.getsockname()[1]
    with pytest.raises(httpx2.ConnectError) as caught:
        async with connect_http(f"http://127.0.0.1:{port}/mcp"):
            pass
    assert isinstance(caught.value, FAILURES)


@pytest.mark.parametrize("era", ["2025-11-25", "2026-07-28"])
@pytest.mark.parametrize("token", [None, "another-token-0123"])
async def test_a_guards_own_sentence_is_what_is_raised(era: Era, token: str | None) -> None:
    listener = listen("0.0.0.0", 0)
    url = f"http://127.0.0.1:{listener.getsockname()[1]}/mcp"
    access = access_for("127.0.0.1", (), "0123456789abcdef")
    async with serve_http(echo_server(), listener, access, Limits()):
        with pytest.raises(TurnedAwayError, match="asks for its bearer token") as caught:
            async with connect_http(url, era=era, token=token) as connection:
                await connection.call("say", {"text": "x"})
        assert caught.value.wants_token
        with pytest.raises(TurnedAwayError, match="Host header does not name") as caught:
            async with connect_http(url.replace("127.0.0.1", "127.0.0.2"), era=era) as connection:
                await connection.call("say", {"text": "x"})
        assert not caught.value.wants_token


@pytest.mark.parametrize("body", [b"", b"no json", b"[]", b"{}", b'{"text": "x"}'])
async def test_a_refusal_without_a_sentence_is_told_by_its_status(body: bytes) -> None:
    assert "HTTP status 403" in str(_refusal(403, body))


@pytest.mark.parametrize("url", ["nonsense", "ftp://localhost/mcp", "http://"])
async def test_an_address_that_is_none_is_a_failure(url: str) -> None:
    with pytest.raises(FAILURES):
        async with connect_http(url):
            pass


async def test_what_is_raised_while_connected_keeps_its_type(tmp_path: Path) -> None:
    with pytest.raises(KeyError, match="mine"):
        async with connect_stdio(_serving(tmp_path), environment={}):
            raise KeyError("mine")


@pytest.mark.parametrize("era", ["2025-11-25", "2026-07-28"])
async def test_a_gateway_is_started_and_talked_to_over_its_pipes(
    tmp_path: Path, era: Era, capfd: pytest.CaptureFixture[str]
) -> None:
    async with connect_stdio(_serving(tmp_path), era=era, environment={}) as connection:
        answer = await connection.call("workspace_info", {"workspace_id": "default"})
    assert answer.body["transports"] == ["stdio"]
    assert capfd.readouterr().out == ""


async def test_a_command_that_is_no_gateway_is_a_failure_and_does_not_hang() -> None:
    with anyio.fail_after(30), pytest.raises(Exception) as caught:  # noqa: PT011 -- which one is the SDK's
        async with connect_stdio([sys.executable, "-c", "print('hello')"]):
            pass
    assert not isinstance(caught.value, TimeoutError)


def _serving(root: Path) -> Sequence[str]:
    return [sys.executable, "-m", "codespace", "serve", str(root)]
