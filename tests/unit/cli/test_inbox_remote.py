"""Reaching a gateway's inbox from the command line, and what is said when there is none."""

import socket
from pathlib import Path

import pytest

from codespace.cli.inbox_remote import There, ask
from codespace.settings import SettingsError
from contract.servers import serving

TOKEN = "a-token-of-the-operator-0123456789"


def test_the_token_comes_from_a_file(tmp_path: Path) -> None:
    (tmp_path / "root").mkdir()
    token = tmp_path / "token"
    token.write_text(TOKEN, encoding="utf-8")
    words = (str(tmp_path / "root"), "--http-token-file", str(token))
    with serving(tmp_path / "errors", *words) as server:
        assert ask(There(server.url, str(token)), "GET", "works").body == {"works": []}
        with pytest.raises(SettingsError, match="--token-file FILE"):
            ask(There(server.url), "GET", "works")


def test_where_nobody_answers_that_is_said() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{taken.getsockname()[1]}/mcp"
        with pytest.raises(SettingsError, match="does not answer as a gateway with an inbox"):
            ask(There(url), "GET", "works")
