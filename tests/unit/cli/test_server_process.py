"""A gateway as a child process over HTTP: it is reachable, and gone afterwards."""

import os
from pathlib import Path

import pytest

from codespace.adapters.client import connect_http
from codespace.cli.server_process import serving_http

pytestmark = pytest.mark.anyio


async def test_it_serves_for_as_long_as_the_block_runs(tmp_path: Path) -> None:
    async with serving_http(tmp_path, "--max-processes", "3") as server:
        async with connect_http(server.url) as connection:
            answer = await connection.call("workspace_info", {"workspace_id": "default"})
        assert answer.body["root"] == str(tmp_path)
        assert answer.body["transports"] == ["http"]
        os.kill(server.pid, 0)
    with pytest.raises(ProcessLookupError):
        os.kill(server.pid, 0)


async def test_a_server_that_does_not_start_says_why(tmp_path: Path) -> None:
    with pytest.raises(RuntimeError, match="PATH takes a directory that exists"):
        async with serving_http(tmp_path / "none"):
            pass
