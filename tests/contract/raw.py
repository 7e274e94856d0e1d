"""Clients without an SDK: JSON-RPC lines to a gateway's stdin, and HTTP requests as they are."""

import http.client
import json
import select
import signal
import subprocess
from collections.abc import Generator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, cast
from urllib.parse import urlsplit

from contract.answers import Json, Reply
from contract.servers import SECONDS, command, environment

BASELINE = "2025-11-25"


@dataclass(slots=True)
class RawStdio:
    """A gateway as a child. Every line that it writes to stdout must be a JSON-RPC message."""

    process: "subprocess.Popen[bytes]"
    errors: Path
    last: int = 0
    _rest: bytearray = field(default_factory=bytearray)

    def send(self, line: bytes) -> None:
        """Write one line as it is."""
        self._input.write(line + b"\n")
        self._input.flush()

    def request(self, method: str, params: Json | None = None) -> int:
        """Send a request and return its id."""
        self.last += 1
        self.send(
            json.dumps(
                {"jsonrpc": "2.0", "id": self.last, "method": method, "params": params or {}}
            ).encode()
        )
        return self.last

    def receive(self) -> Reply:
        """Return the next message; fail when none comes.

        Raises:
            EOFError: the gateway is gone.
        """
        while b"\n" not in self._rest:
            assert select.select([self._output], [], [], SECONDS)[0], "no answer came"
            data = self._output.read1(1 << 20)  # pyright: ignore[reportAttributeAccessIssue, reportUnknownVariableType, reportUnknownMemberType] -- a pipe's reader is buffered
            if not data:
                raise EOFError("the gateway closed its stdout")
            self._rest += cast("bytes", data)
        line, _, rest = bytes(self._rest).partition(b"\n")
        self._rest = bytearray(rest)
        return Reply(cast("Json", json.loads(line)))

    def answer(self, request_id: int | str) -> Reply:
        """Return the answer to a request; whatever else comes before it is skipped."""
        while True:
            message = self.receive()
            if message.body.get("id") == request_id:
                return message

    def ask(self, method: str, params: Json | None = None) -> Reply:
        """Send a request and return its answer."""
        return self.answer(self.request(method, params))

    def call(self, tool: str, arguments: Json) -> Reply:
        """Call a tool and return the tool's answer."""
        answer = self.ask("tools/call", {"name": tool, "arguments": arguments})
        return Reply(cast("Json", answer["result", "structuredContent"]))

    def open(self) -> Reply:
        """Shake hands in the baseline revision."""
        answer = self.ask(
            "initialize",
            {
                "protocolVersion": BASELINE,
                "capabilities": {},
                "clientInfo": {"name": "raw", "version": "0"},
            },
        )
        self.send(b'{"jsonrpc":"2.0","method":"notifications/initialized"}')
        return answer

    def leave(self) -> tuple[int, bytes]:
        """Close stdin; return the exit code and what stdout still had."""
        self._input.close()
        return self.ended()

    def end(self, number: signal.Signals) -> tuple[int, bytes]:
        """Send a signal; return the exit code and what stdout still had."""
        self.process.send_signal(number)
        return self.ended()

    def said(self) -> str:
        """Return what stderr has so far."""
        return self.errors.read_text(encoding="utf-8", errors="replace")

    def ended(self) -> tuple[int, bytes]:
        """Wait for the end; return the exit code and what stdout still had."""
        code = self.process.wait(SECONDS)
        return code, bytes(self._rest) + self._output.read()

    @property
    def _input(self) -> IO[bytes]:
        assert self.process.stdin is not None
        return self.process.stdin

    @property
    def _output(self) -> IO[bytes]:
        assert self.process.stdout is not None
        return self.process.stdout


@contextmanager
def raw_stdio(
    errors: Path,
    *arguments: str,
    variables: Mapping[str, str] | None = None,
    cwd: Path | None = None,
) -> Generator[RawStdio]:
    """Start `codespace serve …` over stdio; its stderr goes to the file `errors`."""
    with (
        errors.open("wb") as sink,
        subprocess.Popen(
            command("serve", *arguments),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=sink,
            env=environment(variables),
            cwd=cwd,
        ) as process,
    ):
        try:
            yield RawStdio(process, errors)
        finally:
            if process.poll() is None:
                process.kill()


@dataclass(frozen=True, slots=True)
class HttpAnswer:
    """A status, its headers in lower case, and the body."""

    status: int
    headers: Mapping[str, str]
    body: bytes

    def message(self) -> Reply:
        """Return the JSON-RPC message of a body, whether it is plain or an event."""
        text = self.body.decode()
        data = [line.removeprefix("data:") for line in text.splitlines() if "data:" in line]
        return Reply(cast("Json", json.loads(data[-1] if data else text)))


def http_request(
    url: str,
    method: str = "POST",
    *,
    path: str | None = None,
    headers: Mapping[str, str] | None = None,
    body: bytes = b"",
) -> HttpAnswer:
    """Send one HTTP request with just these headers (and those that HTTP itself needs)."""
    parts = urlsplit(url)
    connection = http.client.HTTPConnection(parts.hostname or "", parts.port, timeout=SECONDS)
    try:
        given = {key.lower(): value for key, value in (headers or {}).items()}
        connection.putrequest(method, path or parts.path, skip_host=True)
        for key, value in {"host": parts.netloc, "content-length": str(len(body)), **given}.items():
            if value:
                connection.putheader(key, value)
        connection.endheaders(body or None)
        response = connection.getresponse()
        return HttpAnswer(
            response.status,
            {key.lower(): value for key, value in response.getheaders()},
            response.read(),
        )
    finally:
        connection.close()


def http_burst(url: str, requests: Sequence[tuple[str, Mapping[str, str], bytes]]) -> None:
    """Send (method, headers, body) requests on a connection each, all before any is answered."""
    parts = urlsplit(url)
    with ExitStack() as ending:
        connections: list[http.client.HTTPConnection] = []
        for _ in requests:
            connection = http.client.HTTPConnection(
                parts.hostname or "", parts.port, timeout=SECONDS
            )
            ending.callback(connection.close)
            connection.connect()
            connections.append(connection)
        for connection, (method, headers, body) in zip(connections, requests, strict=True):
            connection.request(method, parts.path, body, dict(headers))
        for connection in connections:
            connection.getresponse().read()


def mcp_headers(**more: str) -> dict[str, str]:
    """Return the headers that every MCP request over HTTP has."""
    return {
        "content-type": "application/json",
        "accept": "application/json, text/event-stream",
        "mcp-protocol-version": BASELINE,
        **{key.replace("_", "-"): value for key, value in more.items()},
    }


def initialize_body() -> bytes:
    """Return the request that opens a session."""
    return json.dumps(
        {
            "jsonrpc": "2.0",
            "id": 1,
            "method": "initialize",
            "params": {
                "protocolVersion": BASELINE,
                "capabilities": {},
                "clientInfo": {"name": "raw", "version": "0"},
            },
        }
    ).encode()
