"""What both transports and both protocol revisions have in common, and what each keeps to."""

import json
import subprocess
from pathlib import Path

import anyio
import mcp_types as types
import pytest

from contract.houses import House, over_http
from contract.raw import http_request, initialize_body, mcp_headers, raw_stdio
from contract.servers import command, environment, serving
from contract.session import Session, Space

pytestmark = pytest.mark.anyio


@pytest.mark.requirement("transports.same-tools", "transports.modern", "transports.baseline")
async def test_every_transport_and_revision_has_the_same_tools(
    cell: tuple[House, Session], session: Session
) -> None:
    def described(tools: list[types.Tool]) -> list[dict[str, object]]:
        return [tool.model_dump(mode="json", exclude_none=True) for tool in tools]

    here = await cell[1].client.list_tools()
    there = await session.client.list_tools()
    assert described(here.tools) == described(there.tools)


@pytest.mark.requirement("transports.same-tools")
async def test_every_tool_says_what_it_can_change(session: Session) -> None:
    listed = await session.client.list_tools()
    hints = {tool.name: tool.annotations for tool in listed.tools}
    reading = {name for name, hint in hints.items() if hint and hint.read_only_hint}
    assert reading == {
        *("workspace_info", "read", "find", "grep", "operation_status"),
        *("read_process", "process_status", "codemode_status", "steer_status"),
    }
    for tool in listed.tools:
        assert tool.description
        assert tool.annotations is not None
        told = tool.annotations.model_dump(exclude={"title"})
        assert all(isinstance(value, bool) for value in told.values())


@pytest.mark.requirement("transports.baseline", "transports.stdio-is-the-default")
def test_stdio_is_spoken_by_default_in_the_baseline_revision(tmp_path: Path, config: Path) -> None:
    with raw_stdio(tmp_path / "stderr.txt", "--config", str(config)) as gateway:
        opened = gateway.open()
        assert opened["result", "protocolVersion"] == "2025-11-25"
        assert opened["result", "serverInfo", "name"] == "codespace"
        assert gateway.call("workspace_info", {})["transports"] == ["stdio"]
        assert gateway.ask("ping").keys == {"jsonrpc", "id", "result"}
        assert gateway.leave() == (0, b"")


@pytest.mark.requirement("transports.http-at-mcp")
def test_mcp_is_served_at_one_address_and_nowhere_else(house: House) -> None:
    opened = http_request(house.url, headers=mcp_headers(), body=initialize_body())
    assert opened.status == 200
    assert opened.message()["result", "protocolVersion"] == "2025-11-25"
    for path in ("/", "/mcp/x", "/inbox", "/inbox/mcp", "/healthz", "/mcpx"):
        assert http_request(house.url, path=path, headers=mcp_headers()).status == 404


@pytest.mark.requirement("transports.stdout-is-mcp", "transports.logs-on-stderr")
def test_stdout_carries_only_messages_and_logs_go_to_stderr(tmp_path: Path, config: Path) -> None:
    arguments = ("--config", str(config), "--log-level", "DEBUG")
    with raw_stdio(tmp_path / "stderr.txt", *arguments) as gateway:
        gateway.open()
        here = {"workspace_id": "default"}
        gateway.call("bash", {**here, "command": "echo to stdout; echo to stderr >&2"})
        gateway.call("exec_command", {**here, "command": ["sh", "-c", "echo >/dev/stdout"]})
        gateway.call("read", {**here, "path": "missing"})
        gateway.send(b"not json")
        assert gateway.receive()["error", "code"] == -32700
        code, rest = gateway.leave()
        assert code == 0
        for line in rest.splitlines():
            assert json.loads(line)["jsonrpc"] == "2.0"
        assert "tool=bash" in gateway.said()
        assert "in memory" in gateway.said()


async def test_http_prints_nothing_on_stdout(tmp_path: Path, config: Path) -> None:
    out = tmp_path / "stdout.txt"
    wrapper = ("sh", "-c", f'exec "$@" >{out}', "sh")
    with serving(tmp_path / "stderr.txt", "--config", str(config), wrapper=wrapper) as server:
        async with over_http(server.url) as session:
            await session.call("workspace_info")
        assert server.end() == 0
        assert "serving MCP" in server.said()
    assert out.read_bytes() == b""


async def test_the_same_work_done_over_each_transport_leaves_the_same(cell_space: Space) -> None:
    await cell_space.patch("*** Add File: d/a.txt", "+one", "+two")
    read = await cell_space.call("read", path="d/a.txt")
    await cell_space.patch(
        *("*** Update File: d/a.txt", "@@", "-two", "+2"),
        expected_versions={"d/a.txt": read["version"]},
    )
    assert (await cell_space.call("bash", command="cat d/a.txt"))["output"] == "one\n2\n"
    assert cell_space.tree() == {"d": None, "d/a.txt": b"one\n2\n"}


async def test_many_calls_at_once_are_each_answered(cell_space: Space) -> None:
    for number in range(20):
        cell_space.write(f"{number}.txt", str(number))
    found: dict[int, object] = {}

    async def read(number: int) -> None:
        reply = await cell_space.call("read", path=f"{number}.txt")
        found[number] = reply["content"]

    async with anyio.create_task_group() as tasks:
        for number in range(20):
            tasks.start_soon(read, number)
    assert found == {number: str(number) for number in range(20)}


def test_a_file_as_stdin_is_answered_to_its_end(config: Path, tmp_path: Path) -> None:
    script = tmp_path / "script.jsonl"
    script.write_bytes(initialize_body() + b"\n")
    with script.open("rb") as source:
        done = subprocess.run(
            command("serve", "--config", str(config)),
            stdin=source,
            capture_output=True,
            env=environment(),
            timeout=40,
            check=False,
        )
    assert done.returncode == 0
    assert json.loads(done.stdout.splitlines()[0])["result"]["serverInfo"]["name"] == "codespace"
