"""The HTTP server: `/mcp` and the inbox behind the guard, and an orderly end."""

import contextlib
import socket
from collections.abc import AsyncGenerator, Callable, Generator
from contextlib import asynccontextmanager
from dataclasses import dataclass

import anyio
import uvicorn
from mcp.server import Server
from mcp.server.streamable_http_manager import StreamableHTTPASGIApp, StreamableHTTPSessionManager
from starlette.responses import PlainTextResponse
from starlette.types import ASGIApp, Receive, Scope, Send

from codespace.adapters.http_answers import OneAnswer
from codespace.adapters.http_guard import Access, Guard
from codespace.adapters.http_protocol import GRANTED, Patience, protocol_for
from codespace.domain.limits import Limits

MCP_PATH = "/mcp"
INBOX_PREFIX = "/inbox/"
STREAM_END_SECONDS = 3


class _Uvicorn(uvicorn.Server):
    """uvicorn without its own signal handling, which would end the process with a signal."""

    @contextlib.contextmanager
    def capture_signals(self) -> Generator[None]:
        """Leave the signals to the command line."""
        yield


@dataclass(frozen=True, slots=True)
class HttpServer:
    """A running server and where it listens."""

    host: str
    port: int
    stop: Callable[[], None]


def build_app(
    manager: StreamableHTTPSessionManager, access: Access, inbox: ASGIApp | None = None
) -> ASGIApp:
    """Return the ASGI application. Every route is inside the guard."""
    mcp = OneAnswer(StreamableHTTPASGIApp(manager))
    nothing = PlainTextResponse("Not Found", 404)

    async def route(scope: Scope, receive: Receive, send: Send) -> None:
        # A router with its middleware would be a twentieth of a call, for one path.
        if scope["path"] == MCP_PATH:
            await mcp(scope, receive, send)
        elif inbox is not None and scope["path"].startswith(INBOX_PREFIX):
            await inbox(scope, receive, send)
        else:
            await nothing(scope, receive, send)

    return Guard(route, access)


def listen(host: str, port: int) -> socket.socket:
    """Return a listening socket, so that a taken port is an error before anything starts.

    Raises:
        OSError: the address cannot be had.
    """
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    listener = socket.socket(family, socket.SOCK_STREAM)
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind((host.strip("[]"), port))
        listener.listen(128)
    except OSError:
        listener.close()
        raise
    listener.setblocking(False)  # noqa: FBT003 -- the standard library's own signature
    return listener


@asynccontextmanager
async def serve_http(
    server: Server,
    listener: socket.socket,
    access: Access,
    limits: Limits,
    patience: Patience = GRANTED,
    *,
    inbox: ASGIApp | None = None,
) -> AsyncGenerator[None]:
    """Serve on `listener` for as long as the block runs, and close it."""
    manager = StreamableHTTPSessionManager(
        server,
        max_request_body_size=limits.http_body_max_bytes,
        max_sessions=patience.sessions,
    )
    config = uvicorn.Config(
        build_app(manager, access, inbox),
        http=protocol_for(
            patience
        ),  # of h11: httptools keeps blanks behind header values, which the protocol refuses
        ws="none",
        lifespan="off",
        log_config=None,
        access_log=False,
        server_header=False,
        proxy_headers=False,
        timeout_graceful_shutdown=STREAM_END_SECONDS,
    )
    http, ended = _Uvicorn(config), anyio.Event()
    with listener:
        async with anyio.create_task_group() as tasks:
            async with manager.run():
                tasks.start_soon(_serve, http, listener, ended)
                yield
                await anyio.sleep(0.05)  # the last answers leave before their sessions end
            http.should_exit = True
            # A client that holds on to its stream must not keep the gateway from ending.
            with anyio.move_on_after(2 * STREAM_END_SECONDS):
                await ended.wait()
            tasks.cancel_scope.cancel()


async def _serve(http: uvicorn.Server, listener: socket.socket, ended: anyio.Event) -> None:
    await http.serve(sockets=[listener])
    ended.set()
