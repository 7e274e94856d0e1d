"""Who may start a command, what becomes of the lease, and what a lost runner means."""

from dataclasses import dataclass, replace
from itertools import count

import anyio
import pytest

from codespace.domain.errors import CodeSpaceError, ErrorCode
from codespace.domain.ids import ProcessId, WorkspaceId
from codespace.domain.limits import Limits
from codespace.domain.workspace import Root, Workspace
from codespace.gateway.leases import Leases
from codespace.gateway.processes import CommandOptions, Processes, check_argv, process_not_found
from codespace.policy.environment import CommandEnvironment
from codespace.runner.api import RunnerLostError
from doubles.fake_runner import LIVE, FakeRunner, unknown_process

pytestmark = pytest.mark.anyio

DEMO = Workspace(WorkspaceId("demo"), Root("/demo", 1, 2))
PLAIN = CommandOptions()
SMALL = replace(
    Limits(), argv_max_count=3, argument_max_bytes=5, argv_max_bytes=9, process_timeout_ms=1_000
)


@dataclass(frozen=True, slots=True)
class World:
    """Processes over a runner that starts nothing."""

    runner: FakeRunner
    leases: Leases
    processes: Processes

    async def busy(self) -> bool:
        """Say whether the workspace's lease is held now."""
        return await self.leases.holder(DEMO.workspace_id) is not None


@pytest.fixture
def world() -> World:
    runner, numbers = FakeRunner(state=LIVE), count(1)

    async def is_live(process_id: ProcessId) -> bool:
        try:
            return (await runner.status(process_id)).running
        except CodeSpaceError:
            return False

    leases = Leases(is_live)
    environment = CommandEnvironment(home="/home/op", passed={"CI": "1"})
    processes = Processes(
        runner, leases, SMALL, environment, mint=lambda prefix: f"{prefix}{next(numbers)}"
    )
    return World(runner, leases, processes)


async def test_a_command_is_handed_to_the_runner_with_the_operators_environment(
    world: World,
) -> None:
    started = await world.processes.start(DEMO, ["ls", "-l"], PLAIN)
    assert (started.process_id, started.dispatch_status) == ("proc-1", "confirmed")
    request = world.runner.started[0]
    assert (request.process_id, request.root) == ("proc-1", DEMO.root)
    assert request.argv == ("ls", "-l")
    assert request.environment["CI"] == "1"
    assert "TERM" not in request.environment
    assert (request.tty, request.paced, request.stdin) == (False, False, "pipe")


async def test_a_terminal_is_told_what_it_is(world: World) -> None:
    await world.processes.start(DEMO, ["top"], CommandOptions(tty=True))
    assert world.runner.started[0].tty
    assert "TERM" in world.runner.started[0].environment


@pytest.mark.parametrize(
    ("asked", "given"), [(None, 1_000), (5, 5), (1_000, 1_000), (9_999, 1_000)]
)
async def test_a_client_can_shorten_the_time_limit_and_never_lengthen_it(
    world: World, asked: int | None, given: int
) -> None:
    await world.processes.start(DEMO, ["ls"], CommandOptions(time_limit_ms=asked))
    assert world.runner.started[0].time_limit_ms == given


async def test_a_live_process_holds_the_lease(world: World) -> None:
    await world.processes.start(DEMO, ["ls"], PLAIN)
    with pytest.raises(CodeSpaceError) as caught:
        await world.processes.start(DEMO, ["ls"], PLAIN)
    assert caught.value.code is ErrorCode.WORKSPACE_BUSY
    assert caught.value.details["holder"] == {"kind": "process", "id": "proc-1"}
    assert len(world.runner.started) == 1


async def test_the_lease_is_free_once_the_process_has_ended(world: World) -> None:
    await world.processes.start(DEMO, ["ls"], PLAIN)
    world.runner.state = replace(LIVE, running=False)
    assert not await world.busy()


async def test_the_lease_is_held_while_the_command_is_being_started(world: World) -> None:
    world.runner.holds["start"] = anyio.Event()
    # The runner does not know the handle yet; that must not look like an end.
    world.runner.failures["status"] = unknown_process()
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(world.processes.start, DEMO, ["ls"], PLAIN)
        await anyio.wait_all_tasks_blocked()
        assert await world.busy()
        world.runner.holds["start"].set()


async def test_a_command_that_did_not_start_leaves_no_lease(world: World) -> None:
    world.runner.failures["start"] = CodeSpaceError(ErrorCode.PROCESS_SPAWN_FAILED, "No.")
    with pytest.raises(CodeSpaceError) as caught:
        await world.processes.start(DEMO, ["ls"], PLAIN)
    assert caught.value.code is ErrorCode.PROCESS_SPAWN_FAILED
    assert not await world.busy()


async def test_a_client_that_leaves_while_it_is_being_started_leaves_no_lease(world: World) -> None:
    world.runner.holds["start"] = anyio.Event()
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(world.processes.start, DEMO, ["ls"], PLAIN)
        await anyio.wait_all_tasks_blocked()
        tasks.cancel_scope.cancel()
    assert not await world.busy()


async def test_a_start_that_was_lost_is_unknown_and_not_refused(world: World) -> None:
    world.runner.lose("start")
    started = await world.processes.start(DEMO, ["ls"], PLAIN)
    assert (started.process_id, started.dispatch_status) == ("proc-1", "unknown")
    # It may run: nothing else may change the workspace until its end is known.
    assert await world.busy()


async def test_a_lost_start_frees_the_lease_once_its_handle_is_unknown(world: World) -> None:
    world.runner.lose("start")
    await world.processes.start(DEMO, ["ls"], PLAIN)
    world.runner.failures["status"] = unknown_process()
    assert not await world.busy()


async def test_a_handle_of_a_lost_runner_is_not_found(world: World) -> None:
    with pytest.raises(CodeSpaceError) as caught:
        async with world.processes.asking(ProcessId("proc-7")):
            raise RunnerLostError
    assert caught.value.code is ErrorCode.PROCESS_NOT_FOUND
    assert "'proc-7'" in caught.value.message


async def test_what_the_runner_refuses_is_passed_on(world: World) -> None:
    refusal = CodeSpaceError(ErrorCode.NOT_A_TTY, "No terminal.")
    world.runner.failures["terminate"] = refusal
    process_id = ProcessId("proc-7")
    with pytest.raises(CodeSpaceError) as caught:
        async with world.processes.asking(process_id) as runner:
            await runner.terminate(process_id)
    assert caught.value is refusal


async def test_a_command_that_no_kernel_could_run_takes_no_lease(world: World) -> None:
    with pytest.raises(CodeSpaceError):
        await world.processes.start(DEMO, [], PLAIN)
    assert world.runner.asked == []
    assert not await world.busy()


def test_a_long_handle_is_cut_in_the_error() -> None:
    assert len(process_not_found(ProcessId("x" * 10_000)).message) < 300


@pytest.mark.parametrize("argv", [[], [""], ["", "x"]])
def test_an_empty_command_is_refused(argv: list[str]) -> None:
    with pytest.raises(CodeSpaceError) as caught:
        check_argv(argv, SMALL)
    assert caught.value.code is ErrorCode.INVALID_COMMAND


def test_a_nul_is_refused_with_its_place() -> None:
    with pytest.raises(CodeSpaceError) as caught:
        check_argv(["a", "b\0c"], SMALL)
    assert caught.value.code is ErrorCode.INVALID_COMMAND
    assert caught.value.details == {"argument": 1}


@pytest.mark.parametrize("argv", [["ls"], ["ls", "", ""], ["12345", "1234"], ["éé", "ab", "éa"]])
def test_what_is_within_the_limits_may_run(argv: list[str]) -> None:
    check_argv(argv, SMALL)


@pytest.mark.parametrize(
    ("argv", "limit"),
    [
        (["a", "b", "c", "d"], "argv_max_count"),
        (["123456"], "argument_max_bytes"),
        (["ééé"], "argument_max_bytes"),
        (["12345", "12345"], "argv_max_bytes"),
        (["éé", "éé", "éa"], "argv_max_bytes"),
    ],
)
def test_what_is_too_long_is_refused_with_its_limit(argv: list[str], limit: str) -> None:
    with pytest.raises(CodeSpaceError) as caught:
        check_argv(argv, SMALL)
    assert caught.value.code is ErrorCode.LIMIT_EXCEEDED
    assert caught.value.details["limit"] == limit
