"""Confirmations: what is held, who grants, and that a held call is made exactly once."""

import asyncio
import json
from collections.abc import Generator, Iterator
from contextlib import closing, contextmanager
from dataclasses import replace
from pathlib import Path

import anyio
import pytest
from sqlalchemy import Connection

from codespace.domain.approval import Approval, HeldOutcome, Resolver, Step
from codespace.domain.errors import CodeSpaceError, ErrorCode
from codespace.domain.ids import ApprovalId, ProcessId
from codespace.domain.limits import Limits
from codespace.domain.workspace import Approvals as Wanted
from codespace.domain.workspace import Profile
from codespace.gateway.approvals import Resumed
from codespace.store.approvals import Holds, Moved
from codespace.store.engine import Store, StoreError
from doubles.held_world import HeldWorld, held_world
from doubles.patch_world import DEMO, add, patch, update

pytestmark = pytest.mark.anyio

NEW = patch(add("new.txt", "new"))
FORGED = ApprovalId("appr-forged")


@pytest.fixture
def world(tmp_path: Path) -> Iterator[HeldWorld]:
    with held_world(tmp_path / "root", str(tmp_path / "ledger.db")) as made:
        yield made


async def resumed(world: HeldWorld, approval_id: ApprovalId) -> Resumed:
    return await world.approvals.resume(approval_id)


def root(world: HeldWorld) -> Path:
    return world.patches.root


# What is held.


async def test_a_call_that_changes_something_is_held_and_does_nothing(world: HeldWorld) -> None:
    body = await world.refused(
        ErrorCode.APPROVAL_REQUIRED, "bash", workspace_id="demo", command="make"
    )
    assert body["details"] == {"state": "pending", "granted_by": "caller"}
    assert "approval_resolve" in str(body["message"])
    await world.held("apply_patch", patch=NEW)
    assert world.ran == []
    assert list(root(world).iterdir()) == []
    assert [view.summary for view in await world.approvals.listed()] == ["make", "add new.txt"]


async def test_what_changes_nothing_is_not_held(world: HeldWorld) -> None:
    await world.result("look", workspace_id="demo")
    checked = await world.result("apply_patch", workspace_id="demo", patch=NEW, check_only=True)
    assert checked["status"] == "checked"
    assert await world.approvals.listed() == []


async def test_with_confirmations_off_nothing_is_held(world: HeldWorld) -> None:
    world.start(wanted=Wanted.OFF)
    assert (await world.result("bash", workspace_id="demo", command="make"))["runs"] == 1


async def test_a_hold_cannot_raise_a_read_only_workspace(world: HeldWorld) -> None:
    world.start(profile=Profile.READ_ONLY)
    given = {"workspace_id": "demo", "command": "make"}
    await world.refused(ErrorCode.UNAUTHORIZED, "bash", **given)
    await world.refused(ErrorCode.UNAUTHORIZED, "approval_create", tool="bash", arguments=given)
    assert await world.approvals.listed() == []


async def test_the_same_request_has_one_hold_until_that_has_ended(world: HeldWorld) -> None:
    first = await world.held()
    assert await world.held(approved=True, user_id="root", timeout_ms=None) == first
    assert await world.held(command="make all") != first
    await world.approvals.resolve(first, "grant", by=Resolver.CALLER)
    body = await world.refused(
        ErrorCode.APPROVAL_REQUIRED, "bash", workspace_id="demo", command="make"
    )
    assert (body["approval_id"], body["details"]) == (
        first,
        {"state": "granted", "granted_by": "caller"},
    )
    assert "operation_resume" in str(body["message"])
    await resumed(world, first)
    assert await world.held() != first


async def test_equal_requests_at_once_have_one_hold(world: HeldWorld) -> None:
    found = await asyncio.gather(*(world.held("apply_patch", patch=NEW) for _ in range(10)))
    assert len(set(found)) == 1


async def test_the_attempts_of_scripts_have_one_hold(world: HeldWorld) -> None:
    found: set[object] = set()
    for key in (None, "run-a:1", "run-a:2", "run-b:1"):
        given = {"workspace_id": "demo", "patch": NEW, "operation_key": key}
        outcome = await world.dispatcher.call("apply_patch", given, owned=True)
        found.add(outcome.body["approval_id"])
    assert len(found) == 1
    assert await world.held("apply_patch", patch=NEW, operation_key="run-a:1") not in found


async def test_a_recorded_patch_is_replayed_and_never_held(world: HeldWorld) -> None:
    world.start(wanted=Wanted.OFF)
    given = {"workspace_id": "demo", "patch": NEW, "operation_key": "k"}
    done = await world.result("apply_patch", **given)
    bad = {"workspace_id": "demo", "patch": "x", "operation_key": "bad"}
    refusal = await world.refused(ErrorCode.INVALID_PATCH, "apply_patch", **bad)
    world.start()
    assert await world.result("apply_patch", **given) == {**done, "replayed": True}
    assert await world.refused(ErrorCode.INVALID_PATCH, "apply_patch", **bad) == refusal
    other = {**given, "patch": NEW + "\n"}
    await world.refused(ErrorCode.OPERATION_KEY_CONFLICT, "apply_patch", **other)
    for arguments, code in (
        (given, ErrorCode.INVALID_ARGUMENT),
        (bad, ErrorCode.INVALID_PATCH),
        (other, ErrorCode.OPERATION_KEY_CONFLICT),
    ):
        await world.refused(code, "approval_create", tool="apply_patch", arguments=arguments)
    assert await world.approvals.listed() == []


async def test_bad_arguments_are_refused_before_anything_is_held(world: HeldWorld) -> None:
    await world.refused(ErrorCode.INVALID_ARGUMENT, "bash", workspace_id="demo")
    await world.refused(ErrorCode.WORKSPACE_NOT_FOUND, "bash", workspace_id="no", command="x")
    await world.refused(
        ErrorCode.LIMIT_EXCEEDED,
        "apply_patch",
        workspace_id="demo",
        patch="x" * (Limits().patch_max_bytes + 1),
    )
    assert await world.approvals.listed() == []


async def test_holds_do_not_pile_up_without_end(world: HeldWorld) -> None:
    world.start(limits=replace(Limits(), active_approvals_max=2))
    first = await world.held(command="1")
    await world.held(command="2")
    body = await world.refused(ErrorCode.LIMIT_EXCEEDED, "bash", workspace_id="demo", command="3")
    assert body["details"] == {"limit": "active_approvals_max", "maximum": 2}
    await world.approvals.resolve(first, "deny", by=Resolver.CALLER)
    await world.held(command="3")


async def test_a_call_can_be_held_explicitly_also_with_confirmations_off(world: HeldWorld) -> None:
    world.start(wanted=Wanted.OFF)
    view = await world.approvals.create("bash", {"workspace_id": "demo", "command": "make"})
    assert (view.state, view.summary, view.granted_by) == ("pending", "make", "caller")
    await world.approvals.resolve(ApprovalId(view.approval_id), "grant", by=Resolver.CALLER)
    assert (await resumed(world, ApprovalId(view.approval_id))).result == {"runs": 1}


async def test_only_what_changes_something_can_be_held_explicitly(world: HeldWorld) -> None:
    for tool, arguments in (
        ("look", {"workspace_id": "demo"}),
        ("apply_patch", {"workspace_id": "demo", "patch": NEW, "check_only": True}),
        ("no_such_tool", {}),
    ):
        with pytest.raises(CodeSpaceError) as caught:
            await world.approvals.create(tool, arguments)
        assert caught.value.code is ErrorCode.INVALID_ARGUMENT
    assert await world.approvals.listed() == []


# Who grants.


async def test_the_first_decision_is_the_only_one(world: HeldWorld) -> None:
    for first, second in (("grant", "deny"), ("deny", "grant"), ("grant", "grant")):
        approval_id = await world.held(command=f"{first} {second}")
        for decision, refused in ((first, False), (second, True)):
            outcome = await world.call(
                "approval_resolve", approval_id=approval_id, decision=decision
            )
            assert outcome.is_error is refused
        assert outcome.body["code"] == ErrorCode.APPROVAL_CONFLICT
        assert outcome.body["approval_id"] == approval_id
        assert world.state(approval_id) == ("granted" if first == "grant" else "denied")


async def test_of_decisions_at_once_one_wins(world: HeldWorld) -> None:
    for number in range(10):
        approval_id = await world.held(command=str(number))
        outcomes = await asyncio.gather(
            *(
                world.call("approval_resolve", approval_id=approval_id, decision=decision)
                for decision in ("grant", "deny", "grant", "deny")
            )
        )
        won = [outcome.body["state"] for outcome in outcomes if not outcome.is_error]
        assert won == [world.state(approval_id)]


async def test_a_denied_call_is_never_made(world: HeldWorld) -> None:
    approval_id = await world.held()
    await world.approvals.resolve(approval_id, "deny", by=Resolver.CALLER)
    error = await world.not_resumed(ErrorCode.APPROVAL_CONFLICT, approval_id)
    assert (error.approval_id, error.details) == (approval_id, {"state": "denied"})
    assert world.ran == []


async def test_what_nobody_holds_cannot_be_decided_or_made(world: HeldWorld) -> None:
    await world.held()
    for tool, given in (
        ("approval_resolve", {"approval_id": FORGED, "decision": "grant"}),
        ("operation_resume", {"approval_id": FORGED}),
    ):
        body = await world.refused(ErrorCode.APPROVAL_NOT_FOUND, tool, **given)
        assert "approval_id" not in body
    with pytest.raises(CodeSpaceError):
        await world.approvals.shown(FORGED)


async def test_only_the_operator_grants_where_the_operator_says_so(world: HeldWorld) -> None:
    world.start(granted_by=Resolver.OPERATOR, token=True)
    approval_id = await world.held()
    for decision in ("grant", "deny"):
        body = await world.refused(
            ErrorCode.UNAUTHORIZED,
            "approval_resolve",
            approval_id=approval_id,
            decision=decision,
            by="operator",
            approved=True,
        )
        assert "codespace approvals" in str(body["message"])
    await world.not_resumed(ErrorCode.APPROVAL_CONFLICT, approval_id)
    view = await world.approvals.resolve(approval_id, "grant", by=Resolver.OPERATOR)
    assert (view.state, view.resolved_by, view.granted_by) == ("granted", "operator", "operator")
    assert (await resumed(world, approval_id)).result == {"runs": 1}


async def test_without_a_token_nobody_is_the_operator(world: HeldWorld) -> None:
    world.start(granted_by=Resolver.OPERATOR)
    approval_id = await world.held()
    with pytest.raises(CodeSpaceError) as caught:
        await world.approvals.resolve(approval_id, "grant", by=Resolver.OPERATOR)
    assert caught.value.code is ErrorCode.UNAUTHORIZED
    assert world.state(approval_id) == "pending"


async def test_the_operator_grants_what_the_caller_may_grant_too(world: HeldWorld) -> None:
    approval_id = await world.held()
    await world.approvals.resolve(approval_id, "grant", by=Resolver.OPERATOR)
    assert world.state(approval_id) == "granted"


async def test_a_callers_grant_is_withdrawn_when_grants_become_the_operators(
    world: HeldWorld,
) -> None:
    approval_id = await world.granted()
    world.start(granted_by=Resolver.OPERATOR, token=True)
    error = await world.not_resumed(ErrorCode.APPROVAL_CONFLICT, approval_id)
    assert error.details == {"state": "pending"}
    await world.not_resumed(ErrorCode.APPROVAL_CONFLICT, approval_id)
    assert world.ran == []
    await world.approvals.resolve(approval_id, "grant", by=Resolver.OPERATOR)
    await resumed(world, approval_id)
    assert world.ran == ["make"]


async def test_a_caller_grants_nothing_for_a_workspace_that_is_gone(world: HeldWorld) -> None:
    approval_id = await world.held()
    world.start(gone=True, token=True)
    given = {"approval_id": approval_id, "decision": "grant"}
    await world.refused(ErrorCode.WORKSPACE_NOT_FOUND, "approval_resolve", **given)
    await world.approvals.resolve(approval_id, "deny", by=Resolver.OPERATOR)
    assert world.state(approval_id) == "denied"


# The resume.


async def test_a_granted_patch_is_applied_once_and_its_result_kept(world: HeldWorld) -> None:
    approval_id = await world.granted("apply_patch", patch=NEW)
    first = await world.result("operation_resume", approval_id=approval_id)
    assert (first["approval_id"], first["state"]) == (approval_id, "consumed")
    assert (first["tool"], world.state(approval_id)) == ("apply_patch", "consumed")
    (root(world) / "new.txt").unlink()
    assert await world.result("operation_resume", approval_id=approval_id) == first
    world.start()
    assert await world.result("operation_resume", approval_id=approval_id) == first
    assert list(root(world).iterdir()) == []


async def test_a_granted_command_is_run_once_and_its_result_kept(world: HeldWorld) -> None:
    approval_id = await world.granted()
    assert [(await resumed(world, approval_id)).result for _ in range(3)] == [{"runs": 1}] * 3
    assert world.ran == ["make"]


async def test_what_a_held_call_is_refused_with_is_its_result(world: HeldWorld) -> None:
    approval_id = await world.granted("apply_patch", patch=patch(update("no.txt", "a", "b")))
    first = await world.refused(
        ErrorCode.FILE_NOT_FOUND, "operation_resume", approval_id=approval_id
    )
    assert first["approval_id"] == approval_id
    assert str(first["operation_id"]).startswith("op-")
    (root(world) / "no.txt").write_text("a\n", encoding="utf-8")
    again = await world.refused(
        ErrorCode.FILE_NOT_FOUND, "operation_resume", approval_id=approval_id
    )
    assert again == first
    assert world.state(approval_id) == "consumed"


async def test_a_bug_in_a_held_call_does_not_let_it_be_made_again(world: HeldWorld) -> None:
    approval_id = await world.granted()
    world.failure = RuntimeError("a bug")
    first = await world.not_resumed(ErrorCode.INTERNAL, approval_id)
    world.failure = None
    assert (await world.not_resumed(ErrorCode.INTERNAL, approval_id)).message == first.message
    assert world.ran == ["make"]


async def test_of_resumes_at_once_one_makes_the_call(world: HeldWorld) -> None:
    approval_id = await world.granted()
    world.slow.clear()
    first = asyncio.create_task(world.approvals.resume(approval_id))
    while not world.ran:
        await asyncio.sleep(0)
    for _ in range(3):
        error = await world.not_resumed(ErrorCode.APPROVAL_CONFLICT, approval_id)
        assert error.details == {"state": "resuming"}
    assert await world.held() == approval_id
    assert [view.interrupted for view in await world.approvals.listed()] == [False]
    world.slow.set()
    assert (await first).result == (await resumed(world, approval_id)).result == {"runs": 1}


async def test_of_many_resumes_at_the_same_instant_one_makes_the_call(world: HeldWorld) -> None:
    for number in range(10):
        approval_id = await world.granted(command=str(number))
        outcomes = await asyncio.gather(
            *(world.call("operation_resume", approval_id=approval_id) for _ in range(5))
        )
        codes = {outcome.body.get("code", "ok") for outcome in outcomes}
        assert codes <= {"ok", ErrorCode.APPROVAL_CONFLICT}
        assert "ok" in codes
    assert world.ran == [str(number) for number in range(10)]


async def test_a_caller_that_leaves_changes_nothing_about_a_resume(world: HeldWorld) -> None:
    approval_id = await world.granted()
    world.slow.clear()
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(resumed, world, approval_id)
        while not world.ran:
            await asyncio.sleep(0)
        tasks.cancel_scope.cancel()
    assert world.state(approval_id) == "resuming"
    world.slow.set()
    await world.approvals.drain()
    assert world.state(approval_id) == "consumed"
    assert (await resumed(world, approval_id)).result == {"runs": 1}


@pytest.mark.parametrize(
    ("change", "code"),
    [
        ({"profile": Profile.READ_ONLY}, ErrorCode.UNAUTHORIZED),
        ({"gone": True}, ErrorCode.WORKSPACE_NOT_FOUND),
        ({"root": "/another"}, ErrorCode.APPROVAL_CONFLICT),
    ],
)
async def test_what_policy_does_not_permit_now_is_not_made_and_stays_granted(
    world: HeldWorld, change: dict[str, object], code: ErrorCode
) -> None:
    command, patched = await world.granted(), await world.granted("apply_patch", patch=NEW)
    world.start(**change)  # pyright: ignore[reportArgumentType] -- of the table above
    for approval_id in (command, patched):
        await world.not_resumed(code, approval_id)
        assert world.state(approval_id) == "granted"
    assert (world.ran, list(root(world).iterdir())) == ([], [])
    world.start(wanted=Wanted.OFF)
    await resumed(world, command)
    assert world.ran == ["make"]


async def test_another_directory_of_that_name_does_not_find_the_hold(world: HeldWorld) -> None:
    approval_id = await world.held()
    world.start(root="/another")
    assert await world.held() != approval_id


async def test_a_busy_workspace_does_not_use_a_grant_up(world: HeldWorld) -> None:
    approval_id = await world.granted("apply_patch", patch=NEW)
    leases, process = world.patches.leases, ProcessId("proc-1")
    world.patches.live.add(process)
    await leases.hold_for_process(DEMO, process)
    leases.started(DEMO, process)
    await world.not_resumed(ErrorCode.WORKSPACE_BUSY, approval_id)
    assert world.state(approval_id) == "granted"
    world.patches.live.clear()
    await resumed(world, approval_id)
    assert (root(world) / "new.txt").exists()


async def test_who_finds_the_workspace_taken_in_the_last_instant_stays_granted(
    world: HeldWorld,
) -> None:
    approval_id = await world.granted()
    world.failure = CodeSpaceError(ErrorCode.WORKSPACE_BUSY, "Busy.")
    await world.not_resumed(ErrorCode.WORKSPACE_BUSY, approval_id)
    assert world.state(approval_id) == "granted"
    world.failure = None
    assert (await resumed(world, approval_id)).result == {"runs": 2}


# What was cut, or could not be kept.


async def cut(world: HeldWorld, approval_id: ApprovalId) -> None:
    """Leave a hold as a gateway does that is killed during its resume."""
    moved = world.holds.step(approval_id, Step.BEGIN, 1)
    assert moved is not None
    assert moved.after is not None
    world.start()
    assert (await world.approvals.shown(approval_id)).interrupted


async def test_a_command_whose_resume_was_cut_is_ambiguous_and_never_run(world: HeldWorld) -> None:
    approval_id = await world.granted()
    await cut(world, approval_id)
    assert await world.held() == approval_id
    first = await world.not_resumed(ErrorCode.APPROVAL_AMBIGUOUS, approval_id)
    assert first.approval_id == approval_id
    assert world.state(approval_id) == "consumed"
    assert (
        await world.not_resumed(ErrorCode.APPROVAL_AMBIGUOUS, approval_id)
    ).body() == first.body()
    assert world.ran == []
    again = await world.held()
    assert (again != approval_id, world.state(again)) == (True, "pending")


async def test_an_ambiguous_command_is_told_also_where_it_would_not_be_permitted_now(
    world: HeldWorld,
) -> None:
    approval_id = await world.granted()
    await cut(world, approval_id)
    world.start(profile=Profile.READ_ONLY)
    await world.not_resumed(ErrorCode.APPROVAL_AMBIGUOUS, approval_id)


@pytest.mark.parametrize("key", [None, "mine"])
async def test_a_patch_whose_resume_was_cut_after_it_was_applied_is_told_by_the_ledger(
    world: HeldWorld, key: str | None
) -> None:
    approval_id = await world.granted("apply_patch", patch=NEW, operation_key=key)
    outcome = await world.patches.apply(NEW, key=key or approval_id)
    await cut(world, approval_id)
    told = (await resumed(world, approval_id)).result
    assert (told["operation_id"], told["replayed"]) == (outcome.operation_id, True)
    assert len(world.patches.recorded()) == 1


async def test_a_patch_whose_resume_was_cut_before_it_began_is_applied_once(
    world: HeldWorld,
) -> None:
    approval_id = await world.granted("apply_patch", patch=NEW)
    await cut(world, approval_id)
    outcomes = await asyncio.gather(
        *(world.call("operation_resume", approval_id=approval_id) for _ in range(3))
    )
    assert any(not outcome.is_error for outcome in outcomes)
    assert (await resumed(world, approval_id)).result["replayed"] is False
    assert len(world.patches.recorded()) == 1


class FullDisk(Holds):
    """A store that takes no end of a hold."""

    def step(
        self,
        approval_id: ApprovalId,
        step: Step,
        at: int,
        *,
        by: Resolver | None = None,
        outcome: HeldOutcome | None = None,
    ) -> Moved | None:
        if step is Step.CONSUME:
            raise StoreError("The disk is full.", full=True)
        return super().step(approval_id, step, at, by=by, outcome=outcome)

    def hold(self, wanted: Approval, *, most: int) -> Approval | None:
        raise StoreError("The disk is full.", full=True)


async def test_a_result_that_could_not_be_kept_is_kept_by_the_next_resume(
    world: HeldWorld,
) -> None:
    approval_id = await world.granted()
    kept, full = world.holds, FullDisk(world.holds.store)
    world.holds = full
    world.start()
    error = await world.not_resumed(ErrorCode.FILE_OPERATION_FAILED, approval_id)
    assert "was made" in error.message
    assert world.state(approval_id) == "resuming"
    await world.not_resumed(ErrorCode.FILE_OPERATION_FAILED, approval_id)
    await world.refused(
        ErrorCode.FILE_OPERATION_FAILED, "bash", workspace_id="demo", command="other"
    )
    object.__setattr__(world.approvals, "holds", kept)
    assert (await resumed(world, approval_id)).result == {"runs": 1}
    assert world.ran == ["make"]


async def test_held_arguments_are_gone_from_the_database_after_the_end(
    world: HeldWorld, tmp_path: Path
) -> None:
    made, denied = await world.granted(command="hunter2-1"), await world.held(command="hunter2-2")
    before = await world.approvals.shown(made)
    assert before.arguments == {"command": "hunter2-1", "workspace_id": "demo"}
    await resumed(world, made)
    await world.approvals.resolve(denied, "deny", by=Resolver.CALLER)
    after = await world.approvals.shown(made)
    assert (after.arguments, after.summary) == (None, None)
    assert (after.arguments_digest, after.result) == (before.arguments_digest, {"runs": 1})
    with world.holds.store.append() as connection:
        rows = connection.execute("SELECT * FROM approvals").fetchall()
    assert "hunter2" not in json.dumps(rows)
    with world.holds.store.append() as connection:
        connection.execute("SELECT 1")
    world.holds.store.close()
    assert b"hunter2" not in (tmp_path / "ledger.db").read_bytes()


class CountingStore(Store):
    """A store that counts the writes which wait for the disk."""

    waits = 0

    @contextmanager
    def write(self, *, synced: bool = True) -> Generator[Connection]:
        self.waits += synced
        with super().write(synced=synced) as connection:
            yield connection


async def test_a_hold_a_grant_and_a_resume_wait_for_the_disk_three_times(
    world: HeldWorld, tmp_path: Path
) -> None:
    with closing(CountingStore(str(tmp_path / "counted.db"))) as store:
        world.holds = Holds(store)
        world.start()
        approval_id = await world.granted()
        await resumed(world, approval_id)
        await resumed(world, approval_id)
        assert store.waits == 3
