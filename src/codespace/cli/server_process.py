"""A gateway as a child process that serves HTTP, for `demo` and for tests."""

import contextlib
import re
import sys
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

import anyio
from anyio.abc import ByteReceiveStream
from anyio.streams.buffered import BufferedByteReceiveStream

START_SECONDS = 20
STOP_SECONDS = 10
_SERVING = re.compile(r"serving MCP on (http://\S+)")


@dataclass(frozen=True, slots=True)
class ServerProcess:
    """A running server. `pid` is the process, `url` its MCP endpoint."""

    url: str
    pid: int


@asynccontextmanager
async def serving_http(root: Path, *flags: str) -> AsyncGenerator[ServerProcess]:
    """Run `codespace serve ROOT --http` on a free port for as long as the block runs.

    Raises:
        RuntimeError: the server ended before it served; the message has what it said.
    """
    command = [
        *(sys.executable, "-m", "codespace", "serve", str(root)),
        *("--http", "--http-port", "0", *flags),
    ]
    async with await anyio.open_process(command, stdin=None, stdout=None) as process:
        if process.stderr is None:
            raise RuntimeError("the server has no stderr")
        try:
            with anyio.fail_after(START_SECONDS):
                url = await _url(process.stderr)
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(_drain, process.stderr)
                yield ServerProcess(url, process.pid)
                tasks.cancel_scope.cancel()
        finally:
            with anyio.CancelScope(shield=True), anyio.move_on_after(STOP_SECONDS):
                with contextlib.suppress(ProcessLookupError):  # it may have ended by itself
                    process.terminate()
                await process.wait()


async def _url(errors: ByteReceiveStream) -> str:
    lines = BufferedByteReceiveStream(errors)
    said: list[str] = []
    while True:
        try:
            line = (await lines.receive_until(b"\n", 65_536)).decode("utf-8", "replace")
        except (anyio.EndOfStream, anyio.IncompleteRead):
            raise RuntimeError("the server ended: " + " ".join(said)) from None
        if found := _SERVING.search(line):
            return found[1]
        said.append(line)


async def _drain(errors: ByteReceiveStream) -> None:
    async for data in errors:
        sys.stderr.write(data.decode("utf-8", "replace"))
