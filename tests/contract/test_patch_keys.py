"""Operation keys: a patch happens once, however often it is sent."""

from functools import partial
from pathlib import Path

import anyio
import pytest

from codespace.domain.errors import ErrorCode
from contract.answers import Reply
from contract.houses import House, over_http, over_stdio
from contract.session import Session, Space, v4a

pytestmark = pytest.mark.anyio

ADD = ("*** Add File: a.txt", "+a")
ABSENT = {"a.txt": "absent"}


@pytest.mark.requirement("key.replay")
async def test_the_same_key_returns_the_recorded_result_however_often(cell_space: Space) -> None:
    space = cell_space
    first = await space.patch(*ADD, operation_key="k")
    assert first["replayed"] is False
    space.write("a.txt", "changed since\n")
    for _ in range(3):
        again = await space.patch(*ADD, operation_key="k")
        assert again.body == {**first.body, "replayed": True}
    assert space.text("a.txt") == "changed since\n"


@pytest.mark.requirement("key.replayed-refusal")
async def test_a_recorded_refusal_is_replayed_as_the_same_error(space: Space) -> None:
    space.write("a.txt", "in the way\n")
    first = await space.patch_refused(ErrorCode.ADD_FILE_EXISTS, *ADD, operation_key="k")
    (space.root / "a.txt").unlink()
    again = await space.patch_refused(ErrorCode.ADD_FILE_EXISTS, *ADD, operation_key="k")
    assert again.body == first.body
    assert space.tree() == {}


@pytest.mark.requirement("key.replay-after-restart", "ids.operations-survive-a-restart")
async def test_results_and_refusals_are_replayed_after_a_restart(
    config: Path, root: Path, tmp_path: Path
) -> None:
    ledger = ("--operations-db", str(tmp_path / "ledger.db"))
    async with over_stdio(config, "2025-11-25", *ledger) as session:
        space = Space(session, "default", root)
        applied = await space.patch(*ADD, operation_key="good")
        refused = await space.patch_refused(
            ErrorCode.FILE_NOT_FOUND, "*** Delete File: b.txt", operation_key="bad"
        )
        record = await session.call("operation_status", operation_id=applied["operation_id"])
    space.write("b.txt", "here now\n")
    async with over_stdio(config, "2026-07-28", *ledger) as session:
        space = Space(session, "default", root)
        again = await space.patch(*ADD, operation_key="good")
        assert again.body == {**applied.body, "replayed": True}
        same = await space.patch_refused(
            ErrorCode.FILE_NOT_FOUND, "*** Delete File: b.txt", operation_key="bad"
        )
        assert same.body == refused.body
        for asked in ({"operation_id": applied["operation_id"]}, {"operation_key": "good"}):
            assert (await session.call("operation_status", **asked)).body == record.body
    assert space.text("b.txt") == "here now\n"


@pytest.mark.requirement("key.conflict", "key.fingerprint", "code.operation-key-conflict")
async def test_the_same_key_for_another_request_is_a_conflict(space: Space) -> None:
    first = await space.patch(*ADD, operation_key="k", expected_versions=ABSENT)
    others: list[tuple[tuple[str, ...], dict[str, object]]] = [
        (("*** Add File: a.txt", "+b"), {"expected_versions": ABSENT}),
        ((*ADD, ""), {"expected_versions": ABSENT}),
        (ADD, {}),
        (ADD, {"expected_versions": {"a.txt": "0" * 64}}),
        (ADD, {"expected_versions": ABSENT, "check_only": True}),
    ]
    for lines, arguments in others:
        reply = await space.patch_refused(
            ErrorCode.OPERATION_KEY_CONFLICT, *lines, operation_key="k", **arguments
        )
        assert "operation_id" not in reply
    record = await space.session.call("operation_status", operation_key="k", workspace_id=space.id)
    assert record["operation_id"] == first["operation_id"]
    assert space.text("a.txt") == "a\n"


@pytest.mark.requirement("key.fingerprint")
async def test_the_order_of_expected_versions_makes_no_difference(space: Space) -> None:
    await space.patch(
        *ADD, operation_key="k", expected_versions={"a.txt": "absent", "b.txt": "absent"}
    )
    again = await space.patch(
        *ADD, operation_key="k", expected_versions={"b.txt": "absent", "a.txt": "absent"}
    )
    assert again["replayed"] is True


@pytest.mark.requirement("key.preview-needs-another")
async def test_a_preview_and_its_patch_need_different_keys(space: Space) -> None:
    await space.patch(*ADD, operation_key="preview", check_only=True)
    await space.patch_refused(ErrorCode.OPERATION_KEY_CONFLICT, *ADD, operation_key="preview")
    again = await space.patch(*ADD, operation_key="preview", check_only=True)
    assert (again["status"], again["replayed"]) == ("checked", True)
    assert (await space.patch(*ADD, operation_key="patch"))["status"] == "applied"


@pytest.mark.requirement("key.scope")
async def test_the_same_key_in_another_workspace_is_another_key(
    space: Space, second_space: Space
) -> None:
    key = f"shared by {space.id} and {second_space.id}"
    first = await space.patch(*ADD, operation_key=key)
    other = await second_space.patch("*** Add File: b.txt", "+b", operation_key=key)
    assert (first["replayed"], other["replayed"]) == (False, False)
    assert first["operation_id"] != other["operation_id"]
    for place, reply in ((space, first), (second_space, other)):
        record = await space.session.call(
            "operation_status", operation_key=key, workspace_id=place.id
        )
        assert record["operation_id"] == reply["operation_id"]
        assert record["workspace_id"] == place.id
    await space.session.refused(
        ErrorCode.OPERATION_NOT_FOUND, "operation_status", operation_key=key
    )


@pytest.mark.requirement("key.concurrent")
async def test_of_requests_that_arrive_at_once_one_executes_and_all_get_its_result(
    space: Space, second_session: Session
) -> None:
    beside = Space(second_session, space.id, space.root)
    replies: list[Reply] = []

    async def send(place: Space) -> None:
        replies.append(await place.patch(*ADD, operation_key="k"))

    async with anyio.create_task_group() as tasks:
        for place in (space, beside, space, beside, space, beside):
            tasks.start_soon(send, place)
    assert sorted(bool(reply["replayed"]) for reply in replies) == [False] + [True] * 5
    assert len({reply.text("operation_id") for reply in replies}) == 1
    assert len({str(reply["changes"]) for reply in replies}) == 1
    assert space.text("a.txt") == "a\n"


@pytest.mark.requirement("key.concurrent", "key.replayed-refusal")
async def test_of_refused_requests_at_once_all_get_the_one_refusal(
    space: Space, second_session: Session
) -> None:
    space.write("a.txt", "in the way\n")
    beside = Space(second_session, space.id, space.root)
    replies: list[Reply] = []

    async def send(place: Space) -> None:
        replies.append(
            await place.patch_refused(ErrorCode.ADD_FILE_EXISTS, *ADD, operation_key="k")
        )

    async with anyio.create_task_group() as tasks:
        for place in (space, beside, space, beside):
            tasks.start_soon(send, place)
    assert len({str(reply.body) for reply in replies}) == 1


@pytest.mark.requirement("patch.order-key-before-lease")
async def test_a_replay_needs_no_lease(space: Space) -> None:
    first = await space.patch(*ADD, operation_key="k")
    process_id = await space.start("sleep", "60")
    again = await space.patch(*ADD, operation_key="k")
    assert again["operation_id"] == first["operation_id"]
    await space.patch_refused(ErrorCode.OPERATION_KEY_CONFLICT, *ADD, "", operation_key="k")
    await space.call("terminate_process", process_id=process_id)


async def test_without_a_key_every_request_is_its_own(space: Space) -> None:
    first = await space.patch(*ADD)
    second = await space.patch_refused(ErrorCode.ADD_FILE_EXISTS, *ADD)
    assert first["operation_id"] != second["operation_id"]


async def test_a_key_has_one_to_two_hundred_characters(space: Space) -> None:
    for key in ("", "k" * 201):
        reply = await space.patch_refused(ErrorCode.INVALID_ARGUMENT, *ADD, operation_key=key)
        assert reply["details", "path"] == "operation_key"
    for number, key in enumerate(("k" * 200, "ä 😀 '\"%_\n")):
        await space.patch(f"*** Add File: {number}", "+x", operation_key=key)
        record = await space.session.call(
            "operation_status", operation_key=key, workspace_id=space.id
        )
        assert record["files"] == [str(number)]


@pytest.mark.requirement("ids.lost-answers-are-not-failures", "clients.disconnect-changes-nothing")
async def test_a_patch_whose_client_went_away_is_applied_and_known_by_its_key(
    house: House, space: Space
) -> None:
    sent = partial(
        space.session.client.call_tool,
        "operation_status",
        {"operation_key": "lost", "workspace_id": space.id},
    )
    patch = v4a("*** Add File: big.txt", "+" + "x" * 2_000_000)
    arguments = {"workspace_id": space.id, "patch": patch, "operation_key": "lost"}
    async with over_http(house.url) as leaving, anyio.create_task_group() as tasks:
        tasks.start_soon(leaving.client.call_tool, "apply_patch", arguments)
        with anyio.fail_after(30):
            while (await sent()).is_error:
                await anyio.sleep(0.005)
        tasks.cancel_scope.cancel()
    again = await space.call("apply_patch", patch=patch, operation_key="lost")
    assert (again["status"], again["replayed"]) == ("applied", True)
    assert len(space.text("big.txt")) == 2_000_001
