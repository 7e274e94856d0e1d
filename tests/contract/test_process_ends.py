"""Ending a process, and everything that it started."""

import os
from pathlib import Path

import anyio
import pytest

from codespace.domain.errors import ErrorCode
from contract.answers import Reply
from contract.session import Space
from contract.subtrees import marked

pytestmark = pytest.mark.anyio


@pytest.mark.requirement("terminate.ok", "terminate.ended-is-fine")
async def test_a_terminated_process_is_told_as_terminated_and_may_be_ended_again(
    cell_space: Space,
) -> None:
    process_id = await cell_space.start("sleep", "600")
    end = cell_space.session.call
    assert (await end("terminate_process", process_id=process_id)).body == {"ok": True}
    state = await cell_space.ended(process_id)
    assert state["termination"] == "terminated"
    assert "exit_code" not in state
    for _ in range(2):
        assert (await end("terminate_process", process_id=process_id)).body == {"ok": True}
    again = await end("process_status", process_id=process_id)
    assert again.body == state.body


@pytest.mark.requirement("terminate.ended-is-fine")
async def test_ending_an_ended_process_does_not_change_how_it_ended(space: Space) -> None:
    process_id = await space.start_shell("exit 7")
    await space.ended(process_id)
    await space.session.call("terminate_process", process_id=process_id)
    state = await space.session.call("process_status", process_id=process_id)
    assert (state["termination"], state["exit_code"]) == ("exited", 7)


@pytest.mark.requirement("terminate.term-then-kill", "terminate.ok")
async def test_a_process_may_clean_up_when_it_is_asked_to_end(space: Space) -> None:
    script = "trap 'echo cleaned; exit 5' TERM; echo ready; while :; do sleep 0.05; done"
    process_id = await space.start_shell(script)
    await space.until_said(process_id, "ready")
    await space.session.call("terminate_process", process_id=process_id)
    state = await space.ended(process_id)
    assert state["termination"] == "terminated"
    assert (await space.output(process_id)).endswith("cleaned\n")


@pytest.mark.requirement("terminate.term-then-kill")
async def test_children_are_asked_to_end_as_their_parent_is(space: Space) -> None:
    child = "trap 'echo child asked >>asked; exit' TERM; echo ready; while :; do sleep 0.05; done"
    process_id = await space.start_shell(f"({child}) & ({child.replace('child', 'other')}) & wait")
    await space.until_said(process_id, "ready\nready")
    await space.session.call("terminate_process", process_id=process_id)
    await space.ended(process_id)
    assert sorted(space.text("asked").splitlines()) == ["child asked", "other asked"]


@pytest.mark.requirement("terminate.term-then-kill", "subtree.exited-means-gone")
async def test_what_ignores_the_request_is_killed(space: Space) -> None:
    mark = f"stubborn-{space.id}-{os.getpid()}"
    script = f": {mark}; trap '' TERM; (trap '' TERM; sleep 600) & echo ready; sleep 600; sleep 600"
    process_id = await space.start_shell(script)
    await space.until_said(process_id, "ready")
    await space.session.call("terminate_process", process_id=process_id)
    state = await space.ended(process_id)
    assert state["termination"] == "terminated"
    assert marked(mark) == []


@pytest.mark.requirement("subtree.daemons-too", "subtree.exited-means-gone")
@pytest.mark.parametrize("how", ["exits", "is terminated"])
async def test_daemons_end_with_their_leader(space: Space, how: str) -> None:
    mark = f"daemon-{space.id}-{os.getpid()}"
    daemon = f"sh -c ': {mark}; trap \"\" TERM HUP; sleep 600; sleep 600'"
    script = (
        f"setsid {daemon} </dev/null >/dev/null 2>&1 & (setsid setsid {daemon} &)"
        f"; nohup {daemon} & sleep 0.2; echo ready; read line"
    )
    process_id = await space.start_shell(script)
    await space.until_said(process_id, "ready")
    assert len(marked(mark)) >= 3
    if how == "exits":
        await space.session.call("write_stdin", process_id=process_id, data="\n")
    else:
        await space.session.call("terminate_process", process_id=process_id)
    state = await space.ended(process_id)
    assert state["termination"] == ("exited" if how == "exits" else "terminated")
    assert marked(mark) == []
    assert state["eof"] is True


@pytest.mark.requirement(
    "lease.one-live-process", "code.workspace-busy", "patch.order-lease-before-mint"
)
async def test_a_live_process_keeps_patches_and_commands_out_at_once(cell_space: Space) -> None:
    space = cell_space
    process_id = await space.start("sleep", "600")
    add = ("*** Add File: a.txt", "+a")
    key = {"operation_key": f"busy {space.id}"}
    busy = [
        await space.refused(ErrorCode.WORKSPACE_BUSY, "exec_command", command=["touch", "x"]),
        await space.refused(ErrorCode.WORKSPACE_BUSY, "bash", command="touch x"),
        await space.patch_refused(ErrorCode.WORKSPACE_BUSY, *add, **key),
        await space.patch_refused(ErrorCode.WORKSPACE_BUSY, *add, check_only=True, **key),
    ]
    for reply in busy:
        assert reply["details", "holder"] == {"kind": "process", "id": process_id}
        assert "operation_id" not in reply
    await space.session.refused(
        ErrorCode.OPERATION_NOT_FOUND, "operation_status", workspace_id=space.id, **key
    )
    assert space.tree() == {}
    await space.session.call("terminate_process", process_id=process_id)
    await space.ended(process_id)
    assert (await space.patch(*add, **key))["status"] == "applied"


@pytest.mark.requirement("lease.looking-goes-on")
async def test_looking_goes_on_while_a_process_lives(space: Space) -> None:
    space.write("a.txt", "needle\n")
    process_id = await space.start("sleep", "600")
    assert (await space.call("read", path="a.txt"))["content"] == "needle\n"
    assert (await space.call("find"))["paths"] == ["a.txt"]
    assert len((await space.call("grep", pattern="needle")).list("matches")) == 1
    await space.session.call("terminate_process", process_id=process_id)


@pytest.mark.requirement("lease.other-workspaces")
async def test_other_workspaces_go_on(space: Space, second_space: Space) -> None:
    process_id = await space.start("sleep", "600")
    await second_space.patch("*** Add File: a.txt", "+a")
    assert (await second_space.call("bash", command="cat a.txt"))["output"] == "a\n"
    await space.session.call("terminate_process", process_id=process_id)


@pytest.mark.requirement("lease.free-after-exit")
async def test_whoever_saw_the_exit_is_never_told_that_the_workspace_is_busy(
    space: Space,
) -> None:
    for _ in range(10):
        process_id = await space.start_shell("sleep 0.01 & exit 0")
        await space.ended(process_id)
        await space.patch("*** Add File: a.txt", "+a")
        await space.patch("*** Delete File: a.txt")


@pytest.mark.requirement("bash.holds-the-lease", "code.workspace-busy")
async def test_a_running_bash_keeps_others_out_and_is_named_as_the_holder(space: Space) -> None:
    fifo = space.root / "fifo"
    os.mkfifo(fifo)
    replies: list[Reply] = []

    async def run() -> None:
        command = "echo started >fifo; cat fifo; echo over"
        replies.append(await space.call("bash", command=command))

    async def interfere() -> None:
        assert await anyio.to_thread.run_sync(_take, fifo) == "started\n"
        replies.append(
            await space.patch_refused(ErrorCode.WORKSPACE_BUSY, "*** Add File: a.txt", "+a")
        )
        await anyio.to_thread.run_sync(_give, fifo)

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(run)
        tasks.start_soon(interfere)
    busy, ended = replies
    assert busy["details", "holder"] == {"kind": "process", "id": ended["process_id"]}
    assert ended["output"] == "go\nover\n"


def _take(fifo: Path) -> str:
    return fifo.read_text(encoding="utf-8")


def _give(fifo: Path) -> None:
    fifo.write_text("go\n", encoding="utf-8")
