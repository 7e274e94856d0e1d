"""The agent's tools for works, on a real gateway; and what `work_id` adds to the others."""

from collections.abc import AsyncIterator
from pathlib import Path
from typing import cast

import pytest

from codespace.bootstrap import Gateway, open_gateway
from codespace.domain.coordination import FIELD
from codespace.domain.errors import CodeSpaceError, ErrorCode
from codespace.domain.ids import WorkId
from codespace.domain.tool import Json
from codespace.domain.work import Delivery
from codespace.gateway.works import Wish
from codespace.settings import load
from schemas import fits

pytestmark = pytest.mark.anyio
V4A = "*** Begin Patch\n*** Add File: {}\n+a\n*** End Patch\n"
OF_WORK: dict[str, Json] = {
    "read": {"path": "a.txt"},
    "find": {},
    "grep": {"pattern": "a"},
    "apply_patch": {"patch": V4A.format("b.txt")},
    "exec_command": {"command": ["true"]},
    "bash": {"command": "true"},
    "codemode": {"code": "return 1"},
}


@pytest.fixture
async def gateway(tmp_path: Path) -> AsyncIterator[Gateway]:
    (tmp_path / "a.txt").write_text("a\n", encoding="utf-8")
    loaded = load(path=str(tmp_path), environ={"PATH": "/usr/bin:/bin"})
    async with open_gateway(loaded) as gateway:
        yield gateway


async def opened(gateway: Gateway) -> WorkId:
    work = await gateway.call("work_open", {"workspace_id": "default", "title": "t"})
    assert work["state"] == "active"
    return WorkId(str(work["work_id"]))


async def queue(gateway: Gateway, work_id: WorkId, delivery: Delivery, body: str = "b") -> str:
    draft = await gateway.works.add(work_id, Wish(body, delivery=delivery))
    return (await gateway.works.queue(draft.intent_id, 1)).intent_id


async def test_a_works_whole_way(gateway: Gateway) -> None:
    work_id = await opened(gateway)
    only = {"work_id": work_id}
    first = await queue(gateway, work_id, Delivery.NEXT_CHECKPOINT, "look here")
    later = await queue(gateway, work_id, Delivery.AFTER_CURRENT_WORK)
    assert await gateway.call("steer_status", only) == {
        **only,
        "state": "active",
        "queued": 2,
        "claimed": 0,
        "claimable_now": 1,
        "queue_revision": 2,
    }
    assert (await gateway.call("steer_claim_next", only))["item"] == {
        "intent_id": first,
        "revision": 3,
        "kind": "follow_up",
        "delivery": "next_checkpoint",
        "content": "look here",
    }
    assert (await gateway.call("steer_claim_next", only)) == {"item": None}
    left = {**only, "closed": False, "reason": "pending_user_input", "queued": 1}
    assert await gateway.call("work_finish", only) == {**left, "state": "closing"}
    for intent_id, outcome in ((first, "done"), (later, "blocked")):
        if intent_id == later:
            await gateway.call("steer_claim_next", only)
        told = {**only, "intent_id": intent_id}
        answer = await gateway.call("steer_complete", {**told, "outcome": outcome, "note": "n"})
        assert answer == {**told, "state": outcome}
    closed = {**only, "closed": True, "queued": 0, "state": "closed"}
    assert await gateway.call("work_finish", only) == closed
    assert await gateway.call("work_finish", only) == closed
    assert (await gateway.call("steer_status", only))["state"] == "closed"


@pytest.mark.parametrize("name", OF_WORK)
async def test_a_call_of_a_work_is_told_how_much_waits(gateway: Gateway, name: str) -> None:
    work_id = await opened(gateway)
    await queue(gateway, work_id, Delivery.AFTER_CURRENT_WORK)
    arguments = {"workspace_id": "default", **OF_WORK[name]}
    tool = gateway.toolbox.get(name)
    assert tool is not None
    plain = await gateway.call(name, arguments)
    assert FIELD not in plain
    if name == "exec_command":
        ended = {"process_id": plain["process_id"], "wait_ms": 20_000}
        assert (await gateway.call("process_status", ended))["state"] == "exited"
    if name == "apply_patch":
        arguments["patch"] = V4A.format("c.txt")
    answer = await gateway.call(name, {**arguments, "work_id": work_id})
    assert answer[FIELD] == {"work_id": work_id, "pending_user_items": 1, "queue_revision": 1}
    assert fits(tool.output_schema, answer)
    assert fits(tool.input_schema, {**arguments, "work_id": work_id})
    assert not fits(tool.input_schema, {**arguments, "work_id": 1})


async def test_handles_are_looked_at_in_a_work_too(gateway: Gateway) -> None:
    work_id = await opened(gateway)
    started = await gateway.call("exec_command", {"workspace_id": "default", "command": ["true"]})
    for name in ("read_process", "process_status"):
        arguments = {"process_id": started["process_id"], "work_id": work_id}
        answer = await gateway.call(name, arguments)
        assert cast("Json", answer[FIELD])["work_id"] == work_id


@pytest.mark.parametrize("name", OF_WORK)
async def test_nothing_is_done_for_a_work_that_is_unknown_or_closed(
    gateway: Gateway, name: str, tmp_path: Path
) -> None:
    work_id = await opened(gateway)
    await gateway.call("work_finish", {"work_id": work_id})
    given = {"workspace_id": "default", **OF_WORK[name]}
    if name == "bash":
        given["command"] = "touch b.txt"
    for named, code in (
        (work_id, ErrorCode.WORK_CLOSED),
        ("work-none", ErrorCode.WORK_NOT_FOUND),
        ("", ErrorCode.WORK_NOT_FOUND),
        (7, ErrorCode.INVALID_ARGUMENT),
        ("\ud800", ErrorCode.INVALID_ARGUMENT),
    ):
        with pytest.raises(CodeSpaceError) as caught:
            await gateway.call(name, {**given, "work_id": named})
        assert caught.value.code is code
    assert not (tmp_path / "b.txt").exists()


async def test_a_work_never_changes_which_patch_it_is(gateway: Gateway) -> None:
    given = {"workspace_id": "default", "patch": V4A.format("b.txt"), "operation_key": "k"}
    first = await gateway.call("apply_patch", given)
    work_id = await opened(gateway)
    again = await gateway.call("apply_patch", {**given, "work_id": work_id})
    assert (again["replayed"], again["operation_id"]) == (True, first["operation_id"])
    assert again["work_id"] == work_id
    assert "work_id" not in first


async def test_a_work_never_changes_which_run_it_is(gateway: Gateway) -> None:
    given = {"code": "return 1", "run_key": "k"}
    first = await gateway.call("codemode", given)
    again = await gateway.call("codemode", {**given, "work_id": await opened(gateway)})
    assert again["run_id"] == first["run_id"]


async def test_a_script_is_part_of_its_runs_work_and_can_claim(gateway: Gateway) -> None:
    work_id = await opened(gateway)
    await queue(gateway, work_id, Delivery.NEXT_CHECKPOINT, "use tabs")
    code = """const found = await tools.find({});
    const {item} = await tools.steer_claim_next();
    const {intent_id} = item;
    await tools.steer_complete({intent_id, outcome: "done", note: "so be it"});
    return [found.coordination.pending_user_items, item.content, await tools.steer_status()];"""
    run = await gateway.call("codemode", {"code": code, "work_id": work_id})
    value = cast("list[object]", run["value"])
    assert (value[:2], cast("Json", value[2])["claimed"]) == ([1, "use tabs"], 0)
    assert run["problems"] == []


async def test_what_a_failed_script_had_claimed_waits_again(gateway: Gateway) -> None:
    work_id = await opened(gateway)
    await queue(gateway, work_id, Delivery.NEXT_CHECKPOINT, "use tabs")
    taking = "const {item} = await tools.steer_claim_next();"
    run = await gateway.call("codemode", {"code": f"{taking} throw 1", "work_id": work_id})
    assert run["status"] == "failed"
    assert (await gateway.works.find(work_id)).queued == 1
    run = await gateway.call("codemode", {"code": f"{taking} return item", "work_id": work_id})
    assert run["status"] == "completed"
    assert (await gateway.works.find(work_id)).claimed == 1
