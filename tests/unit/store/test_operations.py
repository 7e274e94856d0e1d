from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sqlalchemy import text

from codespace.domain.errors import CodeSpaceError, ErrorCode
from codespace.domain.ids import OperationId, OperationKey, WorkspaceId
from codespace.domain.operation import FileImage, Operation, version_of
from codespace.domain.patch import ABSENT, Change, PatchStatus
from codespace.store.engine import Store
from codespace.store.operations import Operations, Remains

DEMO, OTHER = WorkspaceId("demo"), WorkspaceId("other")
ERROR = CodeSpaceError(ErrorCode.FILE_OPERATION_FAILED, "It failed.", details={"errno": "EIO"})


@pytest.fixture
def operations() -> Iterator[Operations]:
    with closing(Store()) as store:
        yield Operations(store)


def minted(
    operation_id: str = "op-1", *, key: str | None = None, workspace_id: WorkspaceId = DEMO
) -> Operation:
    return Operation(
        operation_id=OperationId(operation_id),
        workspace_id=workspace_id,
        root="/work",
        fingerprint="f",
        created_at=10,
        operation_key=None if key is None else OperationKey(key),
        files=("a", "b\n\udcff"),
        changes=(Change("a", "move", "z", "1", "2", 3, 4), Change("b", "add")),
    )


IMAGES = (
    FileImage("a", b"old", version_of(b"old"), ABSENT, 0o755, 1, 2),
    FileImage("b", None, ABSENT, version_of(b"new")),
    FileImage("c", b"", version_of(b""), version_of(b"x"), 0o600, 2**32 - 2, 0),
)


def kept(operations: Operations) -> int:
    with operations.store.read() as connection:
        return connection.execute(text("SELECT count(*) FROM operation_images")).scalar_one()


def test_a_record_comes_back_as_it_went_in(operations: Operations) -> None:
    ended = minted(key="k").finish(PatchStatus.REJECTED, 20, error=ERROR)
    operations.record(ended)
    assert operations.find(ended.operation_id) == ended
    assert operations.find(OperationId("op-none")) is None


def test_an_operation_that_writes_is_unfinished_until_it_is_finished(
    operations: Operations,
) -> None:
    operation = minted()
    operations.begin(operation, IMAGES, ("new", "new/er"))
    assert operations.unfinished() == (operation.operation_id,)
    assert operations.remains(operation.operation_id) == Remains(
        operation, IMAGES, ("new", "new/er")
    )
    operations.finish(operation.finish(PatchStatus.APPLIED, 20))
    assert operations.unfinished() == ()
    assert operations.find(operation.operation_id) == operation.finish(PatchStatus.APPLIED, 20)


def test_an_end_is_written_once(operations: Operations) -> None:
    operation = minted()
    operations.begin(operation, IMAGES, ())
    operations.finish(operation.finish(PatchStatus.APPLIED, 20))
    operations.finish(operation.finish(PatchStatus.UNKNOWN, 30))
    assert operations.find(operation.operation_id) == operation.finish(PatchStatus.APPLIED, 20)


@pytest.mark.parametrize(
    ("status", "left"),
    [
        (PatchStatus.APPLIED, 0),
        (PatchStatus.FAILED_ROLLED_BACK, 0),
        (PatchStatus.FAILED_PARTIAL, 1),
        (PatchStatus.UNKNOWN, 1),
    ],
)
def test_images_are_dropped_unless_they_may_be_the_last_copy(
    operations: Operations, status: PatchStatus, left: int
) -> None:
    operations.begin(minted(), IMAGES, ())
    operations.finish(minted().finish(status, 20, error=ERROR))
    assert kept(operations) == left


def test_a_key_belongs_to_its_workspace(operations: Operations) -> None:
    key = OperationKey("k")
    first, second = minted("op-1", key="k"), minted("op-2", key="k", workspace_id=OTHER)
    operations.begin(first, IMAGES, ())
    operations.begin(second, IMAGES, ())
    assert operations.find_by_key(key) == (first, second)
    assert operations.find_by_key(key, OTHER) == (second,)
    assert operations.find_by_key(OperationKey("none")) == ()


def test_a_taken_key_is_a_conflict_and_records_nothing(operations: Operations) -> None:
    operations.begin(minted("op-1", key="k"), IMAGES, ())
    for attempt in (
        lambda: operations.begin(minted("op-2", key="k"), IMAGES, ()),
        lambda: operations.record(minted("op-3", key="k").finish(PatchStatus.CHECKED, 20)),
    ):
        with pytest.raises(CodeSpaceError) as caught:
            attempt()
        assert caught.value.code is ErrorCode.OPERATION_KEY_CONFLICT
    assert operations.unfinished() == ("op-1",)
    assert kept(operations) == 1


def test_many_operations_have_no_key(operations: Operations) -> None:
    for number in range(3):
        operations.begin(minted(f"op-{number}"), (), ())
    assert len(operations.unfinished()) == 3


def test_what_was_begun_outlives_the_process(tmp_path: Path) -> None:
    path = str(tmp_path / "ledger.db")
    with closing(Store(path)) as store:
        Operations(store).begin(minted(), IMAGES, ())
    with closing(Store(path)) as store:
        remains = Operations(store).remains(OperationId("op-1"))
    assert remains is not None
    assert remains.images == IMAGES


def test_nothing_is_left_of_an_operation_that_never_was(operations: Operations) -> None:
    assert operations.remains(OperationId("op-none")) is None


@settings(max_examples=30)
@given(st.lists(st.one_of(st.none(), st.binary(max_size=40)), min_size=1, max_size=8))
def test_before_images_come_back_byte_for_byte(contents: list[bytes | None]) -> None:
    images = tuple(
        FileImage(str(number), data, version_of(data), "planned")
        for number, data in enumerate(contents)
    )
    with closing(Store()) as store:
        operations = Operations(store)
        operations.begin(minted(), images, ())
        remains = operations.remains(OperationId("op-1"))
    assert remains is not None
    assert remains.images == images
