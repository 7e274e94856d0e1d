"""The blocking part by itself: what is recorded, and what the ledger's failures do."""

from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest

from codespace.domain.errors import CodeSpaceError, ErrorCode
from codespace.domain.ids import OperationId
from codespace.domain.limits import Limits
from codespace.domain.operation import Operation
from codespace.domain.patch import PatchStatus
from codespace.domain.workspace import Workspace
from codespace.gateway.writing import PatchRequest, Writer
from codespace.store.engine import Store
from codespace.store.operations import Operations
from codespace.workspace.directory import register
from doubles.failing_ledger import FailingOperations
from doubles.patch_world import DEMO, NOW_MS, add, patch, update


@pytest.fixture
def operations() -> Iterator[Operations]:
    with closing(Store()) as store:
        yield Operations(store)


@pytest.fixture
def workspace(tmp_path: Path) -> Workspace:
    (tmp_path / "a.txt").write_text("old\n", encoding="utf-8")
    return Workspace(DEMO, register(str(tmp_path)))


def minted(workspace: Workspace) -> Operation:
    return Operation(OperationId("op-1"), DEMO, workspace.root.path, "f", NOW_MS)


def writer(operations: Operations, limits: Limits | None = None) -> Writer:
    return Writer(operations, limits or Limits(), lambda: NOW_MS + 5, durable=False)


@pytest.mark.parametrize(
    ("request_", "status"),
    [
        (PatchRequest(patch(update("a.txt", "old", "new"))), PatchStatus.APPLIED),
        (PatchRequest(patch(update("a.txt", "old", "old"))), PatchStatus.APPLIED),
        (PatchRequest(patch(add("b", "x")), check_only=True), PatchStatus.CHECKED),
        (PatchRequest("nonsense"), PatchStatus.REJECTED),
        (PatchRequest(patch(add("../b", "x"))), PatchStatus.REJECTED),
        (PatchRequest(patch(add("a.txt", "x"))), PatchStatus.REJECTED),
        (PatchRequest(patch(add("b", "x")), {"a.txt": "absent"}), PatchStatus.REJECTED),
    ],
)
def test_what_is_returned_is_what_was_recorded(
    operations: Operations, workspace: Workspace, request_: PatchRequest, status: PatchStatus
) -> None:
    record = writer(operations).execute(workspace, request_, minted(workspace))
    assert record.status is status
    assert (record.created_at, record.finished_at) == (NOW_MS, NOW_MS + 5)
    assert operations.find(OperationId("op-1")) == record
    assert (record.error is None) == (status is not PatchStatus.REJECTED)


def test_an_expected_version_comes_before_a_context_that_does_not_match(
    operations: Operations, workspace: Workspace
) -> None:
    request = PatchRequest(patch(update("a.txt", "nothing", "x")), {"./a.txt": "absent"})
    record = writer(operations).execute(workspace, request, minted(workspace))
    assert record.error is not None
    assert record.error["code"] == ErrorCode.VERSION_CONFLICT


def test_a_root_that_was_replaced_is_a_recorded_refusal(
    operations: Operations, workspace: Workspace
) -> None:
    elsewhere = replace(workspace, root=replace(workspace.root, inode=1))
    request = PatchRequest(patch(add("b", "x")))
    record = writer(operations).execute(elsewhere, request, minted(workspace))
    assert record.status is PatchStatus.REJECTED


@pytest.mark.parametrize(
    ("limits", "text"),
    [
        (Limits(patch_max_files=1), patch(add("b", "x"), add("c", "x"))),
        (Limits(patch_file_max_bytes=2), patch(update("a.txt", "old", "new"))),
        (Limits(patch_total_max_bytes=2), patch(add("b", "long enough"))),
    ],
)
def test_what_is_too_large_is_refused_and_not_recorded(
    operations: Operations, workspace: Workspace, limits: Limits, text: str
) -> None:
    with pytest.raises(CodeSpaceError) as caught:
        writer(operations, limits).execute(workspace, PatchRequest(text), minted(workspace))
    assert caught.value.code is ErrorCode.LIMIT_EXCEEDED
    assert operations.find(OperationId("op-1")) is None


@pytest.mark.parametrize(("broken", "check_only"), [("begin", False), ("record", True)])
def test_without_a_ledger_nothing_is_written(
    operations: Operations,
    workspace: Workspace,
    broken: str,
    check_only: bool,  # noqa: FBT001 -- a parameter of the table
) -> None:
    failing = FailingOperations(operations.store, {broken})
    request = PatchRequest(patch(update("a.txt", "old", "new")), check_only=check_only)
    with pytest.raises(CodeSpaceError) as caught:
        writer(failing).execute(workspace, request, minted(workspace))
    assert caught.value.code is ErrorCode.FILE_OPERATION_FAILED
    assert caught.value.details == {"errno": "ENOSPC"}
    assert Path(workspace.root.path, "a.txt").read_text(encoding="utf-8") == "old\n"


def test_an_end_that_cannot_be_recorded_is_answered_as_unknown_with_its_operation(
    operations: Operations, workspace: Workspace
) -> None:
    failing = FailingOperations(operations.store, {"finish"})
    request = PatchRequest(patch(update("a.txt", "old", "new")))
    with pytest.raises(CodeSpaceError) as caught:
        writer(failing).execute(workspace, request, minted(workspace))
    assert caught.value.operation_id == "op-1"
    assert caught.value.details["status"] == "unknown"
    assert operations.unfinished() == ("op-1",)
