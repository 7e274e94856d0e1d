import anyio
import pytest

from codespace.domain.errors import CodeSpaceError, ErrorCode
from codespace.domain.ids import OperationId, ProcessId, WorkspaceId
from codespace.gateway.leases import Leases

pytestmark = pytest.mark.anyio

DEMO, OTHER = WorkspaceId("demo"), WorkspaceId("other")
PROCESS, PATCH = ProcessId("proc-1"), OperationId("op-1")


class World:
    """Processes that live, and a place to act while somebody asks whether one does."""

    def __init__(self) -> None:
        self.live: set[ProcessId] = set()
        self.asked = 0
        self.leases = Leases(self.is_live)
        self.while_asking = anyio.Event()
        self.goes_on = anyio.Event()
        self.goes_on.set()

    async def is_live(self, process_id: ProcessId) -> bool:
        self.asked += 1
        self.while_asking.set()
        await self.goes_on.wait()
        return process_id in self.live


@pytest.fixture
def world() -> World:
    return World()


async def busy(world: World) -> dict[str, object]:
    with pytest.raises(CodeSpaceError) as caught:
        await world.leases.hold_for_patch(DEMO, OperationId("op-late"))
    assert caught.value.code is ErrorCode.WORKSPACE_BUSY
    return caught.value.details


async def test_a_running_patch_is_in_the_way_of_all_others(world: World) -> None:
    await world.leases.hold_for_patch(DEMO, PATCH)
    assert await busy(world) == {"holder": {"kind": "patch", "id": "op-1"}}
    with pytest.raises(CodeSpaceError):
        await world.leases.hold_for_process(DEMO, PROCESS)


async def test_each_workspace_has_its_own_lease(world: World) -> None:
    await world.leases.hold_for_patch(DEMO, PATCH)
    await world.leases.hold_for_patch(OTHER, OperationId("op-2"))


async def test_a_released_lease_is_free(world: World) -> None:
    await world.leases.hold_for_patch(DEMO, PATCH)
    world.leases.release(DEMO, PATCH)
    await world.leases.hold_for_patch(DEMO, OperationId("op-2"))


async def test_only_the_holder_can_release(world: World) -> None:
    await world.leases.hold_for_patch(DEMO, PATCH)
    world.leases.release(DEMO, OperationId("op-2"))
    world.leases.release(OTHER, PATCH)
    await busy(world)


async def test_a_live_process_is_in_the_way_until_it_is_gone(world: World) -> None:
    await world.leases.hold_for_process(DEMO, PROCESS)
    world.leases.started(DEMO, PROCESS)
    world.live.add(PROCESS)
    assert await busy(world) == {"holder": {"kind": "process", "id": "proc-1"}}
    world.live.clear()
    await world.leases.hold_for_patch(DEMO, PATCH)


async def test_a_process_that_is_starting_is_not_taken_for_dead(world: World) -> None:
    await world.leases.hold_for_process(DEMO, PROCESS)
    await busy(world)
    assert world.asked == 0


async def test_a_start_that_failed_gives_the_lease_back(world: World) -> None:
    await world.leases.hold_for_process(DEMO, PROCESS)
    world.leases.release(DEMO, PROCESS)
    world.leases.started(DEMO, PROCESS)
    await world.leases.hold_for_patch(DEMO, PATCH)


async def test_two_that_find_a_dead_process_do_not_both_get_its_lease(world: World) -> None:
    await world.leases.hold_for_process(DEMO, PROCESS)
    world.leases.started(DEMO, PROCESS)
    world.goes_on = anyio.Event()
    got: list[str] = []

    async def ask(operation_id: str) -> None:
        try:
            await world.leases.hold_for_patch(DEMO, OperationId(operation_id))
        except CodeSpaceError as error:
            got.append(error.code)
        else:
            got.append(operation_id)

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(ask, "op-2")
        tasks.start_soon(ask, "op-3")
        await world.while_asking.wait()
        world.goes_on.set()
    assert sorted(got) == sorted([ErrorCode.WORKSPACE_BUSY, got[0]])
    assert len(got) == 2


async def test_the_holder_is_known(world: World) -> None:
    assert await world.leases.holder(DEMO) is None
    await world.leases.hold_for_patch(DEMO, PATCH)
    holder = await world.leases.holder(DEMO)
    assert holder is not None
    assert holder.id == PATCH


async def test_who_only_looks_takes_nothing(world: World) -> None:
    await world.leases.require_free(DEMO)
    await world.leases.hold_for_patch(DEMO, PATCH)
    with pytest.raises(CodeSpaceError) as caught:
        await world.leases.require_free(DEMO)
    assert caught.value.code is ErrorCode.WORKSPACE_BUSY
    await world.leases.require_free(OTHER)
    world.leases.release(DEMO, PATCH)
    await world.leases.require_free(DEMO)
