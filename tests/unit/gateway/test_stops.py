"""`stop` on a real gateway: what ends, what the agent finds, what stays in the queue."""

from collections.abc import AsyncIterator, Mapping
from pathlib import Path
from typing import cast

import anyio
import pytest

from codespace.bootstrap import Gateway, open_gateway
from codespace.domain.errors import CodeSpaceError, ErrorCode
from codespace.domain.ids import WorkId
from codespace.domain.tool import Json
from codespace.domain.work import Delivery, IntentKind
from codespace.gateway.stops import SAID
from codespace.gateway.works import Wish
from codespace.settings import load

pytestmark = pytest.mark.anyio


@pytest.fixture
async def gateway(tmp_path: Path) -> AsyncIterator[Gateway]:
    loaded = load(path=str(tmp_path), environ={"PATH": "/usr/bin:/bin"})
    async with open_gateway(loaded) as gateway:
        yield gateway


async def opened(gateway: Gateway) -> WorkId:
    work = await gateway.call("work_open", {"workspace_id": "default"})
    return WorkId(str(work["work_id"]))


async def claimed(gateway: Gateway, work_id: WorkId) -> Json | None:
    answer = await gateway.call("steer_claim_next", {"work_id": work_id})
    return cast("Json | None", answer["item"])


async def started(gateway: Gateway, *argv: str) -> str:
    answer = await gateway.call("exec_command", {"workspace_id": "default", "command": [*argv]})
    return str(answer["process_id"])


async def test_the_live_process_ends_and_the_agent_finds_why(gateway: Gateway) -> None:
    work_id = await opened(gateway)
    process_id = await started(gateway, "sleep", "60")
    stopped = await gateway.stops.stop(work_id, "wrong branch")
    assert stopped.killed
    state = await gateway.call("process_status", {"process_id": process_id})
    assert (state["state"], state["termination"]) == ("exited", "terminated")
    item = await claimed(gateway, work_id)
    assert item is not None
    assert (item["kind"], item["content"]) == ("stop_notice", "wrong branch")
    assert item["intent_id"] == stopped.notice.intent_id
    await started(gateway, "true")  # the lease is free


async def test_a_process_that_takes_no_hint_is_ended_all_the_same(gateway: Gateway) -> None:
    work_id = await opened(gateway)
    process_id = await started(gateway, "sh", "-c", "trap '' TERM; echo on; sleep 60")
    await gateway.call("read_process", {"process_id": process_id, "wait_ms": 20_000})
    assert (await gateway.stops.stop(work_id)).killed
    state = await gateway.call("process_status", {"process_id": process_id})
    assert state["state"] == "exited"


async def test_without_a_process_there_is_a_notice_alone(gateway: Gateway) -> None:
    work_id = await opened(gateway)
    wish = Wish("later", delivery=Delivery.NEXT_CHECKPOINT)
    draft = await gateway.works.add(work_id, wish)
    await gateway.works.queue(draft.intent_id, 1)
    stopped = await gateway.stops.stop(work_id)
    assert not stopped.killed
    assert (stopped.notice.kind, stopped.notice.body) == (IntentKind.STOP_NOTICE, SAID)
    bodies = [await claimed(gateway, work_id) for _ in range(3)]
    assert [item and item["content"] for item in bodies] == [SAID, "later", None]


async def test_a_closed_work_is_not_stopped_and_nothing_ends(gateway: Gateway) -> None:
    work_id = await opened(gateway)
    await gateway.call("work_finish", {"work_id": work_id})
    process_id = await started(gateway, "sleep", "60")
    for name, code in ((work_id, ErrorCode.WORK_CLOSED), ("work-x", ErrorCode.WORK_NOT_FOUND)):
        with pytest.raises(CodeSpaceError) as caught:
            await gateway.stops.stop(WorkId(name))
        assert caught.value.code is code
    state = await gateway.call("process_status", {"process_id": process_id})
    assert state["state"] == "running"


async def test_the_scripts_of_the_work_end_and_hand_back_what_they_had_claimed(
    gateway: Gateway,
) -> None:
    work_id = await opened(gateway)
    draft = await gateway.works.add(work_id, Wish("rename it", delivery=Delivery.NEXT_CHECKPOINT))
    await gateway.works.queue(draft.intent_id, 1)
    code = """const {item} = await tools.steer_claim_next();
    await tools.bash({command: `echo ${item.content} > taken; sleep 60`});"""
    arguments: Mapping[str, object] = {"code": code, "work_id": work_id, "wait_ms": 0}
    run = await gateway.call("codemode", arguments)
    with anyio.fail_after(20):
        while not ((await gateway.works.find(work_id)).claimed and await live(gateway)):
            await anyio.sleep(0.01)
    stopped = await gateway.stops.stop(work_id)
    assert stopped.killed
    ended = await gateway.call("codemode_status", {"run_id": run["run_id"], "wait_ms": 20_000})
    assert ended["status"] == "cancelled"
    standing = await gateway.works.find(work_id)
    assert (standing.queued, standing.claimed) == (2, 0)
    items = [await claimed(gateway, work_id) for _ in range(2)]
    assert [item and item["content"] for item in items] == [SAID, "rename it"]


async def live(gateway: Gateway) -> bool:
    return await gateway.stops.processes.leases.holder(next(iter(gateway.workspaces))) is not None
