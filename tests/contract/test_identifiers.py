from pathlib import Path

import pytest

from codespace.domain.errors import ErrorCode
from contract.houses import READ_ONLY
from contract.raw import raw_stdio
from contract.session import Session, Space, v4a

pytestmark = pytest.mark.anyio


@pytest.mark.requirement("ids.unguessable")
async def test_minted_ids_are_long_random_and_never_alike(space: Space) -> None:
    operations = [(await space.patch(f"*** Add File: {n}", "+x"))["operation_id"] for n in range(8)]
    processes: list[str] = []
    for _ in range(4):
        processes.append(await space.start("true"))
        await space.ended(processes[-1])
    for ids in (list(map(str, operations)), processes):
        tails = [name.partition("-")[2] for name in ids]
        assert len(set(tails)) == len(tails)
        assert all(len(tail) >= 16 for tail in tails)  # of 64 letters: 96 bits
        for place in range(16):
            assert len({tail[place] for tail in tails}) > 1, "a fixed part is no randomness"


@pytest.mark.requirement("ids.workspace-names-are-the-operators")
async def test_a_workspace_is_known_by_the_operators_name_and_no_other(
    space: Space, session: Session
) -> None:
    info = await session.call("workspace_info", workspace_id=space.id)
    assert info["workspace_id"] == space.id
    for name in (str(space.root), space.id.upper(), f"{space.id} ", f"./{space.id}", "", "*"):
        await session.refused(ErrorCode.WORKSPACE_NOT_FOUND, "find", workspace_id=name)


@pytest.mark.requirement("ids.grant-nothing")
async def test_ids_of_one_workspace_open_nothing_in_another(space: Space, session: Session) -> None:
    applied = await space.patch("*** Add File: a.txt", "+a", operation_key="k")
    process_id = await space.start("sleep", "600")
    patch = v4a("*** Add File: b.txt", "+b")
    for borrowed in (
        {"operation_id": applied["operation_id"]},
        {"process_id": process_id},
        {"operation_key": "k"},
        {"approval_id": "appr-1", "work_id": "work-1", "run_id": "run-1", "intent_id": "int-1"},
    ):
        await session.refused(
            ErrorCode.UNAUTHORIZED, "apply_patch", workspace_id=READ_ONLY, patch=patch, **borrowed
        )
        await session.refused(
            ErrorCode.UNAUTHORIZED, "bash", workspace_id=READ_ONLY, command="true", **borrowed
        )
    await session.call("terminate_process", process_id=process_id)


@pytest.mark.requirement("ids.request-ids-are-none-of-these")
def test_a_request_id_is_neither_operation_nor_key_and_may_come_again(
    tmp_path: Path, config: Path
) -> None:
    with raw_stdio(tmp_path / "stderr.txt", "--config", str(config)) as gateway:
        gateway.open()
        operations: set[str] = set()
        for name in ("a", "b"):
            gateway.last = 40
            reply = gateway.call(
                "apply_patch",
                {"workspace_id": "default", "patch": v4a(f"*** Add File: {name}", "+x")},
            )
            assert (reply["status"], reply["replayed"]) == ("applied", False)
            operations.add(reply.text("operation_id"))
        assert len(operations) == 2
        for asked in ({"operation_id": "41"}, {"operation_key": "41"}):
            assert gateway.call("operation_status", asked)["code"] == "OPERATION_NOT_FOUND"
