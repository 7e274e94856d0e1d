"""`serve` as a process of its own: what it says, and how it ends."""

import json
import os
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

import anyio
import pytest

from codespace.cli.serve import _announce  # pyright: ignore[reportPrivateUsage] -- the words alone, without a server
from codespace.cli.server_process import serving_http
from commands import Command

SECONDS = 40
INITIALIZE = {
    "jsonrpc": "2.0",
    "id": 1,
    "method": "initialize",
    "params": {
        "protocolVersion": "2025-11-25",
        "capabilities": {},
        "clientInfo": {"name": "test", "version": "0"},
    },
}


def serving(root: Path) -> "subprocess.Popen[bytes]":
    environment = {key: text for key, text in os.environ.items() if "CODESPACE_" not in key}
    return subprocess.Popen(
        [sys.executable, "-m", "codespace", "serve", str(root)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=environment,
    )


def greeted(server: "subprocess.Popen[bytes]") -> str:
    """Say hello; return the name that the server answers with."""
    assert server.stdin is not None
    assert server.stdout is not None
    server.stdin.write(json.dumps(INITIALIZE).encode() + b"\n")
    server.stdin.flush()
    return json.loads(server.stdout.readline())["result"]["serverInfo"]["name"]


def test_the_end_of_stdin_is_an_orderly_end(tmp_path: Path) -> None:
    with serving(tmp_path) as server:
        assert greeted(server) == "codespace"
        out, err = server.communicate(timeout=SECONDS)
    assert server.returncode == 0
    assert out == b""
    assert b"nothing survives a restart" in err
    assert err.count(b"\n") == 1


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_is_an_orderly_end(tmp_path: Path, number: signal.Signals) -> None:
    with serving(tmp_path) as server:
        assert greeted(server) == "codespace"
        server.send_signal(number)
        out, _ = server.communicate(timeout=SECONDS)
    assert (server.returncode, out) == (0, b"")


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_more_signals_do_not_cut_the_end_short(tmp_path: Path, number: signal.Signals) -> None:
    with serving(tmp_path) as server:
        assert greeted(server) == "codespace"
        until = time.monotonic() + SECONDS
        while server.poll() is None and time.monotonic() < until:
            server.send_signal(number)
            time.sleep(0.002)
    assert server.returncode == 0


def test_a_read_of_something_huge_does_not_hold_up_the_end(tmp_path: Path) -> None:
    with (tmp_path / "huge").open("wb") as file:
        file.truncate(1 << 40)
    call = {
        "jsonrpc": "2.0",
        "id": 2,
        "method": "tools/call",
        "params": {"name": "read", "arguments": {"workspace_id": "default", "path": "huge"}},
    }
    with serving(tmp_path) as server:
        assert greeted(server) == "codespace"
        assert server.stdin is not None
        server.stdin.write(json.dumps(call).encode() + b"\n")
        server.stdin.flush()
        server.send_signal(signal.SIGTERM)
        server.communicate(timeout=SECONDS)
    assert server.returncode == 0


@pytest.mark.anyio
async def test_over_http_a_signal_is_an_orderly_end(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    with anyio.fail_after(SECONDS):
        async with serving_http(tmp_path) as server:
            os.kill(server.pid, signal.SIGTERM)
    assert capfd.readouterr().out == ""


def test_the_address_is_told_on_stderr(capsys: pytest.CaptureFixture[str]) -> None:
    _announce("127.0.0.1", 8787, guarded=True)
    _announce("::1", 1, guarded=True)
    printed = capsys.readouterr()
    assert printed.out == ""
    assert printed.err.splitlines() == [
        "codespace: serving MCP on http://127.0.0.1:8787/mcp",
        "codespace: serving MCP on http://[::1]:1/mcp",
    ]


@pytest.mark.parametrize(
    ("host", "who"),
    [("127.0.0.1", "everybody on this machine"), ("0.0.0.0", "everybody who can reach it")],
)
def test_who_can_use_it_without_a_token_is_told(
    capsys: pytest.CaptureFixture[str], host: str, who: str
) -> None:
    _announce(host, 1, guarded=False)
    assert f"no token is set: {who} can use it" in capsys.readouterr().err


def test_a_refused_start_in_a_process_of_others_leaves_its_signals_alone(
    tmp_path: Path, command: Command
) -> None:
    before = [signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGINT)]
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        assert command("serve", str(tmp_path), "--http", "--http-port", port).code == 2
    assert [signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGINT)] == before


def test_a_secret_that_others_can_read_is_told_at_the_start(tmp_path: Path) -> None:
    (tmp_path / "root").mkdir()
    config = tmp_path / "c.json"
    settings = {
        "http_token": "0123456789abcdef",
        "workspaces": {"one": {"root": str(tmp_path / "root")}},
    }
    config.write_text(json.dumps(settings), encoding="utf-8")
    told: list[bool] = []
    for mode in (0o644, 0o600):
        config.chmod(mode)
        ran = subprocess.run(
            [sys.executable, "-m", "codespace", "serve", "--config", str(config)],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=SECONDS,
            check=True,
        )
        told.append(b"other users can read or change it" in ran.stderr)
    assert told == [True, False]
