"""A crash is an exception that nobody catches in time: the ledger keeps what was begun."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from codespace.domain.errors import CodeSpaceError
from codespace.domain.ids import OperationId, OperationKey
from codespace.domain.operation import FileImage, Operation, version_of
from codespace.domain.patch import PatchStatus
from codespace.gateway.recovery import Recovery, recover
from doubles.failing_syscalls import Call, FailingSyscalls, Faults
from doubles.patch_world import DEMO, NOW_MS, PatchWorld, patch_world
from doubles.trees import regular_files

pytestmark = pytest.mark.anyio

BEFORE = {"a": b"old a", "gone": b"old gone"}
AFTER = {"a": b"new a", "made/b": b"new b"}
PATHS = ("a", "gone", "made/b")


@pytest.fixture
def world(tmp_path: Path) -> Iterator[PatchWorld]:
    with patch_world(tmp_path / "work") as made:
        begin(made)
        yield made


def begin(world: PatchWorld, operation_id: str = "op-1") -> None:
    """Record a patch that changes `a`, deletes `gone` and adds `made/b`, as if about to write."""
    status = world.root.stat()
    images = [
        FileImage(
            path,
            BEFORE.get(path),
            version_of(BEFORE.get(path)),
            version_of(AFTER.get(path)),
            0o640,
            status.st_uid,
            status.st_gid,
        )
        for path in PATHS
    ]
    operation = Operation(
        operation_id=OperationId(operation_id),
        workspace_id=DEMO,
        root=world.workspace.root.path,
        fingerprint="f",
        created_at=NOW_MS,
        operation_key=OperationKey("k"),
        files=PATHS,
    )
    world.operations.begin(operation, images, ("made",))


def lay_out(world: PatchWorld, *, done: set[str], temporary: bool = True) -> None:
    """Write the files as a crash after the swap of `done` would leave them."""
    (world.root / "made").mkdir()
    for path in PATHS:
        data = (AFTER if path in done else BEFORE).get(path)
        if data is not None:
            (world.root / path).write_bytes(data)
    if temporary:
        (world.root / "made" / ".op-1.2.tmp").write_bytes(b"half")
        (world.root / ".op-1.0.tmp").write_bytes(b"half")


@pytest.mark.requirement("crash.settled-on-start", "crash.recovered-reason")
def test_all_files_as_planned_is_applied(world: PatchWorld) -> None:
    lay_out(world, done=set(PATHS))
    (settled,) = world.restart()
    assert (settled.status, settled.reason) == (PatchStatus.APPLIED, "recovered")
    assert settled.refusal() is None
    assert regular_files(world.root) == AFTER
    assert world.images() == 0


@pytest.mark.parametrize("done", [set[str](), {"a"}, {"gone"}, {"made/b"}, {"a", "made/b"}])
@pytest.mark.requirement("crash.settled-on-start", "crash.recovered-reason")
def test_anything_less_is_brought_back_to_the_old(world: PatchWorld, done: set[str]) -> None:
    lay_out(world, done=done)
    (settled,) = world.restart()
    assert (settled.status, settled.reason) == (PatchStatus.FAILED_ROLLED_BACK, "recovered")
    assert regular_files(world.root) == BEFORE
    assert not (world.root / "made").exists()
    refusal = settled.refusal()
    assert refusal is not None
    assert refusal.details["status"] == "failed_rolled_back"


@pytest.mark.parametrize("strange", ["bytes", "directory", "link"])
@pytest.mark.requirement("patch.unknown", "crash.settled-on-start")
def test_anything_else_is_unknown_and_left_alone(world: PatchWorld, strange: str) -> None:
    lay_out(world, done={"made/b"})
    (world.root / "a").unlink()
    if strange == "bytes":
        (world.root / "a").write_bytes(b"theirs")
    elif strange == "directory":
        (world.root / "a").mkdir()
    else:
        (world.root / "a").symlink_to("gone")
    before = regular_files(world.root)
    (settled,) = world.restart()
    assert (settled.status, settled.reason) == (PatchStatus.UNKNOWN, "unknown")
    left = {name: data for name, data in before.items() if not name.endswith(".tmp")}
    assert regular_files(world.root) == left
    assert world.images() == 1


def test_a_workspace_that_is_not_registered_waits_until_it_is(world: PatchWorld) -> None:
    lay_out(world, done={"a"})
    before = regular_files(world.root)
    (left,) = recover(world.operations, {}, now_ms=lambda: NOW_MS)
    assert (left.status, left.finished_at) == (PatchStatus.UNKNOWN, None)
    assert regular_files(world.root) == before
    (settled,) = world.restart()
    assert settled.status is PatchStatus.FAILED_ROLLED_BACK
    assert regular_files(world.root) == BEFORE


def test_a_workspace_that_is_another_directory_now_waits_for_its_own(
    world: PatchWorld, tmp_path: Path
) -> None:
    lay_out(world, done={"a"})
    elsewhere = replace(world.workspace.root, path=str(tmp_path))
    moved = replace(world.workspace, root=elsewhere)
    (left,) = recover(world.operations, {DEMO: moved}, now_ms=lambda: NOW_MS)
    assert left.finished_at is None
    (settled,) = world.restart()
    assert settled.status is PatchStatus.FAILED_ROLLED_BACK
    assert regular_files(world.root) == BEFORE


def test_a_root_that_is_gone_is_unknown(world: PatchWorld) -> None:
    lay_out(world, done={"a"})
    world.root.rename(world.root.with_name("elsewhere"))
    (settled,) = world.restart()
    assert settled.status is PatchStatus.UNKNOWN


def test_a_second_start_has_nothing_left_to_settle(world: PatchWorld) -> None:
    lay_out(world, done={"a"})
    world.restart()
    assert world.restart() == ()


async def test_what_was_settled_is_what_a_client_finds(world: PatchWorld) -> None:
    lay_out(world, done=set(PATHS))
    world.restart()
    record = await world.patches.status(operation_key=OperationKey("k"))
    assert record.events[1].reason == "recovered"
    assert record.finished_at == NOW_MS + 1


def test_a_crash_during_the_recovery_is_recovered_from(world: PatchWorld) -> None:
    for last in range(100):
        for path in sorted(world.root.rglob("*"), reverse=True):
            path.rmdir() if path.is_dir() else path.unlink()
        lay_out(world, done={"a", "gone"})

        def crash(call: Call, last: int = last) -> None:
            if call.number == last:
                raise KeyboardInterrupt

        recovery = Recovery(
            world.operations, lambda: NOW_MS, calls=FailingSyscalls(Faults(before=crash))
        )
        (operation,) = world.recorded()
        try:
            recovery.settle(operation, world.workspace)
        except KeyboardInterrupt:
            assert len(world.operations.unfinished()) == 1
            (settled,) = world.restart()
            assert settled.status is PatchStatus.FAILED_ROLLED_BACK
            assert regular_files(world.root) == BEFORE
            with world.operations.store.append() as connection:
                connection.execute("DELETE FROM operations")
            begin(world, "op-1")
        else:
            assert last > 8
            return
    pytest.fail("the recovery never came to its end")


@pytest.mark.requirement("patch.failed-partial")
def test_files_that_cannot_be_restored_are_named(world: PatchWorld) -> None:
    lay_out(world, done={"a", "gone"}, temporary=False)
    calls = FailingSyscalls(Faults(fails=lambda call: 28 if call.name == "create" else None))
    recovery = Recovery(world.operations, lambda: NOW_MS, durable=False, calls=calls)
    (operation,) = world.recorded()
    settled = recovery.settle(operation, world.workspace)
    assert settled.status is PatchStatus.FAILED_PARTIAL
    refusal = settled.refusal()
    assert isinstance(refusal, CodeSpaceError)
    assert refusal.details["files"] == [
        {"path": "a", "state": "after"},
        {"path": "gone", "state": "after"},
        {"path": "made/b", "state": "before"},
    ]
    assert world.images() == 1
