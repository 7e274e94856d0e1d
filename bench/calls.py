"""(a) One tool call after another, against a bare server of the SDK that answers the same."""

import json
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from statistics import median

from figures import Plan, Row
from references import beside_python, environment
from wire import LEGACY, MODERN, Client, Era, HttpClient, StdioClient, end, tool_body

BARE = str(Path(__file__).with_name("bare_server.py"))
ARGUMENTS = {"workspace_id": "default", "path": "notes.txt"}
TARGET = 1.3
BLOCK = 50
LINE = "A line of an ordinary text file, as agents read them all day.\n"


def measure(plan: Plan) -> Iterator[Row]:
    """Measure both transports in both revisions of the protocol."""
    root = plan.folder("calls")
    (root / "notes.txt").write_text(LINE * 16, encoding="utf-8")
    blocks = plan.rounds(40, 6)
    payload = plan.scratch / "payload.json"
    with StdioClient([beside_python("codespace"), "serve", str(root)]) as client:
        client.open()
        payload.write_text(json.dumps(tool_body(client.call("read", ARGUMENTS))), encoding="utf-8")
    for era in (LEGACY, MODERN):
        ours, bare = stdio_calls(root, payload, era, blocks)
        yield Row("a", f"read 1 KB, stdio, {era}", "ms", ours * 1e3, bare * 1e3, TARGET)
    for era in (LEGACY, MODERN):
        ours, bare = http_calls(root, payload, era, blocks)
        yield Row("a", f"read 1 KB, HTTP, {era}", "ms", ours * 1e3, bare * 1e3, TARGET)


def stdio_calls(root: Path, payload: Path, era: Era, blocks: int) -> tuple[float, float]:
    """Return the median seconds of a call: ours, and the bare server's."""
    with (
        StdioClient([beside_python("codespace"), "serve", str(root)], era) as ours,
        StdioClient([sys.executable, BARE, str(payload)], era) as bare,
    ):
        ours.open()
        bare.open()
        return alternate(ours, bare, blocks)


def http_calls(root: Path, payload: Path, era: Era, blocks: int) -> tuple[float, float]:
    """Return the median seconds of a call: ours, and the bare server's."""
    our_port, bare_port = free_port(), free_port()
    gateway = [beside_python("codespace"), "serve", str(root), "--http"]
    with ExitStack() as stack:
        stack.enter_context(listening([*gateway, "--http-port", str(our_port)], our_port))
        bare_command = [sys.executable, BARE, str(payload), "--port", str(bare_port)]
        stack.enter_context(listening(bare_command, bare_port))
        ours = stack.enter_context(HttpClient(our_port, era))
        bare = stack.enter_context(HttpClient(bare_port, era))
        ours.open()
        bare.open()
        return alternate(ours, bare, blocks)


def alternate(ours: Client, bare: Client, blocks: int) -> tuple[float, float]:
    """Call both in turn, a block each, and return the median seconds of a call of each."""
    if tool_body(ours.call("read", ARGUMENTS)) != tool_body(bare.call("read", ARGUMENTS)):
        raise RuntimeError("the two servers answer different objects")
    ours_taken: list[float] = []
    bare_taken: list[float] = []
    for turn in range(-1, blocks):
        order = [(ours, ours_taken), (bare, bare_taken)]
        for client, taken in order if turn % 2 else reversed(order):
            block = timed_block(client)
            if turn >= 0:
                taken.extend(block)
    return median(ours_taken), median(bare_taken)


def timed_block(client: Client) -> list[float]:
    """Return the seconds of each of a block's calls."""
    taken: list[float] = []
    for _ in range(BLOCK):
        started = time.perf_counter()
        answer = client.call("read", ARGUMENTS)
        taken.append(time.perf_counter() - started)
        if b"structuredContent" not in answer:
            raise RuntimeError(f"the call failed: {answer[:500]!r}")
    return taken


def free_port() -> int:
    """Return a port that nobody listens on."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


@contextmanager
def listening(command: list[str], port: int) -> Iterator[subprocess.Popen[bytes]]:
    """Run an HTTP server for as long as the block lasts."""
    process = subprocess.Popen(
        command, stdin=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env=environment()
    )
    try:
        await_port(process, port)
        yield process
    finally:
        process.terminate()
        end(process)


def await_port(process: subprocess.Popen[bytes], port: int) -> None:
    """Return once the server accepts connections."""
    for _ in range(400):
        try:
            socket.create_connection(("127.0.0.1", port), 1).close()
        except OSError:
            if process.poll() is not None:
                raise RuntimeError(f"the server ended with {process.returncode}") from None
            time.sleep(0.05)
        else:
            return
    raise RuntimeError("the server does not listen")
