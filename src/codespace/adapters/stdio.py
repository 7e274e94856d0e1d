"""The stdio transport: one JSON-RPC message a line, on the loop's own pipes.

The SDK's transport reads stdin in a worker thread, which cannot be cancelled: SIGTERM would skip
the orderly end and SIGINT would hang. This one ends at once, and halves the latency.
"""

import asyncio
import contextlib
import json
import os
import stat
import sys
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import cast

import anyio
import mcp_types as types
from anyio.streams.memory import MemoryObjectReceiveStream, MemoryObjectSendStream
from mcp.server import Server
from mcp.server.runner import serve_dual_era_loop
from mcp.server.stdio import stdio_server
from mcp.shared.message import SessionMessage
from pydantic_core import from_json

from codespace.domain.tool import Json

LINE_MAX_BYTES = 64 * 1024 * 1024
PARSE_ERROR = -32700
INVALID_REQUEST = -32600

Incoming = MemoryObjectReceiveStream[SessionMessage | Exception]
Outgoing = MemoryObjectSendStream[SessionMessage]


@dataclass(frozen=True, slots=True)
class Streams:
    """What the protocol loop reads from and writes to."""

    incoming: Incoming
    outgoing: Outgoing


@asynccontextmanager
async def stdio_streams() -> AsyncGenerator[Streams]:
    """Take over stdin and stdout as the protocol's channel for as long as the block runs.

    Descriptor 1 becomes stderr, so that a stray print cannot break the protocol, and descriptor 0
    reads as empty.
    """
    if not _is_stream(0) or not _is_stream(1):
        # A regular file cannot be waited for; only the SDK's threads can read one.
        async with stdio_server() as (read, write):
            yield Streams(read, write)  # pyright: ignore[reportArgumentType] -- the SDK's own wider protocol types
        return
    source, sink = os.dup(0), os.dup(1)
    null = os.open(os.devnull, os.O_RDONLY)
    os.dup2(null, 0)
    os.close(null)
    os.dup2(2, 1)
    sys.stdout.flush()
    async with _pumped(source, sink) as streams:
        yield streams


async def converse(server: Server, streams: Streams) -> None:
    """Answer the client, in the protocol revision that it opens with, until it leaves."""
    await serve_dual_era_loop(server, streams.incoming, streams.outgoing, lifespan_state=None)


def _is_stream(fd: int) -> bool:
    mode = os.fstat(fd).st_mode
    return stat.S_ISFIFO(mode) or stat.S_ISSOCK(mode) or (stat.S_ISCHR(mode) and os.isatty(fd))


@asynccontextmanager
async def _pumped(source: int, sink: int) -> AsyncGenerator[Streams]:
    loop = asyncio.get_running_loop()
    reader = asyncio.StreamReader(limit=LINE_MAX_BYTES)
    source_file, sink_file = os.fdopen(source, "rb", 0), os.fdopen(sink, "wb", 0)
    incoming, _ = await loop.connect_read_pipe(
        lambda: asyncio.StreamReaderProtocol(reader), source_file
    )
    outgoing, protocol = await loop.connect_write_pipe(
        lambda: asyncio.StreamReaderProtocol(asyncio.StreamReader()), sink_file
    )
    writer = asyncio.StreamWriter(outgoing, protocol, None, loop)
    to_server, from_client = anyio.create_memory_object_stream[SessionMessage | Exception](0)
    from_server, to_client = anyio.create_memory_object_stream[SessionMessage](0)
    answers = from_server.clone()
    try:
        with to_server, from_client, from_server, answers, to_client:
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(_read_lines, reader, to_server, answers)
                tasks.start_soon(_write_lines, writer, to_client)
                yield Streams(from_client, from_server)
                tasks.cancel_scope.cancel()
    finally:
        incoming.close()
        outgoing.close()


async def _read_lines(
    reader: asyncio.StreamReader,
    to_server: MemoryObjectSendStream[SessionMessage | Exception],
    answers: MemoryObjectSendStream[SessionMessage],
) -> None:
    # When one of the two no longer listens, the gateway is ending: what still comes is not heard.
    with to_server, answers, contextlib.suppress(anyio.BrokenResourceError):
        while line := await _line(reader, answers):
            if not line.strip():
                continue
            try:
                message = parse(line)
            except NotAMessageError as error:
                await answers.send(error.answer)
            else:
                await to_server.send(message)


async def _line(
    reader: asyncio.StreamReader, answers: MemoryObjectSendStream[SessionMessage]
) -> bytes:
    try:
        return await reader.readline()
    except ValueError:
        # Past the limit the rest of the line cannot be told from the next message.
        await answers.send(NotAMessageError(PARSE_ERROR, "The message is too long.").answer)
        return b""


async def _write_lines(
    writer: asyncio.StreamWriter, to_client: MemoryObjectReceiveStream[SessionMessage]
) -> None:
    async with to_client:
        async for item in to_client:
            writer.write(line_of(item))
            try:
                await writer.drain()
            except ConnectionError:
                return  # the client no longer reads; the end of its input says the rest


def line_of(item: SessionMessage) -> bytes:
    """Return a message as one line of JSON."""
    message = item.message
    try:
        text = message.model_dump_json(by_alias=True, exclude_unset=True)
    except ValueError:
        # A lone surrogate in what the client sent, repeated to it: its id, say.
        text = json.dumps(message.model_dump(by_alias=True, exclude_unset=True))
    return text.encode() + b"\n"


class NotAMessageError(Exception):
    """A line is no JSON-RPC message. `answer` is the error that its sender gets."""

    def __init__(self, code: int, text: str) -> None:
        super().__init__(text)
        error = types.ErrorData(code=code, message=text)
        self.answer = SessionMessage(types.JSONRPCError(jsonrpc="2.0", id=None, error=error))


def parse(line: bytes) -> SessionMessage:
    """Return the message in a line.

    Raises:
        NotAMessageError: it holds none.
    """
    content: object = None
    try:
        message = types.jsonrpc_message_adapter.validate_json(line, by_name=False)
        if isinstance(message, types.JSONRPCNotification):
            content = from_json(line)
    except ValueError:
        message, content = _read_loosely(line)
    # The SDK's types let the id go that is none, and leave a notification, which nobody answers.
    if isinstance(message, types.JSONRPCNotification) and "id" in cast("Json", content):
        raise NotAMessageError(INVALID_REQUEST, "The id of a request is text or a whole number.")
    return SessionMessage(message)


def _read_loosely(line: bytes) -> tuple[types.JSONRPCMessage, object]:
    # The fast parser refuses a lone surrogate, of which the tool's own check says more.
    try:
        loose: object = json.loads(line)
    except (ValueError, RecursionError):
        raise NotAMessageError(PARSE_ERROR, "The message is not valid JSON.") from None
    try:
        return types.jsonrpc_message_adapter.validate_python(loose, by_name=False), loose
    except (ValueError, RecursionError):
        raise NotAMessageError(INVALID_REQUEST, "The message is no JSON-RPC message.") from None
