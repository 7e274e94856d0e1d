"""The Inspector's command line as a client, with a token over HTTP and without one over stdio."""

import json
from collections.abc import Generator
from dataclasses import dataclass
from pathlib import Path
from typing import cast

import pytest

from contract.answers import Json, Reply
from contract.servers import command, serving
from programs.foreign import INSPECTOR, Ended, run_node

TOKEN = "a-token-for-the-inspector"
TOOL_ANSWERED_AN_ERROR, TOKEN_WANTED = 5, 3


@dataclass(frozen=True, slots=True)
class Inspector:
    """The command line, with what it needs to reach one gateway."""

    home: Path
    target: tuple[str, ...]

    def ask(self, *arguments: str) -> Ended:
        """Run one method; the answer is one JSON object."""
        quiet = ("--cli", "--quiet", "--format", "json", "--connect-timeout", "40000")
        return run_node(INSPECTOR, *quiet, *self.target, *arguments, home=self.home)

    def call(self, tool: str, **arguments: object) -> Ended:
        """Call a tool."""
        given = ("--tool-args-json", json.dumps(arguments))
        return self.ask("--method", "tools/call", "--tool-name", tool, *given)


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("inspected")
    (root / "hello.txt").write_bytes(b"hello\n")
    return root


@pytest.fixture(scope="module")
def url(root: Path, tmp_path_factory: pytest.TempPathFactory) -> Generator[str]:
    place = tmp_path_factory.mktemp("gateway")
    token = place / "token"
    token.write_text(TOKEN, encoding="utf-8")
    with serving(place / "stderr.txt", str(root), "--http-token-file", str(token)) as server:
        yield server.url
        assert TOKEN not in server.said()


@pytest.fixture
def over_http(url: str, tmp_path: Path) -> Inspector:
    return Inspector(tmp_path, (*http(url), "--header", f"Authorization: Bearer {TOKEN}"))


@pytest.fixture
def over_stdio(root: Path, tmp_path: Path) -> Inspector:
    return Inspector(tmp_path, tuple(command("serve", str(root))))


def http(url: str) -> tuple[str, ...]:
    """Return how to reach a URL, without ever opening a browser for a login."""
    return (url, "--transport", "http", "--stored-auth-only")


@pytest.mark.parametrize("era", ["legacy", "modern"])
def test_it_finds_no_fault_with_the_schemas(era: str, over_http: Inspector) -> None:
    require_no_faults(over_http.ask("--protocol-era", era, "--method", "tools/list", "--strict"))


@pytest.mark.slow
@pytest.mark.parametrize("era", ["legacy", "modern"])
def test_it_finds_no_fault_with_the_schemas_over_stdio(era: str, over_stdio: Inspector) -> None:
    require_no_faults(over_stdio.ask("--protocol-era", era, "--method", "tools/list", "--strict"))


def test_it_reads_a_file(over_http: Inspector) -> None:
    require_hello(over_http.call("read", workspace_id="default", path="hello.txt"))


def test_it_reads_a_file_over_stdio(over_stdio: Inspector) -> None:
    require_hello(over_stdio.call("read", workspace_id="default", path="hello.txt"))


def test_it_tells_an_error_from_a_broken_answer(over_http: Inspector) -> None:
    ended = over_http.call("read", workspace_id="default", path="missing.txt")
    assert ended.code == TOOL_ANSWERED_AN_ERROR, ended.errors
    assert answer(ended)["isError"] is True
    assert answer(ended)["structuredContent", "code"] == "FILE_NOT_FOUND"


@pytest.mark.requirement("http.token-guards-every-route")
@pytest.mark.parametrize(
    "header", [(), ("--header", "Authorization: Bearer another-token")], ids=["none", "wrong"]
)
def test_it_is_not_let_in_without_the_token(
    header: tuple[str, ...], url: str, tmp_path: Path
) -> None:
    ended = Inspector(tmp_path, (*http(url), *header)).ask("--method", "tools/list")
    assert ended.code == TOKEN_WANTED, ended.errors
    assert TOKEN not in ended.out + ended.errors


def require_no_faults(ended: Ended) -> None:
    """Hold an answer to tools/list to a clean report."""
    assert ended.code == 0, ended.errors
    assert ended.errors == ""
    tools = answer(ended).each("tools")
    assert {"read", "apply_patch"} <= {tool["name"] for tool in tools}


def require_hello(ended: Ended) -> None:
    """Hold an answer to the content of the file."""
    assert ended.code == 0, ended.errors
    assert answer(ended)["structuredContent", "content"] == "hello\n"


def answer(ended: Ended) -> Reply:
    """Return what the server answered, as the command line printed it."""
    return Reply(cast("Json", json.loads(ended.out))).at("result")
