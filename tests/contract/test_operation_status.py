import time

import pytest

from codespace.domain.errors import ErrorCode
from contract.session import Session, Space

pytestmark = pytest.mark.anyio

ADD = ("*** Add File: a.txt", "+a")


@pytest.mark.requirement("status.fields", "status.events", "status.by-id-or-key")
async def test_an_applied_patch_is_told_by_its_id_and_by_its_key(cell_space: Space) -> None:
    space = cell_space
    before = time.time_ns() // 1_000_000
    applied = await space.patch(*ADD, operation_key=f"key of {space.id}")
    after = time.time_ns() // 1_000_000
    by_id = await space.session.call("operation_status", operation_id=applied["operation_id"])
    by_key = await space.session.call("operation_status", operation_key=f"key of {space.id}")
    scoped = await space.session.call(
        "operation_status", operation_key=f"key of {space.id}", workspace_id=space.id
    )
    assert by_id.body == by_key.body == scoped.body
    created, finished = by_id.number("created_at"), by_id.number("finished_at")
    assert before <= created <= finished <= after
    assert by_id.body == {
        "operation_id": applied["operation_id"],
        "status": "applied",
        "replayed": False,
        "kind": "patch",
        "workspace_id": space.id,
        "created_at": created,
        "finished_at": finished,
        "files": applied["files"],
        "changes": applied["changes"],
        "events": [
            {"at": created, "name": "minted"},
            {"at": finished, "name": "finished", "status": "applied"},
        ],
    }


@pytest.mark.requirement("status.error", "patch.rejected")
async def test_a_refused_patch_is_told_with_its_error(space: Space) -> None:
    refused = await space.patch_refused(ErrorCode.FILE_NOT_FOUND, "*** Delete File: b.txt")
    record = await space.session.call("operation_status", operation_id=refused["operation_id"])
    assert record["status"] == "rejected"
    assert (record["files"], record["changes"]) == (["b.txt"], [])
    assert record["events", 1, "status"] == "rejected"
    for field in ("code", "message", "details"):
        assert record["error", field] == refused[field]


@pytest.mark.requirement("status.fields")
async def test_a_preview_is_recorded_as_checked(space: Space) -> None:
    preview = await space.patch(*ADD, check_only=True)
    record = await space.session.call("operation_status", operation_id=preview["operation_id"])
    assert (record["status"], record["changes"]) == ("checked", preview["changes"])


@pytest.mark.requirement("code.operation-not-found", "status.by-id-or-key")
async def test_not_exactly_one_of_id_and_key_is_not_found(space: Space) -> None:
    applied = await space.patch(*ADD, operation_key="k")
    for arguments in (
        {},
        {"workspace_id": space.id},
        {"operation_id": applied["operation_id"], "operation_key": "k"},
        {"operation_id": "op-unknown"},
        {"operation_id": ""},
        {"operation_id": "k"},
        {"operation_key": f"unknown in {space.id}"},
        {"operation_key": applied["operation_id"]},
        {"operation_key": "k", "workspace_id": "looking"},
    ):
        await space.session.refused(ErrorCode.OPERATION_NOT_FOUND, "operation_status", **arguments)


@pytest.mark.requirement("status.re-runs-nothing")
async def test_looking_changes_nothing(space: Space) -> None:
    applied = await space.patch(*ADD)
    (space.root / "a.txt").unlink()
    for _ in range(3):
        record = await space.session.call("operation_status", operation_id=applied["operation_id"])
        assert record["status"] == "applied"
    assert space.tree() == {}


@pytest.mark.requirement("status.knows-no-commands")
async def test_commands_are_not_operations(space: Space) -> None:
    process_id = await space.start("true")
    await space.ended(process_id)
    shell = await space.call("bash", command="true")
    for handle in (process_id, shell["process_id"]):
        await space.session.refused(
            ErrorCode.OPERATION_NOT_FOUND, "operation_status", operation_id=handle
        )


@pytest.mark.requirement("code.workspace-not-found")
async def test_the_key_of_a_workspace_that_nobody_registered_is_refused(session: Session) -> None:
    await session.refused(
        ErrorCode.WORKSPACE_NOT_FOUND, "operation_status", operation_key="k", workspace_id="no"
    )
