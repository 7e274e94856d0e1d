"""The process tools over a runner without processes: what they ask it, what they make of it."""

from collections.abc import Mapping
from dataclasses import replace

import pytest

from binding import check_binding
from codespace.domain.errors import CodeSpaceError, ErrorCode
from codespace.domain.ids import ProcessId, WorkspaceId
from codespace.domain.limits import Limits
from codespace.domain.tool import Effect, Json, Tool
from codespace.domain.workspace import Profile, Root, Workspace
from codespace.gateway.dispatch import Dispatcher
from codespace.gateway.leases import Leases
from codespace.gateway.processes import Processes
from codespace.gateway.toolbox import Toolbox
from codespace.gateway.tools.process import ProcessTools
from codespace.policy.environment import CommandEnvironment
from codespace.runner.api import ProcessState
from doubles.fake_runner import EXITED, LIVE, FakeRunner
from schemas import fits

DEMO = Workspace(WorkspaceId("demo"), Root("/demo", 1, 2), Profile.WORKSPACE_WRITE)


def family(runner: FakeRunner) -> list[Tool]:
    async def is_live(process_id: ProcessId) -> bool:
        return False

    processes = Processes(
        runner, Leases(is_live), Limits(), CommandEnvironment(home="/"), mint=lambda prefix: prefix
    )
    return ProcessTools(processes, Limits()).tools()


TOOLS = {tool.name: tool for tool in family(FakeRunner())}


async def call(runner: FakeRunner, name: str, **arguments: object) -> Json:
    """Call a tool of the family and return what it answers, which fits its schema."""
    toolbox = Toolbox(family(runner))
    outcome = await Dispatcher(toolbox, {DEMO.workspace_id: DEMO}).call(name, arguments)
    tool = toolbox.get(name)
    assert tool is not None
    assert fits(tool.output_schema, outcome.body)
    return outcome.body


@pytest.mark.parametrize("name", TOOLS)
def test_the_schema_and_the_binding_say_the_same(name: str) -> None:
    check_binding(TOOLS[name])


def test_looking_reads_and_everything_else_executes() -> None:
    assert {name: tool.effect for name, tool in TOOLS.items()} == {
        "exec_command": Effect.EXECUTE,
        "read_process": Effect.READ,
        "process_status": Effect.READ,
        "write_stdin": Effect.EXECUTE,
        "process_resize": Effect.EXECUTE,
        "terminate_process": Effect.EXECUTE,
    }


@pytest.mark.anyio
async def test_a_command_is_started_as_it_was_given() -> None:
    runner = FakeRunner()
    answer = await call(runner, "exec_command", workspace_id="demo", command=["a", "b c"], tty=True)
    assert answer == {"process_id": "proc-", "dispatch_status": "confirmed"}
    assert runner.started[0].argv == ("a", "b c")
    assert runner.started[0].tty
    assert (runner.started[0].stdin, runner.started[0].paced) == ("pipe", False)


@pytest.mark.anyio
async def test_a_lost_start_has_a_handle_and_says_that_it_is_unknown() -> None:
    runner = FakeRunner()
    runner.lose("start")
    answer = await call(runner, "exec_command", workspace_id="demo", command=["a"])
    assert answer == {"process_id": "proc-", "dispatch_status": "unknown"}


@pytest.mark.anyio
async def test_output_is_read_from_the_cursor_within_the_limit() -> None:
    runner = FakeRunner(chunks=["h€llo"])
    answer = await call(runner, "read_process", process_id="proc-1", cursor=5, wait_ms=7)
    assert answer == {
        "process_id": "proc-1",
        "cursor": 12,
        "chunk": "h€llo",
        "eof": True,
        "output_lost": False,
        "retained_from": 0,
    }
    assert runner.asked == [("read", "proc-1", 5, Limits().output_chunk_max_bytes, 7)]


@pytest.mark.anyio
async def test_reading_begins_at_the_start_and_waits_for_nothing() -> None:
    runner = FakeRunner()
    await call(runner, "read_process", process_id="proc-1")
    assert runner.asked == [("read", "proc-1", 0, Limits().output_chunk_max_bytes, 0)]


@pytest.mark.parametrize(
    ("state", "told"),
    [
        (LIVE, {"state": "running", "eof": False}),
        (EXITED, {"state": "exited", "termination": "exited", "exit_code": 0, "eof": True}),
        (
            replace(EXITED, exit_code=None, signal=9),
            {"state": "exited", "termination": "exited", "signal": 9, "eof": True},
        ),
        (
            replace(EXITED, termination="timeout", exit_code=None),
            {"state": "exited", "termination": "timeout", "eof": True},
        ),
    ],
)
@pytest.mark.anyio
async def test_a_state_is_told_with_only_what_is_known(
    state: ProcessState, told: Mapping[str, object]
) -> None:
    runner = FakeRunner(state=replace(state, output_total=9, output_retained_from=4))
    answer = await call(runner, "process_status", process_id="proc-1", wait_ms=30_000)
    assert answer == {
        "process_id": "proc-1",
        "output_total": 9,
        "output_retained_from": 4,
        **told,
    }
    assert runner.asked == [("status", "proc-1", 30_000)]


@pytest.mark.anyio
async def test_text_reaches_stdin_as_utf_8() -> None:
    runner = FakeRunner()
    assert await call(runner, "write_stdin", process_id="p", data="é\n") == {"ok": True}
    assert await call(runner, "write_stdin", process_id="p", data="", close=True) == {"ok": True}
    assert runner.asked == [("write", "p", b"\xc3\xa9\n", False), ("write", "p", b"", True)]


@pytest.mark.anyio
async def test_half_a_character_never_reaches_stdin() -> None:
    runner = FakeRunner()
    answer = await call(runner, "write_stdin", process_id="p", data="a\ud800")
    assert answer["code"] == "INVALID_ARGUMENT"
    assert runner.asked == []


@pytest.mark.anyio
async def test_a_terminal_is_resized_and_the_size_told() -> None:
    runner = FakeRunner()
    answer = await call(runner, "process_resize", process_id="p", rows=50.0, cols=132)
    assert answer == {"ok": True, "rows": 50, "cols": 132}
    assert runner.asked == [("resize", "p", 50, 132)]


@pytest.mark.anyio
async def test_a_process_is_asked_to_end() -> None:
    runner = FakeRunner()
    assert await call(runner, "terminate_process", process_id="p") == {"ok": True}
    assert runner.asked == [("terminate", "p")]


HANDLES: list[tuple[str, str, dict[str, object]]] = [
    ("read_process", "read", {}),
    ("process_status", "status", {}),
    ("write_stdin", "write", {"data": "x"}),
    ("process_resize", "resize", {"rows": 1, "cols": 1}),
    ("terminate_process", "terminate", {}),
]


@pytest.mark.parametrize(("name", "method", "arguments"), HANDLES)
@pytest.mark.anyio
async def test_a_handle_of_a_lost_runner_is_not_found(
    name: str, method: str, arguments: dict[str, object]
) -> None:
    runner = FakeRunner()
    runner.lose(method)
    answer = await call(runner, name, process_id="p", **arguments)
    assert answer["code"] == "PROCESS_NOT_FOUND"


@pytest.mark.parametrize(("name", "method", "arguments"), HANDLES)
@pytest.mark.anyio
async def test_what_the_runner_refuses_is_answered(
    name: str, method: str, arguments: dict[str, object]
) -> None:
    runner = FakeRunner()
    runner.failures[method] = CodeSpaceError(ErrorCode.TIMEOUT, "Too slow.", details={"written": 3})
    answer = await call(runner, name, process_id="p", **arguments)
    assert answer == {"code": "TIMEOUT", "message": "Too slow.", "details": {"written": 3}}


@pytest.mark.parametrize(
    ("name", "arguments", "place"),
    [
        ("read_process", {"cursor": -1}, "cursor"),
        ("read_process", {"cursor": 2**53}, "cursor"),
        ("read_process", {"wait_ms": 30_001}, "wait_ms"),
        ("process_status", {"wait_ms": -1}, "wait_ms"),
        ("process_resize", {"rows": 0, "cols": 1}, "rows"),
        ("process_resize", {"rows": 1, "cols": 1_001}, "cols"),
        ("write_stdin", {"data": "x" * (1024 * 1024 + 1)}, "data"),
    ],
)
@pytest.mark.anyio
async def test_what_is_out_of_bounds_never_reaches_the_runner(
    name: str, arguments: dict[str, object], place: str
) -> None:
    runner = FakeRunner()
    answer = await call(runner, name, process_id="p", **arguments)
    assert answer["code"] == "INVALID_ARGUMENT"
    assert isinstance(answer["details"], dict)
    assert answer["details"]["path"] == place
    assert runner.asked == []


@pytest.mark.anyio
async def test_a_shell_line_in_place_of_a_list_is_told_where_it_belongs() -> None:
    body = await call(FakeRunner(), "exec_command", workspace_id="demo", command="ls -l")
    assert body["code"] == "INVALID_ARGUMENT"
    assert body["message"] == (
        'exec_command: command: Should be a list such as ["ls", "-l"]; the tool bash takes a'
        " shell line."
    )
