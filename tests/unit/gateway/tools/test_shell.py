"""`bash` as a tool: what it answers."""

from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path

import anyio
import pytest

from binding import check_binding
from codespace.domain.ids import ProcessId, WorkspaceId
from codespace.domain.limits import Limits
from codespace.domain.tool import Call, Effect, Json, Tool, define
from codespace.domain.workspace import Profile, Workspace
from codespace.gateway.dispatch import Dispatcher
from codespace.gateway.leases import Leases
from codespace.gateway.processes import Processes
from codespace.gateway.shell import Shell
from codespace.gateway.toolbox import Toolbox
from codespace.gateway.tools.shell import BashParams, BashResult, ShellTools
from codespace.policy.environment import CommandEnvironment
from codespace.workspace.directory import register
from doubles.fake_runner import EXITED, FakeRunner
from schemas import fits


@pytest.fixture
async def tasks() -> AsyncIterator[anyio.abc.TaskGroup]:
    async with anyio.create_task_group() as group:
        yield group
        group.cancel_scope.cancel()


async def no_process(process_id: ProcessId) -> bool:
    return False


def tool(runner: FakeRunner, tasks: anyio.abc.TaskGroup) -> Tool:
    processes = Processes(
        runner,
        Leases(no_process),
        Limits(),
        CommandEnvironment(home="/"),
        mint=lambda prefix: f"{prefix}1",
    )
    (only,) = ShellTools(Shell(processes, Limits(), anyio.CapacityLimiter(1), tasks)).tools()
    return only


async def call(
    root: Path, runner: FakeRunner, tasks: anyio.abc.TaskGroup, **arguments: object
) -> Json:
    bash = tool(runner, tasks)
    demo = Workspace(WorkspaceId("demo"), register(str(root)), Profile.WORKSPACE_WRITE)
    outcome = await Dispatcher(Toolbox([bash]), {demo.workspace_id: demo}).call(
        "bash", {"workspace_id": "demo", **arguments}
    )
    assert fits(bash.output_schema, outcome.body)
    return outcome.body


def test_the_schema_and_the_binding_say_the_same() -> None:
    async def never(params: BashParams, call: Call) -> BashResult:
        raise NotImplementedError

    bound = define("bash", Effect.EXECUTE, BashParams, BashResult, never, title="bash")
    check_binding(bound)


@pytest.mark.anyio
async def test_a_command_that_succeeds(tmp_path: Path, tasks: anyio.abc.TaskGroup) -> None:
    runner = FakeRunner(chunks=["hi\n"])
    answer = dict(await call(tmp_path, runner, tasks, command="echo hi", timeout_ms=50))
    assert answer.pop("wall_time_seconds") == pytest.approx(0, abs=60)
    assert answer == {
        "output": "hi\n",
        "truncated": False,
        "exit_code": 0,
        "termination": "exited",
        "process_id": "proc-1",
    }
    assert runner.started[0].argv == ("bash", "-c", "echo hi")
    assert runner.started[0].time_limit_ms == 50


@pytest.mark.anyio
async def test_a_failing_command_is_a_result(tmp_path: Path, tasks: anyio.abc.TaskGroup) -> None:
    runner = FakeRunner(state=replace(EXITED, exit_code=3))
    answer = await call(tmp_path, runner, tasks, command="exit 3")
    assert (answer["exit_code"], answer["termination"]) == (3, "exited")
    assert "code" not in answer


@pytest.mark.parametrize("termination", ["timeout", "terminated", "unknown"])
@pytest.mark.anyio
async def test_a_command_that_was_ended_has_no_exit_code(
    tmp_path: Path, tasks: anyio.abc.TaskGroup, termination: str
) -> None:
    state = replace(EXITED, exit_code=None, termination=termination)
    answer = await call(tmp_path, FakeRunner(state=state), tasks, command="sleep 9")
    assert answer["termination"] == termination
    assert "exit_code" not in answer


@pytest.mark.anyio
async def test_a_signal_of_its_own_is_told(tmp_path: Path, tasks: anyio.abc.TaskGroup) -> None:
    state = replace(EXITED, exit_code=None, signal=9)
    answer = await call(tmp_path, FakeRunner(state=state), tasks, command="kill -9 $$")
    assert (answer["termination"], answer["signal"]) == ("exited", 9)
    assert "exit_code" not in answer


@pytest.mark.anyio
async def test_long_output_is_cut_and_the_rest_can_be_read(
    tmp_path: Path, tasks: anyio.abc.TaskGroup
) -> None:
    runner = FakeRunner(chunks=["x" * 60_000])
    answer = await call(tmp_path, runner, tasks, command="yes")
    assert answer["truncated"] is True
    assert answer["output"] == "x" * 51_200
    assert answer["full_output_path"] == ".codespace/output/proc-1.txt"
    assert (tmp_path / ".codespace/output/proc-1.txt").stat().st_size == 60_000


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        ({"command": "a\0b"}, "INVALID_COMMAND"),
        ({"command": "x" * 128 * 1024}, "LIMIT_EXCEEDED"),
        ({"command": "\ud800"}, "INVALID_ARGUMENT"),
        ({"command": "ls", "timeout_ms": 0}, "INVALID_ARGUMENT"),
        ({"command": ["ls"]}, "INVALID_ARGUMENT"),
    ],
)
@pytest.mark.anyio
async def test_what_cannot_run_starts_nothing(
    tmp_path: Path, tasks: anyio.abc.TaskGroup, arguments: dict[str, object], code: str
) -> None:
    runner = FakeRunner()
    assert (await call(tmp_path, runner, tasks, **arguments))["code"] == code
    assert runner.asked == []


@pytest.mark.anyio
async def test_it_may_do_anything_that_a_command_may(tasks: anyio.abc.TaskGroup) -> None:
    bash = tool(FakeRunner(), tasks)
    assert (bash.effect, bash.idempotent) == (Effect.EXECUTE, False)
