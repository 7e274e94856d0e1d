"""`codespace serve`: one gateway over stdio or HTTP, and its orderly end."""

import asyncio
import gc
import resource
import signal
import socket
import sys
from collections.abc import Callable
from typing import Annotated

import anyio
import uvloop
from cyclopts import Parameter

from codespace.adapters import mcp_server
from codespace.adapters.http_app import listen, serve_http
from codespace.adapters.http_guard import access_for
from codespace.adapters.in_flight import InFlight
from codespace.adapters.inbox_http import InboxApp
from codespace.adapters.inbox_routes import Inbox, approval_routes
from codespace.adapters.stdio import converse, stdio_streams
from codespace.bootstrap import VERSION, Gateway, open_gateway
from codespace.cli.flags import CommandFlags, Directory, Flags, ServerFlags, load_settings
from codespace.operator_files import others_can_read
from codespace.policy.addresses import is_loopback
from codespace.settings import Loaded, SettingsError

DRAIN_SECONDS = 3.0
OPEN_FILES = 8_192
SWITCH_SECONDS = 0.001
"""A thread that judges something large lets the event loop work after this time, not after five."""
COLLECTIONS = (2_000, 10, 10)
"""Short ones, and often: the start put them off."""
END_SIGNALS = (signal.SIGTERM, signal.SIGINT)


def serve(
    path: Directory = None,
    *,
    http: Annotated[bool, Parameter(help="Serve HTTP instead of stdio.", negative=())] = False,
    flags: Flags | None = None,
    commands: CommandFlags | None = None,
    server: ServerFlags | None = None,
) -> int:
    """Serve MCP until the client leaves (stdio) or a signal comes.

    PATH becomes the workspace `default`, with patches and commands permitted; without PATH and
    without a configuration it is the current directory.
    """
    loaded = load_settings(path, flags, commands, server)
    _warn_of_readable_secrets(loaded)
    _raise_open_files()
    # What the imports made is never garbage; to look at all of it would stop the loop for 50 ms.
    gc.freeze()
    gc.set_threshold(*COLLECTIONS)
    sys.setswitchinterval(SWITCH_SECONDS)
    before = {number: signal.getsignal(number) for number in END_SIGNALS}
    try:
        uvloop.run(_http(loaded) if http else _stdio(loaded))
    except BaseException:
        for number, handler in before.items():
            signal.signal(number, handler)
        raise
    return 0


async def _stdio(loaded: Loaded) -> None:
    stop = _end_signal()
    async with open_gateway(loaded, transports=("stdio",)) as gateway:
        in_flight = InFlight()
        server = mcp_server.build(
            gateway.dispatcher, version=VERSION, limits=gateway.limits, in_flight=in_flight
        )
        async with stdio_streams() as streams, anyio.create_task_group() as tasks:

            async def until_the_client_leaves() -> None:
                await converse(server, streams)
                tasks.cancel_scope.cancel()

            tasks.start_soon(until_the_client_leaves)
            tasks.start_soon(_when_set, stop, tasks.cancel_scope.cancel)
            try:
                await anyio.sleep_forever()
            finally:
                with anyio.CancelScope(shield=True):
                    await _wind_down(gateway, in_flight)


async def _http(loaded: Loaded) -> None:
    stop = _end_signal()
    settings = loaded.settings
    listener = _listen(settings.http_host, settings.http_port)
    host, port = listener.getsockname()[:2]
    access = access_for(settings.http_host, settings.http_allowed_hosts, settings.http_token)
    async with open_gateway(loaded, transports=("http",)) as gateway:
        in_flight = InFlight()
        server = mcp_server.build(
            gateway.dispatcher, version=VERSION, limits=gateway.limits, in_flight=in_flight
        )
        async with serve_http(server, listener, access, gateway.limits, inbox=_inbox(gateway)):
            _announce(host, port, guarded=settings.http_token is not None)
            await stop.wait()
            await _wind_down(gateway, in_flight)


def _inbox(gateway: Gateway) -> InboxApp:
    return InboxApp(
        [*Inbox(gateway.works, gateway.stops).routes(), *approval_routes(gateway.approvals)],
        version=VERSION,
        body_max_bytes=gateway.limits.inbox_body_max_bytes,
    )


async def _wind_down(gateway: Gateway, in_flight: InFlight) -> None:
    # Ending scripts and processes first lets calls that wait for one answer truthfully.
    in_flight.close()
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(gateway.scripts.close)
        tasks.start_soon(gateway.runner.close)
    await in_flight.drained(DRAIN_SECONDS)


def _warn_of_readable_secrets(loaded: Loaded) -> None:
    for file in filter(others_can_read, loaded.secret_files):
        print(
            f"codespace: {file!r} holds a secret, and other users can read or change it;"
            " see chmod 600",
            file=sys.stderr,
            flush=True,
        )


def _raise_open_files() -> None:
    # Searches at once hold hundreds of descriptors; the usual soft limit is 1,024.
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    most = OPEN_FILES if hard == resource.RLIM_INFINITY else min(OPEN_FILES, hard)
    if soft != resource.RLIM_INFINITY and soft < most:
        resource.setrlimit(resource.RLIMIT_NOFILE, (most, hard))


def _listen(host: str, port: int) -> socket.socket:
    try:
        return listen(host, port)
    except OSError as error:
        raise SettingsError(
            f"http_host and http_port: {_address(host, port)} cannot be listened on:"
            f" {error.strerror or error}"
        ) from None


def _address(host: str, port: int) -> str:
    return f"[{host.strip('[]')}]:{port}" if ":" in host else f"{host}:{port}"


def _end_signal() -> anyio.Event:
    """Return the event that a SIGTERM or SIGINT sets, the first as well as every later one."""
    asked, loop = anyio.Event(), asyncio.get_running_loop()

    def ask(_number: int, _frame: object) -> None:
        if not loop.is_closed():
            loop.call_soon_threadsafe(asked.set)

    # Not the loop's own handlers: those go with the loop, and the next signal would kill.
    for number in END_SIGNALS:
        signal.signal(number, ask)
    return asked


async def _when_set(event: anyio.Event, call: Callable[[], object]) -> None:
    await event.wait()
    call()


def _announce(host: str, port: int, *, guarded: bool) -> None:
    print(
        f"codespace: serving MCP on http://{_address(host, port)}/mcp", file=sys.stderr, flush=True
    )
    if not guarded:
        who = "everybody on this machine" if is_loopback(host) else "everybody who can reach it"
        print(
            f"codespace: no token is set: {who} can use it; see --http-token-file",
            file=sys.stderr,
            flush=True,
        )
