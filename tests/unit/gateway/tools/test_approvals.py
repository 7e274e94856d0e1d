"""The tools of confirmations: their schemas, hints, and the shape of what they answer."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from binding import check_binding
from codespace.domain.errors import ErrorCode
from codespace.domain.tool import Effect, Tool
from doubles.held_world import HeldWorld, held_world
from doubles.patch_world import add, patch
from schemas import fits

NAMES = ("approval_create", "approval_resolve", "operation_resume")


@pytest.fixture
def world(tmp_path: Path) -> Iterator[HeldWorld]:
    with held_world(tmp_path / "root") as made:
        yield made


def tool(world: HeldWorld, name: str) -> Tool:
    found = world.dispatcher.toolbox.get(name)
    assert found is not None
    return found


@pytest.mark.parametrize("name", NAMES)
def test_the_schema_and_the_binding_say_the_same(world: HeldWorld, name: str) -> None:
    check_binding(tool(world, name))


def test_none_of_them_only_reads(world: HeldWorld) -> None:
    effects = [tool(world, name).effect for name in NAMES]
    assert effects == [Effect.WRITE, Effect.WRITE, Effect.EXECUTE]


@pytest.mark.anyio
async def test_each_answers_with_what_its_schema_says(world: HeldWorld) -> None:
    given = {"workspace_id": "demo", "patch": patch(add("a.txt", "a")), "approved": True}
    created = await world.result("approval_create", tool="apply_patch", arguments=given)
    approval_id = created["approval_id"]
    assert created == {
        "approval_id": approval_id,
        "workspace_id": "demo",
        "tool": "apply_patch",
        "state": "pending",
        "granted_by": "caller",
        "summary": "add a.txt",
        "interrupted": False,
        "created_at": created["created_at"],
    }
    assert fits(tool(world, "approval_create").output_schema, created)
    granted = await world.result("approval_resolve", approval_id=approval_id, decision="grant")
    assert (granted["state"], granted["resolved_by"]) == ("granted", "caller")
    assert fits(tool(world, "approval_resolve").output_schema, granted)
    resumed = await world.result("operation_resume", approval_id=approval_id)
    assert set(resumed) == {"approval_id", "state", "tool", "result"}
    assert fits(tool(world, "operation_resume").output_schema, resumed)
    refused = await world.refused(
        ErrorCode.APPROVAL_CONFLICT, "approval_resolve", approval_id=approval_id, decision="deny"
    )
    assert fits(tool(world, "approval_resolve").output_schema, refused)


@pytest.mark.anyio
async def test_a_decision_is_grant_or_deny(world: HeldWorld) -> None:
    approval_id = await world.held()
    for decision in ("approve", "GRANT", True, None):
        await world.refused(
            ErrorCode.INVALID_ARGUMENT,
            "approval_resolve",
            approval_id=approval_id,
            decision=decision,
        )
    assert world.state(approval_id) == "pending"


@pytest.mark.anyio
async def test_only_tools_that_change_something_can_be_named(world: HeldWorld) -> None:
    for name in ("read", "codemode", "operation_resume", "approval_resolve", ""):
        await world.refused(ErrorCode.INVALID_ARGUMENT, "approval_create", tool=name, arguments={})
