"""The HTTP server on a real socket: its routes, its guard, its end."""

import socket
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import replace

import anyio
import httpx2
import pytest

from codespace.adapters.client import connect_http
from codespace.adapters.http_app import listen, serve_http
from codespace.adapters.http_guard import access_for
from codespace.domain.limits import Limits
from doubles.echo_server import echo_server

TOKEN = "0123456789abcdef"
SMALL = replace(Limits(), http_body_max_bytes=2_000)


@asynccontextmanager
async def served(*, host: str = "127.0.0.1", token: str | None = None) -> AsyncGenerator[str]:
    """Serve one tool; yield the URL."""
    listener = listen(host, 0)
    name = f"[{host}]" if ":" in host else host
    url = f"http://{name}:{listener.getsockname()[1]}"
    async with serve_http(echo_server(), listener, access_for(host, (), token), SMALL):
        yield url


async def status(url: str, method: str = "POST", body: bytes = b"{}", **headers: str) -> int:
    sent = {"Content-Type": "application/json", "Accept": "application/json, text/event-stream"}
    async with httpx2.AsyncClient(timeout=10, trust_env=False) as client:
        answer = await client.request(method, url, content=body, headers={**sent, **headers})
    return answer.status_code


@pytest.mark.anyio
@pytest.mark.parametrize("era", ["2025-11-25", "2026-07-28"])
async def test_tools_are_called_over_http(era: str) -> None:
    async with served() as url, connect_http(f"{url}/mcp", era=era) as connection:  # pyright: ignore[reportArgumentType] -- a revision's name is a literal there
        assert (await connection.call("say", {"text": "hé"})).body == {"text": "hé"}


@pytest.mark.anyio
async def test_there_is_nothing_beside_the_one_route() -> None:
    async with served() as url:
        for path in ("/", "/mcp/x", "/health", "/.well-known/oauth-protected-resource"):
            assert await status(f"{url}{path}") == 404


@pytest.mark.anyio
@pytest.mark.parametrize("path", ["/mcp", "/", "/no/such/route"])
async def test_every_route_is_behind_the_guard(path: str) -> None:
    async with served(token=TOKEN) as url:
        assert await status(f"{url}{path}") == 401
        assert await status(f"{url}{path}", Authorization="Bearer wrong-wrong-wrong") == 401
        assert await status(f"{url}{path}", Host="evil.example") == 421
        assert await status(f"{url}{path}", Origin="http://evil.example") == 403
        assert await status(f"{url}{path}", Authorization=f"Bearer {TOKEN}") in (400, 404)


@pytest.mark.anyio
async def test_the_token_opens_the_way() -> None:
    async with served(token=TOKEN) as url, connect_http(f"{url}/mcp", token=TOKEN) as connection:
        assert not (await connection.call("say", {"text": "x"})).is_error


@pytest.mark.anyio
async def test_a_body_above_the_limit_is_refused() -> None:
    async with served() as url:
        assert await status(f"{url}/mcp", body=b"x" * 2_001) == 413


@pytest.mark.anyio
async def test_the_server_does_not_name_its_software() -> None:
    async with served() as url, httpx2.AsyncClient(timeout=10, trust_env=False) as client:
        assert "server" not in (await client.get(url)).headers


@pytest.mark.anyio
async def test_it_ends_with_its_block_though_a_session_is_open() -> None:
    ready, ended = anyio.Event(), anyio.Event()

    async def client(url: str) -> None:
        with anyio.CancelScope(shield=True), anyio.move_on_after(10):
            try:
                async with connect_http(f"{url}/mcp") as connection:
                    await connection.call("say", {"text": "x"})
                    ready.set()
                    await ended.wait()
            except httpx2.HTTPError:
                pass  # the server may be gone before the session is said good-bye to

    listener = listen("127.0.0.1", 0)
    address = listener.getsockname()
    async with anyio.create_task_group() as tasks:
        async with serve_http(echo_server(), listener, access_for("", (), None), SMALL):
            tasks.start_soon(client, f"http://127.0.0.1:{address[1]}")
            await ready.wait()
        ended.set()
    with socket.socket() as again:
        assert again.connect_ex(address) != 0


@pytest.mark.anyio
async def test_a_block_that_fails_ends_the_server_too() -> None:
    listener = listen("127.0.0.1", 0)
    with pytest.raises(ExceptionGroup) as caught:
        async with serve_http(echo_server(), listener, access_for("", (), None), SMALL):
            raise KeyError("mine")
    assert caught.group_contains(KeyError)
    assert listener.fileno() == -1


def test_a_port_that_is_taken_is_an_error_at_once() -> None:
    with listen("127.0.0.1", 0) as first:
        port = first.getsockname()[1]
        with pytest.raises(OSError, match="in use"):
            listen("127.0.0.1", port)


def test_an_address_of_somebody_else_is_an_error_at_once() -> None:
    with pytest.raises(OSError, match="assign"):
        listen("192.0.2.1", 0)


@pytest.mark.parametrize("host", ["::1", "[::1]"])
def test_an_ipv6_address_is_listened_on_with_or_without_brackets(host: str) -> None:
    with listen(host, 0) as listener:
        assert listener.family is socket.AF_INET6
        assert listener.getsockname()[0] == "::1"


def test_a_name_is_listened_on() -> None:
    with listen("localhost", 0) as listener:
        assert listener.getsockname()[0] == "127.0.0.1"
