"""A real server killed in the middle of a stream of patches, again and again, on one ledger."""

import http.client
import json
import signal
import threading
from collections.abc import Callable, Generator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

from contract.answers import Reply
from contract.raw import http_request, initialize_body, mcp_headers, raw_stdio
from contract.servers import serving, write_config
from contract.session import v4a

FILES = ("a.txt", "b.txt", "d/c.txt", "d/e/f.txt")
FILLING = "".join(f"line {number} that stays\n" for number in range(4_000))
DELAYS = (0.02, 0.11, 0.27, 0.07)
"""Seconds between the first answer of a round and the kill."""

GONE = (OSError, EOFError, http.client.HTTPException)

Call = Callable[[str, dict[str, object]], Reply]


@dataclass(frozen=True, slots=True)
class Live:
    """A running gateway: how to call it, and how to end it as nobody should."""

    call: Call
    kill: Callable[[], None]


Start = Callable[[], AbstractContextManager[Live]]


def content(number: int) -> str:
    return f"number {number}\n{FILLING}"


def patch(number: int) -> str:
    """Return the patch that takes every file from one number to the next."""
    return v4a(
        *(
            line
            for path in FILES
            for line in (
                f"*** Update File: {path}",
                "@@",
                f"-number {number}",
                f"+number {number + 1}",
            )
        )
    )


@pytest.fixture
def root(tmp_path: Path) -> Path:
    root = tmp_path / "root"
    for path in FILES:
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_text(content(0), encoding="utf-8")
    return root


@pytest.fixture(params=["stdio", "http"])
def start(request: pytest.FixtureRequest, tmp_path: Path, root: Path) -> Start:
    config = write_config(
        tmp_path / "codespace.json",
        {"default": {"root": str(root), "profile": "workspace-write"}},
        operations_db=str(tmp_path / "ledger.db"),
    )
    errors = tmp_path / "stderr.txt"

    @contextmanager
    def over_stdio() -> Generator[Live]:
        with raw_stdio(errors, "--config", str(config)) as gateway:
            gateway.open()
            yield Live(gateway.call, gateway.process.kill)

    @contextmanager
    def over_http() -> Generator[Live]:
        with serving(errors, "--config", str(config)) as server:
            opened = http_request(server.url, headers=mcp_headers(), body=initialize_body())
            given = mcp_headers(mcp_session_id=opened.headers["mcp-session-id"])

            def call(tool: str, arguments: dict[str, object]) -> Reply:
                params = {"name": tool, "arguments": arguments}
                body = {"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": params}
                answer = http_request(server.url, headers=given, body=json.dumps(body).encode())
                return answer.message().at("result", "structuredContent")

            yield Live(call, server.process.kill)
            if server.process.poll() is not None:
                assert server.process.wait() == -signal.SIGKILL

    return over_stdio if request.param == "stdio" else over_http


@pytest.mark.slow
@pytest.mark.timeout(200)  # eight starts of a real server
@pytest.mark.requirement(
    "crash.never-half-applied", "crash.settled-on-start", "crash.recovered-reason"
)
def test_a_killed_server_comes_back_with_whole_files_and_tells_the_truth(
    start: Start, root: Path
) -> None:
    number = 0
    for delay in DELAYS:
        with start() as live:
            sent, answered = stream(live, number, delay)
        with start() as live:
            status = require_truth(live, root, sent, range(number + 1, answered + 1))
            send_again(live, sent, status)
            number = standing(root)
            assert number == sent


def stream(live: Live, number: int, delay: float) -> tuple[int, int]:
    """Send patch after patch until the gateway is gone; return the last one sent and answered."""
    sent = answered = number
    killer = threading.Timer(delay, live.kill)
    try:
        while True:
            sent += 1
            reply = live.call("apply_patch", request(sent))
            assert reply["status"] == "applied"
            answered = sent
            if killer.ident is None:
                killer.start()
    except GONE:
        killer.join()
    return sent, answered


def require_truth(live: Live, root: Path, sent: int, answered: range) -> str:
    """Hold files and ledger to each other after a restart; return what became of the last patch.

    `answered` are the patches of this life of the gateway that were answered with `applied`.
    """
    number = standing(root)
    assert answered.stop - 1 <= number <= sent
    for before in answered[-4:]:
        assert live.call("operation_status", asked(before))["status"] == "applied"
    record = live.call("operation_status", asked(sent))
    if "code" in record:
        assert record["code"] == "OPERATION_NOT_FOUND"
        assert number == sent - 1
        return "unknown to the ledger"
    status = record.text("status")
    assert status in ("applied", "failed_rolled_back")
    assert number == (sent if status == "applied" else sent - 1)
    finished = record.each("events")[-1]
    assert finished["name"] == "finished"
    assert finished.body.get("reason") in (None, "recovered")
    assert status == "applied" or finished["reason"] == "recovered"
    return status


def send_again(live: Live, sent: int, status: str) -> None:
    """Send the patch whose answer was lost again: it has happened once in the end."""
    again = live.call("apply_patch", request(sent))
    if status == "failed_rolled_back":
        assert again["code"] == "FILE_OPERATION_FAILED"
        assert again["details", "status"] == "failed_rolled_back"
        again = live.call("apply_patch", {**request(sent), "operation_key": f"again {sent}"})
    assert again["status"] == "applied"
    assert again["replayed"] is (status == "applied")


def standing(root: Path) -> int:
    """Return the one number that every file has; each file is whole."""
    texts = [(root / path).read_text(encoding="utf-8") for path in FILES]
    numbers = {text.partition("\n")[0] for text in texts}
    assert len(numbers) == 1, numbers
    number = int(numbers.pop().removeprefix("number "))
    assert all(text == content(number) for text in texts)
    assert {path.name for path in root.rglob("*") if path.is_file()} == {
        Path(path).name for path in FILES
    }
    return number


def request(number: int) -> dict[str, object]:
    """Return the call that takes every file to a number."""
    return {**asked(number), "patch": patch(number - 1)}


def asked(number: int) -> dict[str, object]:
    """Return the key of that call."""
    return {"workspace_id": "default", "operation_key": f"to {number}"}
