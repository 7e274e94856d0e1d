"""Connections that take their time, and too many of them, on real sockets."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

import anyio
import pytest
from anyio.abc import SocketStream

from codespace.adapters.client import connect_http
from codespace.adapters.http_app import listen, serve_http
from codespace.adapters.http_guard import access_for
from codespace.adapters.http_protocol import Patience
from codespace.domain.limits import Limits
from doubles.echo_server import echo_server

SHORT = Patience(connections=3, sessions=2, header_seconds=0.3, body_seconds=0.3)
HEADERS = b"POST /mcp HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
WHOLE = HEADERS + b"Content-Length: 2\r\n\r\n{}"


@asynccontextmanager
async def served(patience: Patience) -> AsyncGenerator[int]:
    """Serve one tool; yield the port."""
    listener = listen("127.0.0.1", 0)
    async with serve_http(echo_server(), listener, access_for("", (), None), Limits(), patience):
        yield listener.getsockname()[1]


@asynccontextmanager
async def connected(port: int) -> AsyncGenerator[SocketStream]:
    async with await anyio.connect_tcp("127.0.0.1", port) as stream:
        yield stream


async def heard(stream: SocketStream) -> bytes:
    """Return all that comes until the server closes, which it must do soon."""
    got = b""
    with anyio.fail_after(15):
        try:
            while True:
                got += await stream.receive()
        except (anyio.EndOfStream, anyio.BrokenResourceError):
            return got


async def sent(stream: SocketStream, data: bytes) -> bool:
    """Send, and say whether the server still takes it."""
    try:
        await stream.send(data)
    except anyio.BrokenResourceError:
        return False
    return True


@pytest.mark.anyio
@pytest.mark.parametrize(
    "said", [b"", b"POST /m", HEADERS, HEADERS + b"Content-Length: 9\r\n\r\n{"]
)
async def test_a_request_that_never_ends_is_closed(said: bytes) -> None:
    async with served(SHORT) as port, connected(port) as stream:
        if said:
            await stream.send(said)
        assert await heard(stream) == b""


@pytest.mark.anyio
async def test_a_trickle_wins_no_more_time() -> None:
    async with served(SHORT) as port, connected(port) as stream:
        with anyio.fail_after(15):
            while await sent(stream, b"X"):
                await anyio.sleep(0.02)


@pytest.mark.anyio
async def test_the_second_request_of_a_connection_has_a_limit_too() -> None:
    async with served(SHORT) as port, connected(port) as stream:
        await stream.send(WHOLE + HEADERS)
        answer = await heard(stream)
    assert answer.count(b"HTTP/1.1 ") == 1


@pytest.mark.anyio
async def test_a_connection_too_many_is_closed_unheard() -> None:
    roomy = Patience(connections=2)
    async with (
        served(roomy) as port,
        connected(port) as first,
        connected(port),
        connected(port) as third,
    ):
        assert await heard(third) == b""
        await first.send(WHOLE)
        assert (await first.receive()).startswith(b"HTTP/1.1 ")


@pytest.mark.anyio
async def test_a_session_too_many_is_refused_and_the_others_go_on() -> None:
    bounds = Patience(sessions=1)
    async with (
        served(bounds) as port,
        connect_http(f"http://127.0.0.1:{port}/mcp", era="2025-11-25") as connection,
        connected(port) as stream,
    ):
        body = (
            b'{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":'
            b'"2025-11-25","capabilities":{},"clientInfo":{"name":"x","version":"1"}}}'
        )
        accept = b"Accept: application/json, text/event-stream\r\nContent-Length: %d\r\n\r\n"
        await stream.send(HEADERS + accept % len(body) + body)
        assert (await stream.receive()).startswith(b"HTTP/1.1 503 ")
        assert not (await connection.call("say", {"text": "x"})).is_error


@pytest.mark.anyio
async def test_a_call_may_take_longer_than_its_request() -> None:
    async with (
        served(SHORT) as port,
        connect_http(f"http://127.0.0.1:{port}/mcp") as connection,
    ):
        await connection.call("say", {"text": "x"})
        await anyio.sleep(0.5)  # the point is that time passes
        assert not (await connection.call("say", {"text": "x"})).is_error
