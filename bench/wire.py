"""Minimal MCP clients: they write a request and read its answer, so that the server is the cost."""

import json
import socket
import subprocess
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Literal, Protocol, Self

from references import environment

Era = Literal["2025-11-25", "2026-07-28"]
LEGACY: Era = "2025-11-25"
MODERN: Era = "2026-07-28"
CLIENT = {"name": "bench", "version": "0"}
ENVELOPE = {
    "io.modelcontextprotocol/protocolVersion": MODERN,
    "io.modelcontextprotocol/clientInfo": CLIENT,
    "io.modelcontextprotocol/clientCapabilities": {},
}
INITIALIZE = {"protocolVersion": LEGACY, "capabilities": {}, "clientInfo": CLIENT}
Json = Mapping[str, object]


def encode(message: Json) -> bytes:
    """Return a message as one line, without its end."""
    return json.dumps(message, separators=(",", ":")).encode()


def request(number: int, method: str, params: Json, era: Era) -> bytes:
    """Return a JSON-RPC request; in the newer revision each carries the client's envelope."""
    body = {**params, "_meta": ENVELOPE} if era == MODERN else params
    return encode({"jsonrpc": "2.0", "id": number, "method": method, "params": body})


def notification(method: str) -> bytes:
    """Return a JSON-RPC notification without parameters."""
    return encode({"jsonrpc": "2.0", "method": method})


def tool_body(answer: bytes) -> dict[str, object]:
    """Return the structured content of an answer to tools/call.

    Raises:
        RuntimeError: it is an error of the protocol or of the tool.
    """
    message = json.loads(answer)
    result = message.get("result", {})
    if "structuredContent" not in result or result.get("isError"):
        raise RuntimeError(f"the call failed: {answer[:500]!r}")
    return result["structuredContent"]


class Client(Protocol):
    """Either transport: one exchange after another."""

    era: Era

    def call(self, tool: str, arguments: Json) -> bytes:
        """Call a tool and return the message that answers it."""
        ...


class StdioClient:
    """A server as a child process, spoken to line by line."""

    def __init__(self, command: Sequence[str], era: Era = LEGACY) -> None:
        """Start the server; nothing is sent yet."""
        self.era: Era = era
        self._number = 0
        self.process = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env=environment(),
        )

    def __enter__(self) -> Self:
        """Use it in a `with` block, which ends the server."""
        return self

    def __exit__(self, *_: object) -> None:
        """Close the server's input, which is its sign to end."""
        end(self.process)

    def open(self) -> None:
        """Shake hands, where the revision asks for it."""
        if self.era == LEGACY:
            self.initialize()

    def initialize(self) -> bytes:
        """Shake hands and return the server's answer."""
        answer = self._exchange("initialize", INITIALIZE)
        self._write(notification("notifications/initialized"))
        return answer

    def call(self, tool: str, arguments: Json) -> bytes:
        """Call a tool and return the line that answers it."""
        return self._exchange("tools/call", {"name": tool, "arguments": arguments})

    def _exchange(self, method: str, params: Json) -> bytes:
        self._number += 1
        self._write(request(self._number, method, params, self.era))
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        if not line:
            raise RuntimeError(f"the server ended with {self.process.wait(10)}")
        return line

    def _write(self, message: bytes) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(message + b"\n")
        self.process.stdin.flush()


class HttpClient:
    """One kept connection to `/mcp`, one request after another."""

    def __init__(self, port: int, era: Era = LEGACY) -> None:
        """Connect; nothing is sent yet."""
        self.era: Era = era
        self._number = 0
        self._session = b""
        self._host = f"127.0.0.1:{port}"
        self._socket = socket.create_connection(("127.0.0.1", port))
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    def __enter__(self) -> Self:
        """Use it in a `with` block, which closes the connection."""
        return self

    def __exit__(self, *_: object) -> None:
        """Close the connection."""
        self._socket.close()

    def open(self) -> None:
        """Shake hands, where the revision asks for it."""
        if self.era == MODERN:
            return
        head, _ = self._exchange(request(0, "initialize", INITIALIZE, self.era))
        for line in head.split(b"\r\n"):
            name, _, value = line.partition(b":")
            if name.lower() == b"mcp-session-id":
                self._session = b"Mcp-Session-Id: " + value.strip() + b"\r\n"
        self._exchange(notification("notifications/initialized"))

    def call(self, tool: str, arguments: Json) -> bytes:
        """Call a tool and return the message that answers it."""
        self._number += 1
        params = {"name": tool, "arguments": arguments}
        extra = b""
        if self.era == MODERN:
            extra = f"Mcp-Method: tools/call\r\nMcp-Name: {tool}\r\n".encode()
        head, body = self._exchange(request(self._number, "tools/call", params, self.era), extra)
        if b"text/event-stream" not in head:
            return body
        return next(line[5:] for line in body.splitlines() if line.startswith(b'data: {"'))

    def _exchange(self, message: bytes, extra: bytes = b"") -> tuple[bytes, bytes]:
        self._socket.sendall(
            b"POST /mcp HTTP/1.1\r\nHost: "
            + self._host.encode()
            + b"\r\nContent-Type: application/json\r\n"
            + b"Accept: application/json, text/event-stream\r\n"
            + b"MCP-Protocol-Version: "
            + self.era.encode()
            + b"\r\n"
            + self._session
            + extra
            + b"Content-Length: "
            + str(len(message)).encode()
            + b"\r\n\r\n"
            + message
        )
        return self._answer()

    def _answer(self) -> tuple[bytes, bytes]:
        got = b""
        while b"\r\n\r\n" not in got:
            got += self._receive()
        head, body = got.split(b"\r\n\r\n", 1)
        fields = {
            name.lower(): value.strip()
            for name, _, value in (line.partition(b":") for line in head.split(b"\r\n"))
        }
        if not head.startswith((b"HTTP/1.1 200", b"HTTP/1.1 202")):
            raise RuntimeError(f"the server answered {(head + body)[:500]!r}")
        if fields.get(b"transfer-encoding") == b"chunked":
            while not body.endswith(b"0\r\n\r\n"):
                body += self._receive()
            body = joined(body)
        length = int(fields.get(b"content-length", b"0"))
        while len(body) < length:
            body += self._receive()
        return head, body

    def _receive(self) -> bytes:
        data = self._socket.recv(256 * 1024)
        if not data:
            raise RuntimeError("the server closed the connection")
        return data


def joined(chunks: bytes) -> bytes:
    """Return the content of a chunked body."""
    content = b""
    while chunks:
        size, _, chunks = chunks.partition(b"\r\n")
        length = int(size, 16)
        content += chunks[:length]
        chunks = chunks[length + 2 :]
    return content


def end(process: subprocess.Popen[bytes]) -> None:
    """End a server that was started here: politely, then not."""
    for stream in (process.stdin, process.stdout):
        if stream is not None:
            with suppress(OSError):
                stream.close()
    for stop in (lambda: None, process.terminate, process.kill):
        stop()
        with suppress(subprocess.TimeoutExpired):
            process.wait(5)
            return
