"""Clients come and go, and the gateway ends: what happens to processes, and to the exit code."""

import os
import signal
from collections.abc import Generator
from pathlib import Path

import anyio
import pytest

from codespace.domain.errors import ErrorCode
from contract.answers import Reply
from contract.houses import House, over_http, over_stdio
from contract.raw import RawStdio, http_burst, http_request, initialize_body, mcp_headers, raw_stdio
from contract.servers import serving, until
from contract.session import Space
from contract.subtrees import marked

STUBBORN = "trap '' TERM HUP INT; sleep 600; sleep 600"


RUNNERS = ("in-process", "uds")


def stubborn(mark: str) -> list[str]:
    """Return a command that leaves a family that ignores every request to end."""
    script = f": {mark}; {STUBBORN}"
    quoted = script.replace("'", '"')
    family = f"setsid sh -c '{quoted}' & (setsid sh -c ': {mark}; sleep 600; :' &)"
    return ["sh", "-c", f": {mark}; {family}; echo started; {STUBBORN}"]


@pytest.fixture(params=RUNNERS)
def gateway(request: pytest.FixtureRequest, tmp_path: Path, config: Path) -> Generator[RawStdio]:
    ledger = str(tmp_path / "ledger.db")
    arguments = ("--config", str(config), "--operations-db", ledger, "--log-level", "INFO")
    arguments = (*arguments, "--runner", request.param)
    with raw_stdio(tmp_path / "stderr.txt", *arguments) as gateway:
        gateway.open()
        yield gateway


def start_stubborn(gateway: RawStdio, mark: str) -> str:
    started = gateway.call("exec_command", {"workspace_id": "default", "command": stubborn(mark)})
    process_id = started.text("process_id")
    gateway.call("read_process", {"process_id": process_id, "wait_ms": 30_000})
    until(lambda: len(marked(mark)) >= 3, "the family has started")
    return process_id


@pytest.mark.requirement("shutdown.stdio-eof", "transports.stdout-is-mcp")
def test_the_end_of_stdin_ends_the_gateway_and_every_process(gateway: RawStdio) -> None:
    mark = f"eof-{os.getpid()}"
    start_stubborn(gateway, mark)
    assert gateway.leave() == (0, b"")
    assert marked(mark) == []
    assert "Traceback" not in gateway.said()


@pytest.mark.requirement("shutdown.sigterm", "shutdown.sigint")
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_ends_the_gateway_and_every_process(
    gateway: RawStdio, number: signal.Signals
) -> None:
    mark = f"{number.name}-{os.getpid()}"
    start_stubborn(gateway, mark)
    assert gateway.end(number) == (0, b"")
    assert marked(mark) == []
    assert "Traceback" not in gateway.said()


@pytest.mark.requirement("shutdown.sigterm", "shutdown.sigint", "shutdown.store-is-closed")
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
@pytest.mark.anyio
async def test_a_signal_ends_an_http_gateway_with_calls_in_flight(
    tmp_path: Path, config: Path, root: Path, number: signal.Signals
) -> None:
    mark = f"http-{number.name}-{os.getpid()}"
    ledger = tmp_path / "state" / "ledger.db"
    arguments = ("--config", str(config), "--operations-db", str(ledger))
    with serving(tmp_path / "stderr.txt", *arguments) as server:
        async with over_http(server.url) as session:
            space = Space(session, "default", root)
            await space.patch("*** Add File: a.txt", "+a", operation_key="before")
            process_id = await space.start(*stubborn(mark))
            await space.until_said(process_id, "started")
            ends: list[Reply] = []

            async def wait() -> None:
                ends.append(
                    await session.call("process_status", process_id=process_id, wait_ms=30_000)
                )

            async with anyio.create_task_group() as tasks:
                tasks.start_soon(wait)
                await session.call("workspace_info")
                assert await anyio.to_thread.run_sync(server.end, number) == 0
            assert ends[0]["state"] == "exited"
        assert marked(mark) == []
        assert "Traceback" not in server.said()
    assert not ledger.with_name("ledger.db-wal").exists(), "the store was not closed"
    async with over_stdio(config, "2025-11-25", "--operations-db", str(ledger)) as session:
        record = await session.call("operation_status", operation_key="before")
        assert record["status"] == "applied"


@pytest.mark.requirement("shutdown.no-new-calls")
def test_a_gateway_that_shuts_down_runs_nothing_new(gateway: RawStdio, root: Path) -> None:
    waiting = gateway.request(
        "tools/call",
        {"name": "bash", "arguments": {"workspace_id": "default", "command": STUBBORN}},
    )
    until(lambda: bool(marked(STUBBORN)), "bash runs")
    gateway.process.send_signal(signal.SIGTERM)
    late = gateway.request(
        "tools/call",
        {
            "name": "apply_patch",
            "arguments": {
                "workspace_id": "default",
                "patch": "*** Begin Patch\n*** Add File: late.txt\n+x\n*** End Patch",
                "operation_key": f"late {waiting}",
            },
        },
    )
    code, rest = gateway.ended()
    assert code == 0
    applied = b'"applied"' in rest
    # The signal and the call race; what was answered is what happened.
    assert (root / "late.txt").exists() is applied
    assert late > waiting


@pytest.mark.requirement("shutdown.sigkill-leaves-no-process")
@pytest.mark.parametrize("runner", RUNNERS)
@pytest.mark.parametrize("transport", ["stdio", "http"])
@pytest.mark.anyio
async def test_a_killed_gateway_leaves_no_process_behind(
    tmp_path: Path, config: Path, root: Path, transport: str, runner: str
) -> None:
    mark = f"killed-{transport}-{runner}-{os.getpid()}"
    arguments = ("--config", str(config), "--runner", runner)
    if transport == "stdio":
        with raw_stdio(tmp_path / "stderr.txt", *arguments) as gateway:
            gateway.open()
            start_stubborn(gateway, mark)
            gateway.process.kill()
            until(lambda: marked(mark) == [], "the family is gone")
        return
    with serving(tmp_path / "stderr.txt", *arguments) as server:
        async with over_http(server.url) as session:
            space = Space(session, "default", root)
            await space.until_said(await space.start(*stubborn(mark)), "started")
            assert len(marked(mark)) >= 2
            assert await anyio.to_thread.run_sync(server.end, signal.SIGKILL) == -signal.SIGKILL
        until(lambda: marked(mark) == [], "the family is gone")


@pytest.mark.requirement("clients.disconnect-changes-nothing")
@pytest.mark.anyio
async def test_a_process_outlives_the_client_that_started_it(house: House, space: Space) -> None:
    async with over_http(house.url) as leaving:
        process_id = await Space(leaving, space.id, space.root).start_shell(
            "echo started; read line; echo $line; exit 3"
        )
    await space.until_said(process_id, "started")
    await space.session.call("write_stdin", process_id=process_id, data="from another\n")
    assert (await space.ended(process_id))["exit_code"] == 3
    assert await space.output(process_id) == "started\nfrom another\n"


@pytest.mark.requirement("clients.disconnect-changes-nothing")
@pytest.mark.parametrize("era", ["2025-11-25", "2026-07-28"])
@pytest.mark.anyio
async def test_a_client_that_leaves_in_mid_call_changes_nothing(
    house: House, space: Space, era: str
) -> None:
    fifo = space.root / "fifo"
    os.mkfifo(fifo)
    command = "touch started; cat fifo; echo finished >result"
    arguments = {"workspace_id": space.id, "command": command}
    async with (
        over_http(house.url, "2025-11-25" if era == "2025-11-25" else "2026-07-28") as leaving,
        anyio.create_task_group() as tasks,
    ):
        tasks.start_soon(leaving.client.call_tool, "bash", arguments)
        with anyio.fail_after(30):
            while not (space.root / "started").exists():
                await anyio.sleep(0.01)
        tasks.cancel_scope.cancel()
    busy = await space.refused(ErrorCode.WORKSPACE_BUSY, "bash", command="true")
    process_id = busy.at("details", "holder").text("id")
    await anyio.to_thread.run_sync(fifo.write_text, "go\n")
    state = await space.ended(process_id)
    assert (state["termination"], state["exit_code"]) == ("exited", 0)
    assert space.text("result") == "finished\n"


@pytest.mark.requirement("clients.session-end-changes-nothing")
@pytest.mark.anyio
async def test_the_end_of_a_session_changes_nothing(house: House, space: Space) -> None:
    opened = http_request(house.url, headers=mcp_headers(), body=initialize_body())
    given = mcp_headers(mcp_session_id=opened.headers["mcp-session-id"])
    call = (
        '{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"exec_command",'
        f'"arguments":{{"workspace_id":"{space.id}","command":["sh","-c","read x; exit 4"]}}}}}}'
    )
    started = http_request(house.url, headers=given, body=call.encode()).message()
    process_id = started.at("result", "structuredContent").text("process_id")
    assert http_request(house.url, "DELETE", headers=given).status == 200
    assert http_request(house.url, headers=given, body=call.encode()).status == 404
    state = await space.session.call("process_status", process_id=process_id)
    assert state["state"] == "running"
    await space.session.call("write_stdin", process_id=process_id, data="\n")
    assert (await space.ended(process_id))["exit_code"] == 4


def test_messages_on_their_way_when_their_session_ends_are_no_error(
    tmp_path: Path, config: Path
) -> None:
    note = b'{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":9}}'
    with serving(tmp_path / "stderr.txt", "--config", str(config)) as server:
        for _ in range(5):
            opened = http_request(server.url, headers=mcp_headers(), body=initialize_body())
            given = mcp_headers(mcp_session_id=opened.headers["mcp-session-id"])
            http_burst(
                server.url,
                [("POST", given, note)] * 4
                + [("DELETE", given, b"")]
                + [("POST", given, note)] * 4,
            )
        assert http_request(server.url, headers=mcp_headers(), body=initialize_body()).status == 200
        assert " ERROR " not in server.said()
