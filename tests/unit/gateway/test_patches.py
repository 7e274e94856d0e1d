import asyncio
import errno
import json
import threading
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import anyio
import anyio.to_thread
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from codespace.domain.errors import CodeSpaceError, ErrorCode
from codespace.domain.ids import OperationId, OperationKey, ProcessId, WorkspaceId
from codespace.domain.limits import Limits
from codespace.domain.operation import version_of
from codespace.domain.patch import PatchStatus
from codespace.gateway.patches import Patches, PatchOutcome, PatchRequest
from codespace.workspace.directory import register
from doubles.failing_ledger import FailingOperations
from doubles.failing_syscalls import Call, Faults
from doubles.patch_world import DEMO, NOW_MS, PatchWorld, add, delete, patch, patch_world, update
from doubles.trees import Case, contents, regular_files, snapshot

pytestmark = pytest.mark.anyio

CASES = sorted((Path(__file__).parents[2] / "cases" / "patch").glob("*.json"))
CHANGE = patch(update("a.txt", "old", "new"), add("new/b.txt", "b"))


@pytest.fixture
def world(tmp_path: Path) -> Iterator[PatchWorld]:
    with patch_world(tmp_path / "work") as made:
        (made.root / "a.txt").write_text("old\n", encoding="utf-8")
        yield made


@pytest.mark.parametrize("path", CASES, ids=[path.stem for path in CASES])
async def test_each_case_ends_as_it_should_on_a_real_disk(tmp_path: Path, path: Path) -> None:
    case = Case(path.stem, json.loads(path.read_text(encoding="utf-8")))
    with patch_world(tmp_path / "work") as world:
        case.lay_out(world.root)
        before = snapshot(world.root)
        if case.expect["ok"]:
            outcome = await world.apply(case.patch)
            assert outcome.status is PatchStatus.APPLIED
            assert regular_files(world.root) == contents(case, case.expect)
        else:
            error = await world.refused(case.patch)
            assert error.code == case.expect["code"]
            assert snapshot(world.root) == before
            assert world.record(error).status is PatchStatus.REJECTED
        for name in case.names("absent_dirs", case.expect):
            assert not (world.root / name).exists()


def test_the_cases_are_there() -> None:
    assert len(CASES) >= 60


async def test_an_applied_patch_tells_what_it_did(world: PatchWorld) -> None:
    outcome = await world.apply(CHANGE)
    assert (outcome.status, outcome.replayed) == (PatchStatus.APPLIED, False)
    assert outcome.files == ("a.txt", "new/b.txt")
    assert [change.after_version for change in outcome.changes] == [
        version_of(b"new\n"),
        version_of(b"b\n"),
    ]
    assert world.images() == 0


async def test_a_preview_writes_nothing_and_is_recorded(world: PatchWorld) -> None:
    before = snapshot(world.root)
    outcome = await world.apply(CHANGE, check_only=True)
    assert outcome.status is PatchStatus.CHECKED
    assert len(outcome.changes) == 2
    assert snapshot(world.root) == before
    assert world.recorded()[0].status is PatchStatus.CHECKED


async def test_an_expected_version_protects_files_that_the_patch_does_not_touch(
    world: PatchWorld,
) -> None:
    (world.root / "other.txt").write_text("x", encoding="utf-8")
    error = await world.refused(CHANGE, expected={"other.txt": "absent"})
    assert error.code is ErrorCode.VERSION_CONFLICT
    assert error.details["actual"] == version_of(b"x")
    expected = {"a.txt": version_of(b"old\n"), "new/b.txt": "absent"}
    assert (await world.apply(CHANGE, expected=expected)).status is PatchStatus.APPLIED


async def test_the_same_key_returns_the_recorded_result(world: PatchWorld) -> None:
    first = await world.apply(CHANGE, key="k")
    (world.root / "a.txt").write_text("later\n", encoding="utf-8")
    again = await world.apply(CHANGE, key="k")
    assert again.replayed
    assert (again.operation_id, again.files, again.changes) == (
        first.operation_id,
        first.files,
        first.changes,
    )
    assert (world.root / "a.txt").read_text(encoding="utf-8") == "later\n"


async def test_the_same_key_returns_the_recorded_refusal(world: PatchWorld) -> None:
    text = patch(delete("none.txt"))
    first = await world.refused(text, key="k")
    (world.root / "none.txt").write_text("now it is there", encoding="utf-8")
    again = await world.refused(text, key="k")
    assert first.code is ErrorCode.FILE_NOT_FOUND
    assert again.body() == first.body()
    assert again.operation_id is not None


async def test_a_key_used_in_another_directory_is_a_conflict_and_no_replay(
    world: PatchWorld, tmp_path: Path
) -> None:
    await world.apply(CHANGE, key="k")
    other = tmp_path / "other"
    other.mkdir()
    moved = replace(world.workspace, root=register(str(other)))
    request = PatchRequest(patch=CHANGE, operation_key=OperationKey("k"))
    with pytest.raises(CodeSpaceError) as caught:
        await world.patches.apply(moved, request)
    assert caught.value.code is ErrorCode.OPERATION_KEY_CONFLICT
    assert list(other.iterdir()) == []


async def test_more_expected_versions_than_a_patch_may_have_files_are_refused(
    world: PatchWorld,
) -> None:
    versions = {f"f{number}": "absent" for number in range(1_001)}
    with pytest.raises(CodeSpaceError) as caught:
        await world.patches.apply(world.workspace, PatchRequest(CHANGE, versions))
    assert caught.value.code is ErrorCode.LIMIT_EXCEEDED


@pytest.mark.parametrize("check_only", [True, False])
async def test_a_key_used_for_something_else_is_a_conflict_and_mints_nothing(
    world: PatchWorld,
    check_only: bool,  # noqa: FBT001 -- a parameter of the table
) -> None:
    await world.apply(CHANGE, key="k", check_only=not check_only)
    with pytest.raises(CodeSpaceError) as caught:
        await world.apply(CHANGE, key="k", check_only=check_only)
    assert caught.value.code is ErrorCode.OPERATION_KEY_CONFLICT
    assert caught.value.operation_id is None
    assert len(world.recorded()) == 1


async def test_a_replay_needs_no_lease(world: PatchWorld) -> None:
    await world.apply(CHANGE, key="k")
    process = ProcessId("proc-1")
    world.live.add(process)
    await world.leases.hold_for_process(DEMO, process)
    assert (await world.apply(CHANGE, key="k")).replayed


async def test_a_live_process_is_in_the_way_and_nothing_is_minted(world: PatchWorld) -> None:
    process = ProcessId("proc-1")
    world.live.add(process)
    await world.leases.hold_for_process(DEMO, process)
    world.leases.started(DEMO, process)
    for check_only in (False, True):
        with pytest.raises(CodeSpaceError) as caught:
            await world.apply(CHANGE, check_only=check_only)
        assert caught.value.code is ErrorCode.WORKSPACE_BUSY
        assert caught.value.details == {"holder": {"kind": "process", "id": "proc-1"}}
    assert world.recorded() == []
    world.live.clear()
    assert (await world.apply(CHANGE)).status is PatchStatus.APPLIED


class Gate:
    """Stops a patch at its first rename until the test lets it go on."""

    def __init__(self) -> None:
        self.reached = threading.Event()
        self.open = threading.Event()

    def __call__(self, call: Call) -> None:
        if call.name == "rename":
            self.reached.set()
            assert self.open.wait(timeout=30)

    async def until_reached(self) -> None:
        assert await anyio.to_thread.run_sync(self.reached.wait, 30)


@pytest.fixture
def gate() -> Gate:
    return Gate()


@pytest.fixture
def gated(tmp_path: Path, gate: Gate) -> Iterator[PatchWorld]:
    with patch_world(tmp_path / "work", faults=Faults(before=gate)) as made:
        (made.root / "a.txt").write_text("old\n", encoding="utf-8")
        yield made


async def test_two_at_once_under_one_key_execute_once(gated: PatchWorld, gate: Gate) -> None:
    replayed: list[bool] = []

    async def ask() -> None:
        replayed.append((await gated.apply(CHANGE, key="k")).replayed)

    async with anyio.create_task_group() as tasks:
        for _ in range(3):
            tasks.start_soon(ask)
        await gate.until_reached()
        gate.open.set()
    assert sorted(replayed) == [False, True, True]
    assert len(gated.recorded()) == 1


async def test_another_request_under_a_running_key_is_a_conflict(
    gated: PatchWorld, gate: Gate
) -> None:
    task = asyncio.create_task(gated.apply(CHANGE, key="k"))
    await gate.until_reached()
    error = await gated.refused(patch(add("c", "x")), key="k")
    gate.open.set()
    await task
    assert error.code is ErrorCode.OPERATION_KEY_CONFLICT


async def test_a_running_patch_is_in_the_way_of_the_next_at_once(
    gated: PatchWorld, gate: Gate
) -> None:
    task = asyncio.create_task(gated.apply(CHANGE))
    await gate.until_reached()
    error = await gated.refused(patch(add("c", "x")))
    running = await gated.patches.status(operation_id=OperationId("op-1"))
    gate.open.set()
    await task
    assert error.code is ErrorCode.WORKSPACE_BUSY
    assert error.details == {"holder": {"kind": "patch", "id": "op-1"}}
    assert (running.finished_at, running.status) == (None, PatchStatus.UNKNOWN)


async def test_a_client_that_leaves_does_not_stop_its_patch(gated: PatchWorld, gate: Gate) -> None:
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(gated.apply, CHANGE)
        await gate.until_reached()
        tasks.cancel_scope.cancel()
    assert (gated.root / "a.txt").read_text(encoding="utf-8") == "old\n"
    gate.open.set()
    await gated.patches.drain()
    assert (gated.root / "a.txt").read_text(encoding="utf-8") == "new\n"
    assert gated.recorded()[0].status is PatchStatus.APPLIED
    assert await gated.leases.holder(DEMO) is None


async def test_a_task_that_is_cancelled_does_not_stop_its_patch(
    gated: PatchWorld, gate: Gate
) -> None:
    task = asyncio.create_task(gated.apply(CHANGE))
    await gate.until_reached()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    gate.open.set()
    await gated.patches.drain()
    assert gated.recorded()[0].status is PatchStatus.APPLIED


async def test_a_failed_write_is_an_error_that_is_recorded_and_replayed(tmp_path: Path) -> None:
    faults = Faults(fails=lambda call: errno.ENOSPC if call.name == "write" else None)
    with patch_world(tmp_path / "work", faults=faults) as world:
        (world.root / "a.txt").write_text("old\n", encoding="utf-8")
        before = snapshot(world.root)
        error = await world.refused(CHANGE, key="k")
        assert error.code is ErrorCode.FILE_OPERATION_FAILED
        assert error.details["errno"] == "ENOSPC"
        assert error.details["status"] == "failed_rolled_back"
        assert world.record(error).status is PatchStatus.FAILED_ROLLED_BACK
        assert {name: node[3] for name, node in snapshot(world.root).items()} == {
            name: node[3] for name, node in before.items()
        }
        assert world.images() == 0
        faults.fails = lambda _: None
        assert (await world.refused(CHANGE, key="k")).body() == error.body()


async def test_an_end_that_was_not_recorded_is_settled_before_anything_else(
    tmp_path: Path,
) -> None:
    with patch_world(tmp_path / "work") as world:
        (world.root / "a.txt").write_text("old\n", encoding="utf-8")
        ledger = FailingOperations(world.operations.store, {"finish"})
        patches = Patches(
            ledger,
            world.leases,
            Limits(),
            now_ms=lambda: NOW_MS,
            mint=lambda prefix: f"{prefix}{len(world.recorded())}",
            durable=False,
        )
        keyed = PatchRequest(CHANGE, operation_key=OperationKey("k"))
        with pytest.raises(CodeSpaceError) as caught:
            await patches.apply(world.workspace, keyed)
        assert caught.value.details["status"] == "unknown"
        other = PatchRequest(patch(update("a.txt", "new", "newer")))
        with pytest.raises(CodeSpaceError) as caught:
            await patches.apply(world.workspace, other)
        assert caught.value.operation_id is None
        ledger.broken.clear()
        assert (await patches.apply(world.workspace, other)).status is PatchStatus.APPLIED
        replay = await patches.apply(world.workspace, keyed)
        assert (replay.replayed, replay.status) == (True, PatchStatus.APPLIED)
        assert (await patches.status(operation_key=OperationKey("k"))).reason == "recovered"


async def test_a_replay_settles_an_operation_whose_end_is_missing(world: PatchWorld) -> None:
    await world.apply(CHANGE, key="k")
    with world.operations.store.append() as connection:
        connection.execute("UPDATE operations SET finished_at = NULL, status = 'unknown'")
    (replay,) = [await world.apply(CHANGE, key="k")]
    assert replay.replayed
    assert world.recorded()[0].reason == "recovered"


async def test_limits_refuse_before_anything_is_looked_at(tmp_path: Path) -> None:
    limits = Limits(patch_max_bytes=100, operation_key_max_chars=3)
    with patch_world(tmp_path / "work", limits=limits) as world:
        for text, key in ((patch(add("a", "x" * 100)), None), (patch(add("a", "x")), "long")):
            error = await world.refused(text, key=key)
            assert error.code is ErrorCode.LIMIT_EXCEEDED
        error = await world.refused(patch(add("a", "x")), key="\ud800")
        assert error.code is ErrorCode.INVALID_ARGUMENT
        assert world.recorded() == []


async def test_an_operation_is_found_by_its_id_and_by_its_key(world: PatchWorld) -> None:
    outcome = await world.apply(CHANGE, key="k")
    by_id = await world.patches.status(operation_id=outcome.operation_id)
    by_key = await world.patches.status(operation_key=OperationKey("k"))
    assert by_id == by_key
    assert [event.name for event in by_id.events] == ["minted", "finished"]
    assert by_id.changes == outcome.changes


async def test_what_names_not_exactly_one_operation_finds_none(world: PatchWorld) -> None:
    outcome = await world.apply(CHANGE, key="k")
    other = Patches(
        world.operations,
        world.leases,
        Limits(),
        now_ms=lambda: NOW_MS,
        mint=lambda prefix: f"{prefix}other",
        durable=False,
    )
    elsewhere = WorkspaceId("elsewhere")
    moved = type(world.workspace)(elsewhere, world.workspace.root)
    request = PatchRequest(patch(add("c", "x")), operation_key=OperationKey("k"))
    await other.apply(moved, request)
    key, operation_id = OperationKey("k"), outcome.operation_id
    for attempt in (
        world.patches.status(),
        world.patches.status(operation_id=operation_id, operation_key=key),
        world.patches.status(operation_id=OperationId("op-none")),
        world.patches.status(operation_key=OperationKey("none")),
        world.patches.status(operation_key=key),
    ):
        with pytest.raises(CodeSpaceError) as caught:
            await attempt
        assert caught.value.code is ErrorCode.OPERATION_NOT_FOUND
    found = await world.patches.status(operation_key=key, workspace_id=elsewhere)
    assert found.operation_id == "op-other"


@pytest.mark.anyio
@pytest.mark.parametrize("database", ["ledger.db", None])
async def test_a_ledger_in_memory_says_that_it_forgets(
    tmp_path: Path, database: str | None
) -> None:
    place = None if database is None else str(tmp_path / database)
    with (
        patch_world(tmp_path / "root", database=place) as world,
        pytest.raises(CodeSpaceError) as caught,
    ):
        await world.patches.status(operation_key=OperationKey("none"))
    assert ("in memory" in caught.value.message) is (database is None)


NAMES = st.sampled_from(["a", "b", "d/a", "d/e/b", "d", "d/e", "x/y", "../a", "/a", "link", "l/a"])
SECTIONS = st.one_of(
    NAMES.map(lambda name: add(name, "old")),
    NAMES.map(delete),
    st.tuples(NAMES, st.sampled_from(["old", "none"]), st.sampled_from(["new", "old"])).map(
        lambda parts: update(*parts)
    ),
    st.tuples(NAMES, NAMES).map(lambda names: update(names[0], "old", "new", move_to=names[1])),
)


@settings(max_examples=40)
@given(st.lists(SECTIONS, min_size=1, max_size=5))
def test_nothing_outside_the_plan_changes_and_a_refusal_changes_nothing(
    tmp_path_factory: pytest.TempPathFactory, sections: list[str]
) -> None:
    outer = tmp_path_factory.mktemp("outer")
    with patch_world(outer / "work") as world:
        for name in ("a", "d/a", "d/e/b", "still"):
            (world.root / name).parent.mkdir(parents=True, exist_ok=True)
            (world.root / name).write_text("old\n", encoding="utf-8")
        (outer / "outside").mkdir()
        (world.root / "link").symlink_to("a")
        (world.root / "l").symlink_to(outer / "outside")
        before = snapshot(outer)

        async def attempt() -> set[str]:
            try:
                outcome = await world.apply(patch(*sections))
            except CodeSpaceError:
                assert snapshot(outer) == before
                return set()
            return {f"work/{name}" for name in outcome.files}

        allowed = anyio.run(attempt)
        after = snapshot(outer)
        changed = {
            name
            for name in before.keys() | after.keys()
            if before.get(name) != after.get(name) and not _is_directory(before, after, name)
        }
        assert changed <= allowed


def _is_directory(
    before: dict[str, tuple[str, int, int, bytes]],
    after: dict[str, tuple[str, int, int, bytes]],
    name: str,
) -> bool:
    nodes = [tree[name] for tree in (before, after) if name in tree]
    return all(node[0] == "directory" for node in nodes)


async def recorded(world: PatchWorld, text: str, key: str | None) -> PatchOutcome | None:
    request = PatchRequest(text, operation_key=None if key is None else OperationKey(key))
    return await world.patches.recorded(world.workspace, request)


async def test_what_is_known_under_a_key_is_told_and_nothing_is_done(world: PatchWorld) -> None:
    assert await recorded(world, CHANGE, None) is None
    assert await recorded(world, CHANGE, "k") is None
    assert world.recorded() == []
    outcome = await world.apply(CHANGE, key="k")
    assert await recorded(world, CHANGE, "k") == replace(outcome, replayed=True)
    with pytest.raises(CodeSpaceError) as caught:
        await recorded(world, CHANGE + "\n", "k")
    assert caught.value.code is ErrorCode.OPERATION_KEY_CONFLICT
    assert len(world.recorded()) == 1


async def test_a_request_on_its_way_is_waited_for(world: PatchWorld) -> None:
    flying = asyncio.create_task(world.apply(CHANGE, key="k"))
    await asyncio.sleep(0)
    found = await recorded(world, CHANGE, "k")
    assert found == replace(await flying, replayed=True)
