"""`bash` over a runner without processes: what is collected, cut, filed and survived."""

from collections.abc import AsyncIterator
from dataclasses import dataclass, replace
from itertools import count
from pathlib import Path
from typing import cast

import anyio
import anyio.abc
import pytest

from codespace.domain.errors import CodeSpaceError, ErrorCode
from codespace.domain.ids import ProcessId, WorkspaceId
from codespace.domain.limits import Limits
from codespace.domain.workspace import Workspace
from codespace.gateway.leases import Leases
from codespace.gateway.processes import Processes
from codespace.gateway.shell import Shell, ShellOutcome
from codespace.policy.environment import CommandEnvironment
from codespace.workspace.directory import register
from doubles.fake_runner import EXITED, FakeRunner, unknown_process

pytestmark = pytest.mark.anyio

SMALL = replace(
    Limits(), bash_output_max_bytes=10, bash_output_max_lines=3, bash_full_output_max_bytes=40
)


@dataclass(frozen=True, slots=True)
class World:
    """A shell whose commands are the runner's arrangement."""

    root: Path
    runner: FakeRunner
    shell: Shell
    workspace: Workspace

    async def run(self, *chunks: str, timeout_ms: int | None = None) -> ShellOutcome:
        self.runner.chunks = list(chunks)
        return await self.shell.run(self.workspace, "echo hi", timeout_ms=timeout_ms)

    def filed(self, outcome: ShellOutcome) -> str:
        assert outcome.full_output_path is not None
        return (self.root / outcome.full_output_path).read_text(encoding="utf-8")

    @property
    def files(self) -> list[Path]:
        return list(self.root.rglob("*"))


@pytest.fixture
async def world(tmp_path: Path) -> AsyncIterator[World]:
    runner, numbers = FakeRunner(), count(1)

    async def is_live(process_id: ProcessId) -> bool:
        return False

    processes = Processes(
        runner,
        Leases(is_live),
        SMALL,
        CommandEnvironment(home="/"),
        mint=lambda prefix: f"{prefix}{next(numbers)}",
    )
    async with anyio.create_task_group() as tasks:
        yield World(
            tmp_path,
            runner,
            Shell(processes, SMALL, anyio.CapacityLimiter(1), tasks),
            Workspace(WorkspaceId("demo"), register(str(tmp_path))),
        )
        tasks.cancel_scope.cancel()


async def test_the_text_is_run_by_bash_without_stdin_and_at_the_readers_pace(world: World) -> None:
    await world.run(timeout_ms=5)
    request = world.runner.started[0]
    assert request.argv == ("bash", "-c", "echo hi")
    assert (request.stdin, request.paced, request.tty) == ("null", True, False)
    assert request.time_limit_ms == 5


async def test_short_output_is_whole_and_leaves_no_file(world: World) -> None:
    outcome = await world.run("one\n", "two\n")
    assert (outcome.output, outcome.truncated) == ("one\ntwo\n", False)
    assert outcome.full_output_path is None
    assert outcome.state == EXITED
    assert outcome.process_id == "proc-1"
    assert outcome.wall_time_seconds >= 0
    assert world.files == []


async def test_output_of_exactly_the_limit_is_whole(world: World) -> None:
    outcome = await world.run("12345", "67890")
    assert (outcome.output, outcome.truncated) == ("1234567890", False)
    assert world.files == []


async def test_output_over_the_byte_limit_keeps_its_end_and_files_all_of_it(world: World) -> None:
    outcome = await world.run("12345", "67890", "abc")
    assert (outcome.output, outcome.truncated) == ("4567890abc", True)
    assert world.filed(outcome) == "1234567890abc"


async def test_output_over_the_line_limit_is_filed_though_it_is_short(world: World) -> None:
    outcome = await world.run("1\n2\n3\n4\n")
    assert (outcome.output, outcome.truncated) == ("2\n3\n4\n", True)
    assert world.filed(outcome) == "1\n2\n3\n4\n"


async def test_few_characters_of_many_bytes_are_filed_too(world: World) -> None:
    outcome = await world.run("€€€€")
    assert (outcome.output, outcome.truncated) == ("€€€", True)
    assert world.filed(outcome) == "€€€€"


async def test_output_that_comes_in_many_pieces_is_filed_in_order(world: World) -> None:
    pieces = [f"{number:02}\n" for number in range(13)]
    outcome = await world.run(*pieces)
    assert world.filed(outcome) == "".join(pieces)


async def test_the_file_has_an_end_and_says_so(world: World) -> None:
    outcome = await world.run("x" * 30, "y" * 30, "z" * 30)
    assert world.filed(outcome) == (
        "x" * 30 + "y" * 10 + "\n[the rest of the output was not kept]\n"
    )
    assert outcome.output == "z" * 10


async def test_output_that_cannot_be_filed_costs_only_the_file(world: World) -> None:
    (world.root / ".codespace").write_text("in the way", encoding="utf-8")
    outcome = await world.run("x" * 30)
    assert (outcome.output, outcome.truncated) == ("x" * 10, True)
    assert outcome.full_output_path is None


async def test_reading_goes_on_from_where_it_was(world: World) -> None:
    await world.run("é", "ab")
    at_once, patience = SMALL.output_chunk_max_bytes, SMALL.wait_max_ms
    assert world.runner.asked == [
        ("start",),
        ("read", "proc-1", 0, at_once, patience),
        ("read", "proc-1", 2, at_once, patience),
        ("status", "proc-1", 0),
    ]


async def test_a_command_that_did_not_start_is_the_calls_error(world: World) -> None:
    world.runner.failures["start"] = CodeSpaceError(ErrorCode.PROCESS_SPAWN_FAILED, "No bash.")
    with pytest.raises(CodeSpaceError) as caught:
        await world.run()
    assert caught.value.code is ErrorCode.PROCESS_SPAWN_FAILED


async def test_a_runner_that_is_lost_meanwhile_leaves_what_came_and_an_unknown_end(
    world: World,
) -> None:
    world.runner.lose("read")
    outcome = await world.run("some")
    assert (outcome.output, outcome.truncated) == ("some", False)
    assert outcome.state.termination == "unknown"
    assert (outcome.state.exit_code, outcome.state.eof) == (None, False)
    assert outcome.state.output_total == 4


async def test_a_start_that_was_lost_is_an_unknown_end_and_not_a_refusal(world: World) -> None:
    world.runner.lose("start")
    world.runner.failures["read"] = unknown_process()
    outcome = await world.run()
    assert (outcome.output, outcome.state.termination) == ("", "unknown")


async def test_another_refusal_in_between_is_the_calls_error(world: World) -> None:
    world.runner.failures["status"] = CodeSpaceError(ErrorCode.TIMEOUT, "Too slow.")
    with pytest.raises(CodeSpaceError) as caught:
        await world.run("x" * 30)
    assert caught.value.code is ErrorCode.TIMEOUT


async def test_a_bug_in_collecting_is_the_calls_and_leaves_the_gateway_running(
    world: World,
) -> None:
    world.runner.failures["status"] = ZeroDivisionError()
    with pytest.raises(ZeroDivisionError):
        await world.run()
    world.runner.failures.clear()
    assert (await world.run("fine")).output == "fine"


async def test_a_client_that_leaves_does_not_stop_the_collecting(world: World) -> None:
    world.runner.holds["read"] = anyio.Event()
    async with anyio.create_task_group() as client:
        client.start_soon(world.run, "x" * 30)
        await anyio.wait_all_tasks_blocked()
        client.cancel_scope.cancel()
    world.runner.holds.pop("read").set()
    with anyio.fail_after(5):
        while not any(asked[0] == "status" for asked in world.runner.asked):
            await anyio.sleep(0)
    assert world.runner.chunks == []


async def test_a_script_that_is_cancelled_ends_its_command_before_it_goes_on(
    world: World,
) -> None:
    world.runner.holds["read"] = anyio.Event()
    ended: list[tuple[object, ...]] = []

    async def call() -> None:
        try:
            await world.shell.run(world.workspace, "sleep 9", timeout_ms=None, owned=True)
        finally:
            ended.extend(world.runner.asked)

    async with anyio.create_task_group() as script:
        script.start_soon(call)
        await anyio.wait_all_tasks_blocked()
        script.cancel_scope.cancel()
        world.runner.holds["read"].set()
    assert ("terminate", "proc-1") in ended
    assert ended[-1][0] == "status", "the end of the command was waited for"


async def test_a_gateway_that_ends_tells_the_call_rather_than_letting_it_wait(
    world: World,
) -> None:
    world.runner.holds["read"] = anyio.Event()
    ended: list[BaseException] = []

    async def gateway(*, task_status: anyio.abc.TaskStatus[anyio.abc.TaskGroup]) -> None:
        async with anyio.create_task_group() as tasks:
            task_status.started(tasks)
            await anyio.sleep_forever()

    async def call(shell: Shell) -> None:
        try:
            await shell.run(world.workspace, "sleep 9", timeout_ms=None)
        except RuntimeError as error:
            ended.append(error)

    async with anyio.create_task_group() as outside:
        tasks = cast("anyio.abc.TaskGroup", await outside.start(gateway))
        outside.start_soon(call, replace(world.shell, tasks=tasks))
        await anyio.wait_all_tasks_blocked()
        tasks.cancel_scope.cancel()
    assert len(ended) == 1
