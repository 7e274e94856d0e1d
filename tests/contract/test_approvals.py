"""Section 8: calls that wait for a confirmation, as a client sees them."""

import json
import os
import sqlite3
import sys
from collections.abc import AsyncGenerator, Iterator
from contextlib import AsyncExitStack, closing
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import cast

import anyio
import anyio.to_thread
import pytest

from codespace.adapters.client import connect_http
from codespace.domain.errors import ErrorCode
from contract.answers import Reply
from contract.houses import over_http, over_stdio
from contract.raw import http_request
from contract.servers import serving, write_config
from contract.session import Session, Space, held, v4a

pytestmark = pytest.mark.anyio

ADD = v4a("*** Add File: new.txt", "+new")
SPACES = 40
KINDS = {
    "off": {"approvals": "off"},
    "reserved": {"approvals": "confirm", "approvals_granted_by": "operator"},
    "looking": {"approvals": "confirm", "profile": "read-only"},
}


@dataclass(frozen=True, slots=True)
class Place:
    """A gateway whose workspaces want confirmations, and its ledger."""

    session: Session
    base: Path
    unused: Iterator[str]

    @property
    def ledger(self) -> Path:
        return self.base / "ledger.db"

    def space(self, name: str | None = None) -> Space:
        """Return a workspace: an unused one that confirms, or one of `KINDS`."""
        name = name or next(self.unused)
        return Space(self.session, name, self.base / name)


def build(base: Path) -> tuple[Path, Iterator[str]]:
    names = [f"w{number:02}" for number in range(SPACES)]
    registered: dict[str, dict[str, str]] = {}
    for name, kind in [*((name, {"approvals": "confirm"}) for name in names), *KINDS.items()]:
        (base / name).mkdir()
        registered[name] = {"root": str(base / name), "profile": "workspace-write", **kind}
    config = write_config(base / "c.json", registered, operations_db=str(base / "ledger.db"))
    return config, iter(names)


@pytest.fixture(scope="module", params=["stdio", "http"])
async def place(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> AsyncGenerator[Place]:
    base = tmp_path_factory.mktemp("confirming")
    config, names = build(base)
    async with AsyncExitStack() as stack:
        if request.param == "stdio":
            connect = partial(over_stdio, config, "2025-11-25")
        else:
            server = stack.enter_context(serving(base / "stderr.txt", "--config", str(config)))
            connect = partial(over_http, server.url, "2026-07-28")
        yield Place(await stack.enter_async_context(held(connect)), base, names)


@pytest.fixture
def space(place: Place) -> Space:
    return place.space()


async def hold(space: Space, tool: str = "bash", **arguments: object) -> str:
    """Make a call that must be held, and return the id of its hold."""
    given = {"command": "echo made >> made.txt"} if tool == "bash" else {}
    reply = await space.refused(ErrorCode.APPROVAL_REQUIRED, tool, **(given | arguments))
    return reply.text("approval_id")


async def decide(space: Space, approval_id: str, decision: str = "grant") -> Reply:
    return await space.session.call("approval_resolve", approval_id=approval_id, decision=decision)


async def resume(space: Space, approval_id: str) -> Reply:
    return await space.session.call("operation_resume", approval_id=approval_id)


async def not_resumed(space: Space, code: ErrorCode, approval_id: str) -> Reply:
    return await space.session.refused(code, "operation_resume", approval_id=approval_id)


def row(place: Place, approval_id: str) -> dict[str, object]:
    """Return what the store has of a hold, read beside the gateway."""
    uri = f"file:{place.ledger}?mode=ro"
    with closing(sqlite3.connect(uri, uri=True)) as connection:
        connection.row_factory = sqlite3.Row
        found = connection.execute(
            "SELECT * FROM approvals WHERE approval_id = ?", (approval_id,)
        ).fetchone()
    return dict(cast("dict[str, object]", found))


@pytest.mark.requirement("approvals.required", "code.approval-required")
@pytest.mark.parametrize(
    ("tool", "arguments"),
    [
        ("apply_patch", {"patch": ADD}),
        ("apply_patch", {"patch": "no patch"}),
        ("exec_command", {"command": ["touch", "x"]}),
        ("exec_command", {"command": ["touch", "x"], "tty": True}),
        ("bash", {"command": "touch x"}),
    ],
)
async def test_what_changes_something_is_held_and_does_nothing(
    space: Space, tool: str, arguments: dict[str, object]
) -> None:
    reply = await space.refused(ErrorCode.APPROVAL_REQUIRED, tool, **arguments)
    assert reply.text("approval_id").startswith("appr-")
    assert len(reply.text("approval_id")) > 20
    assert "operation_id" not in reply
    assert "operation_resume" in reply.text("message")
    assert reply.at("details").body == {"state": "pending", "granted_by": "caller"}
    assert space.tree() == {}


@pytest.mark.requirement("approvals.preview-is-not-held")
async def test_a_preview_and_a_look_are_not_held(space: Space) -> None:
    assert (await space.call("apply_patch", patch=ADD, check_only=True))["status"] == "checked"
    space.write("a.txt", "a")
    assert (await space.call("read", path="a.txt"))["content"] == "a"


@pytest.mark.requirement("approvals.cannot-raise-read-only")
async def test_a_confirmation_cannot_raise_read_only(place: Place) -> None:
    looking = place.space("looking")
    given = {"workspace_id": "looking", "command": "touch x"}
    await looking.refused(ErrorCode.UNAUTHORIZED, "bash", command="touch x")
    await looking.session.refused(
        ErrorCode.UNAUTHORIZED, "approval_create", tool="bash", arguments=given
    )
    assert looking.tree() == {}


@pytest.mark.requirement("approvals.same-request")
async def test_the_same_request_has_the_same_hold_until_that_has_ended(space: Space) -> None:
    first = await hold(space)
    assert await hold(space, approved=True, user_id="me") == first
    assert await hold(space, command="true") != first
    await decide(space, first)
    assert await hold(space) == first
    await resume(space, first)
    second = await hold(space)
    assert second != first
    await decide(space, second, "deny")
    assert await hold(space) not in (first, second)


@pytest.mark.requirement("approvals.create")
async def test_a_call_is_held_explicitly_also_with_confirmations_off(place: Place) -> None:
    off = place.space("off")
    given = {"workspace_id": "off", "patch": ADD}
    created = await off.session.call("approval_create", tool="apply_patch", arguments=given)
    assert (created["state"], created["summary"]) == ("pending", "add new.txt")
    again = await off.session.call("approval_create", tool="apply_patch", arguments=given)
    assert again["approval_id"] == created["approval_id"]
    assert off.tree() == {}
    await decide(off, created.text("approval_id"))
    assert (await resume(off, created.text("approval_id")))["result", "status"] == "applied"
    assert off.text("new.txt") == "new\n"


@pytest.mark.requirement("approvals.create")
async def test_what_the_call_would_be_refused_with_is_said_before_it_is_held(
    place: Place,
) -> None:
    ask = partial(place.session.refused, tool="apply_patch")
    for code, arguments in (
        (ErrorCode.INVALID_ARGUMENT, {"workspace_id": "off"}),
        (ErrorCode.INVALID_ARGUMENT, {"workspace_id": "off", "patch": ADD, "check_only": True}),
        (ErrorCode.WORKSPACE_NOT_FOUND, {"workspace_id": "none", "patch": ADD}),
        (ErrorCode.UNAUTHORIZED, {"workspace_id": "looking", "patch": ADD}),
    ):
        await ask(code, "approval_create", arguments=arguments)
    for tool in ("read", "codemode", "approval_resolve", "no_such_tool"):
        await place.session.refused(
            ErrorCode.INVALID_ARGUMENT, "approval_create", tool=tool, arguments={}
        )


@pytest.mark.requirement(
    "approvals.resolve", "approvals.caller-grants", "approvals.conflict", "code.approval-conflict"
)
async def test_the_first_decision_is_the_only_one(space: Space) -> None:
    for first, second, state in (("grant", "deny", "granted"), ("deny", "grant", "denied")):
        approval_id = await hold(space, command=first)
        decided = await decide(space, approval_id, first)
        assert (decided["state"], decided["resolved_by"]) == (state, "caller")
        for late in (first, second):
            reply = await space.session.refused(
                ErrorCode.APPROVAL_CONFLICT,
                "approval_resolve",
                approval_id=approval_id,
                decision=late,
            )
            assert reply["approval_id"] == approval_id
            assert reply["details", "state"] == state


@pytest.mark.requirement("approvals.resolve")
async def test_of_decisions_at_once_one_wins(space: Space) -> None:
    approval_id = await hold(space)
    won: list[object] = []

    async def race(decision: str) -> None:
        answer = await space.session.ask(
            "approval_resolve", {"approval_id": approval_id, "decision": decision}
        )
        if not answer.is_error:
            won.append(decision)

    async with anyio.create_task_group() as tasks:
        for decision in ("grant", "deny", "grant", "deny", "grant", "deny"):
            tasks.start_soon(race, decision)
    assert len(won) == 1


@pytest.mark.requirement("approvals.conflict")
async def test_what_is_pending_or_denied_is_not_run(space: Space) -> None:
    approval_id = await hold(space)
    pending = await not_resumed(space, ErrorCode.APPROVAL_CONFLICT, approval_id)
    assert pending["details", "state"] == "pending"
    await decide(space, approval_id, "deny")
    denied = await not_resumed(space, ErrorCode.APPROVAL_CONFLICT, approval_id)
    assert (denied["details", "state"], denied["approval_id"]) == ("denied", approval_id)
    assert space.tree() == {}


@pytest.mark.requirement("approvals.resume-once", "approvals.consumed-with-result")
async def test_a_granted_command_runs_once_however_often_it_is_resumed(
    place: Place, space: Space
) -> None:
    approval_id = await hold(space)
    await decide(space, approval_id)
    first = await resume(space, approval_id)
    assert first.at("result")["exit_code"] == 0
    assert (first["state"], first["tool"], first["approval_id"]) == (
        "consumed",
        "bash",
        approval_id,
    )
    assert json.loads(str(row(place, approval_id)["outcome"])) == first["result"]
    for _ in range(3):
        assert (await resume(space, approval_id)).body == first.body
    assert space.text("made.txt") == "made\n"


@pytest.mark.requirement("approvals.resume-once")
async def test_a_granted_patch_is_applied_once_and_its_handle_works(space: Space) -> None:
    patched = await hold(space, "apply_patch", patch=ADD)
    await decide(space, patched)
    first = await resume(space, patched)
    record = await space.session.call(
        "operation_status", operation_id=first["result", "operation_id"]
    )
    assert (record["status"], record["workspace_id"]) == ("applied", space.id)
    assert (await resume(space, patched)).body == first.body
    started = await hold(space, "exec_command", command=["cat", "new.txt"])
    await decide(space, started)
    process_id = (await resume(space, started)).text("result", "process_id")
    assert await space.output(process_id) == "new\n"


@pytest.mark.requirement("approvals.resume-once")
async def test_what_a_resumed_call_fails_with_is_its_stored_result(space: Space) -> None:
    approval_id = await hold(space, "apply_patch", patch=v4a("*** Delete File: a.txt"))
    await decide(space, approval_id)
    first = await not_resumed(space, ErrorCode.FILE_NOT_FOUND, approval_id)
    assert first["approval_id"] == approval_id
    space.write("a.txt")
    again = await not_resumed(space, ErrorCode.FILE_NOT_FOUND, approval_id)
    assert again.body == first.body
    assert space.tree() == {"a.txt": b""}


@pytest.mark.requirement("approvals.two-resumes", "approvals.conflict")
async def test_of_resumes_at_once_one_executes(space: Space) -> None:
    text = "echo made >> made.txt; until [ -e go ]; do sleep 0.01; done"
    approval_id = await hold(space, command=text)
    await decide(space, approval_id)
    replies: list[Reply] = []

    async def race() -> None:
        answer = await space.session.ask("operation_resume", {"approval_id": approval_id})
        replies.append(Reply(cast("dict[str, object]", answer.structured_content)))
        if len(replies) == 3:
            space.write("go")

    async with anyio.create_task_group() as tasks:
        for _ in range(4):
            tasks.start_soon(race)
    codes = [reply.body.get("code") for reply in replies]
    assert codes == [ErrorCode.APPROVAL_CONFLICT.value] * 3 + [None]
    assert {reply["details", "state"] for reply in replies[:3]} == {"resuming"}
    assert space.text("made.txt") == "made\n"
    assert (await resume(space, approval_id)).body == replies[3].body


@pytest.mark.requirement(
    "approvals.not-found", "approvals.nothing-grants", "code.approval-not-found"
)
async def test_no_argument_and_no_forged_id_grants_anything(place: Place, space: Space) -> None:
    granted = await hold(place.space(), command="touch elsewhere")
    await decide(space, granted)
    claims = {"approved": True, "approval_id": granted, "decision": "grant", "by": "operator"}
    await space.refused(
        ErrorCode.APPROVAL_REQUIRED, "exec_command", command=["touch", "x"], **claims
    )
    await space.refused(ErrorCode.APPROVAL_REQUIRED, "apply_patch", patch=ADD, **claims)
    for forged in ("appr-forged", "", granted[:-1], f"{granted} ", "op-1"):
        reply = await not_resumed(space, ErrorCode.APPROVAL_NOT_FOUND, forged)
        assert "approval_id" not in reply
        await space.session.refused(
            ErrorCode.APPROVAL_NOT_FOUND,
            "approval_resolve",
            approval_id=forged,
            decision="grant",
        )
    assert space.tree() == {}


@pytest.mark.requirement("approvals.operator-grants")
async def test_where_the_operator_grants_the_caller_does_not(place: Place) -> None:
    reserved = place.space("reserved")
    reply = await reserved.refused(ErrorCode.APPROVAL_REQUIRED, "bash", command="touch x")
    assert reply["details", "granted_by"] == "operator"
    for decision in ("grant", "deny"):
        refusal = await reserved.session.refused(
            ErrorCode.UNAUTHORIZED,
            "approval_resolve",
            approval_id=reply["approval_id"],
            decision=decision,
            by="operator",
        )
        assert refusal["details", "approvals_granted_by"] == "operator"
    await not_resumed(reserved, ErrorCode.APPROVAL_CONFLICT, reply.text("approval_id"))
    assert reserved.tree() == {}


@pytest.mark.requirement("approvals.operator-grants", "approvals.caller-grants")
async def test_workspace_info_tells_whether_and_by_whom(place: Place) -> None:
    for name, told in (
        (place.space().id, ("confirm", "caller")),
        ("reserved", ("confirm", "operator")),
        ("off", ("off", "caller")),
    ):
        info = await place.session.call("workspace_info", workspace_id=name)
        execution = info.at("execution")
        assert (execution["approvals"], execution["approvals_granted_by"]) == told


@pytest.mark.requirement("approvals.nothing-grants", "codemode.same-policy")
async def test_a_call_of_a_script_is_held_as_its_clients_would_be(space: Space) -> None:
    code = """const said = [];
    for (const call of [
      () => tools.bash({command: "touch x"}),
      () => tools.exec_command({command: ["touch", "x"], approved: true}),
      () => tools.apply_patch({patch: args}),
    ]) { try { await call() } catch (e) { said.push([e.code, e.details.approval_id]) } }
    return said;"""
    first, second = [(await space.script(code, args=ADD))["value"] for _ in range(2)]
    assert first == second
    codes, ids = zip(*cast("list[tuple[str, str]]", first), strict=True)
    assert set(codes) == {"APPROVAL_REQUIRED"}
    assert space.tree() == {}
    for approval_id in ids[::2]:
        await decide(space, approval_id)
        await resume(space, approval_id)
    assert set(space.tree()) == {"x", "new.txt"}


@pytest.mark.requirement("approvals.order")
async def test_a_recorded_key_comes_before_a_hold_and_a_hold_before_the_lease(
    space: Space,
) -> None:
    key = {"operation_key": "k", "patch": ADD}
    patched = await hold(space, "apply_patch", **key)
    await decide(space, patched)
    done = await resume(space, patched)
    again = await space.call("apply_patch", **key)
    assert again.body == {**done.at("result").body, "replayed": True}
    await space.refused(
        ErrorCode.OPERATION_KEY_CONFLICT, "apply_patch", patch=f"{ADD}\n", operation_key="k"
    )
    started = await hold(space, "exec_command", command=["sleep", "60"])
    await decide(space, started)
    process_id = (await resume(space, started))["result", "process_id"]
    waiting = await hold(space, command="touch x")
    await decide(space, waiting)
    busy = await not_resumed(space, ErrorCode.WORKSPACE_BUSY, waiting)
    assert busy["details", "holder", "id"] == process_id
    await space.session.call("terminate_process", process_id=process_id)
    assert (await resume(space, waiting))["result", "exit_code"] == 0


@pytest.mark.requirement("approvals.erased")
@pytest.mark.parametrize("decision", ["grant", "deny"])
async def test_arguments_are_kept_until_the_end_and_then_their_digest(
    place: Place, space: Space, decision: str
) -> None:
    approval_id = await hold(space, command="echo hunter2 >> made.txt")
    before = row(place, approval_id)
    assert "hunter2" in str(before["arguments"])
    await decide(space, approval_id, decision)
    if decision == "grant":
        assert row(place, approval_id)["arguments"] == before["arguments"]
        await resume(space, approval_id)
    after = row(place, approval_id)
    assert (after["arguments"], after["summary"]) == (None, None)
    assert after["digest"] == before["digest"]
    assert len(str(after["digest"])) == 64
    assert "hunter2" not in str(after)


@pytest.mark.requirement("approvals.survive-a-restart", "approvals.policy-again")
async def test_a_restart_between_any_two_steps_changes_nothing(tmp_path: Path) -> None:
    config, _ = build(tmp_path)
    root = tmp_path / "w00"

    async def call(tool: str, code: ErrorCode | None, **arguments: object) -> Reply:
        async with over_stdio(config) as session:
            if code is not None:
                return await session.refused(code, tool, **arguments)
            return await session.call(tool, **arguments)

    given = {"workspace_id": "w00", "command": "echo made >> made.txt"}
    held_call = await call("bash", ErrorCode.APPROVAL_REQUIRED, **given)
    approval_id = held_call["approval_id"]
    again = await call("bash", ErrorCode.APPROVAL_REQUIRED, **given)
    assert again["approval_id"] == approval_id
    await call("approval_resolve", None, approval_id=approval_id, decision="grant")
    settings = json.loads(config.read_text(encoding="utf-8"))
    settings["workspaces"]["w00"]["profile"] = "read-only"
    permitted = config.read_text(encoding="utf-8")
    config.write_text(json.dumps(settings), encoding="utf-8")
    await call("operation_resume", ErrorCode.UNAUTHORIZED, approval_id=approval_id)
    assert list(root.iterdir()) == []
    config.write_text(permitted, encoding="utf-8")
    first = await call("operation_resume", None, approval_id=approval_id)
    assert (await call("operation_resume", None, approval_id=approval_id)).body == first.body
    assert (root / "made.txt").read_text(encoding="utf-8") == "made\n"


@pytest.mark.requirement("approvals.operator-grants", "approvals.nothing-grants")
async def test_only_who_has_the_token_grants_and_a_command_has_it_not(tmp_path: Path) -> None:
    config, _ = build(tmp_path)
    token = tmp_path / "token"
    token.write_text("t0ken-of-the-operator", encoding="utf-8")
    reader, writer = os.pipe()
    os.write(writer, token.read_bytes())
    os.close(writer)
    token.unlink()
    words = ("--config", str(config), "--http-token-file", f"/proc/{os.getpid()}/fd/{reader}")
    with serving(tmp_path / "errors", *words) as server:
        os.close(reader)
        async with connect_http(server.url, token="t0ken-of-the-operator") as connection:
            session = Session(connection.client)
            reserved, off = (Space(session, name, tmp_path / name) for name in ("reserved", "off"))
            approval_id = await hold(reserved, command="touch x")
            address = f"{server.url.removesuffix('/mcp')}/inbox/approvals/{approval_id}"
            body = json.dumps({"decision": "grant"}).encode()
            program = (
                "import urllib.request, urllib.error\n"
                f"request = urllib.request.Request({address!r}, {body!r})\n"
                "try:\n    print(urllib.request.urlopen(request).status)\n"
                "except urllib.error.HTTPError as error:\n    print(error.code)\n"
            )
            off.write("grant.py", program)
            ran = await off.call("bash", command=f"{sys.executable} grant.py; env")
            assert ran.text("output").splitlines()[0] == "401"
            assert "t0ken" not in ran.text("output")
            pid = server.pid
            seen = await off.call("bash", command=f"cat /proc/{pid}/environ /proc/{pid}/cmdline")
            assert "t0ken" not in seen.text("output")
            await not_resumed(reserved, ErrorCode.APPROVAL_CONFLICT, approval_id)
            headers = {"authorization": "Bearer t0ken-of-the-operator"}
            granted = await anyio.to_thread.run_sync(
                lambda: http_request(
                    address,
                    method="POST",
                    headers={**headers, "content-type": "application/json"},
                    body=body,
                )
            )
            assert granted.status == 200
            assert (await resume(reserved, approval_id))["state"] == "consumed"
