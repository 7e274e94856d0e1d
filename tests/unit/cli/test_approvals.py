"""`codespace approvals` on a running gateway, as the operator uses it."""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import anyio
import pytest

from codespace.adapters.client import connect_http
from codespace.domain.tool import Json
from commands import Command, Ran
from contract.servers import serving, write_config

TOKEN = "a-token-of-the-operator-0123456789"
ADD = "*** Begin Patch\n*** Add File: a.txt\n+hi \u200bthere\n*** End Patch"


@dataclass(frozen=True, slots=True)
class World:
    """A gateway whose holds are the operator's, and the operator's shell."""

    url: str
    token_file: Path
    command: Command

    def run(self, *words: str) -> Ran:
        return self.command(
            "approvals", *words, "--url", self.url, "--token-file", str(self.token_file)
        )

    def called(self, tool: str, arguments: Mapping[str, object]) -> Json:
        async def call() -> Json:
            async with connect_http(self.url, token=TOKEN) as connection:
                return (await connection.call(tool, arguments)).body

        return anyio.run(call)

    def held(self, tool: str, **arguments: object) -> str:
        body = self.called(tool, {"workspace_id": "demo", **arguments})
        assert body["code"] == "APPROVAL_REQUIRED"
        return str(body["approval_id"])


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[str, Path]]:
    base = tmp_path_factory.mktemp("approvals")
    (base / "root").mkdir()
    (base / "token").write_text(TOKEN, encoding="utf-8")
    (base / "token").chmod(0o600)
    kind = {"profile": "workspace-write", "approvals": "confirm"}
    config = write_config(
        base / "c.json",
        {"demo": {"root": str(base / "root"), **kind}},
        approvals_granted_by="operator",
    )
    words = ("--config", str(config), "--http-token-file", str(base / "token"))
    with serving(base / "errors", *words) as server:
        yield server.url, base / "token"


@pytest.fixture
def world(place: tuple[str, Path], command: Command) -> World:
    return World(*place, command)


def test_a_held_call_is_listed_shown_granted_and_then_made(world: World) -> None:
    hold = world.held("apply_patch", patch=ADD)
    line = f"{hold}  demo  pending  apply_patch  add a.txt"
    assert line in world.run("list").out.splitlines()
    shown = world.run("show", hold).out
    assert "    +hi <U+200B>there\n" in shown
    assert "granted by: operator" in shown
    granted = world.run("grant", hold)
    assert (granted.code, granted.out) == (0, f"{line.replace('pending', 'granted')}\n")
    made = world.called("operation_resume", {"approval_id": hold})
    assert made["state"] == "consumed"
    assert hold not in world.run("list").out
    assert f"{hold}  demo  consumed  apply_patch" in world.run("list", "--ended").out
    after = world.run("show", hold).out
    assert "there" not in after
    assert '"status": "applied"' in after


def test_a_denied_call_is_never_made_and_a_second_decision_is_refused(world: World) -> None:
    hold = world.held("exec_command", command=["rm", "-rf", "a b"])
    assert "rm -rf 'a b'" in world.run("list", "--workspace", "demo").out
    assert world.run("list", "--workspace", "none").out == ""
    assert 'command: ["rm", "-rf", "a b"]' in world.run("show", hold).out
    assert world.run("deny", hold).code == 0
    late = world.run("grant", hold)
    assert (late.code, late.out) == (1, "")
    assert "denied" in late.err
    assert world.called("operation_resume", {"approval_id": hold})["code"] == "APPROVAL_CONFLICT"


def test_an_answer_can_be_had_as_json(world: World) -> None:
    hold = world.held("bash", command="make")
    shown = json.loads(world.run("show", hold, "--json").out)
    assert (shown["approval_id"], shown["arguments"]["command"]) == (hold, "make")
    assert json.loads(world.run("grant", hold, "--json").out)["state"] == "granted"


def test_what_is_no_hold_is_said(world: World) -> None:
    assert (world.run("show", "appr-none").code, world.run("grant", "appr-none").code) == (1, 1)
    for odd in ("../works", "a/b", "", "ä"):
        ran = world.run("grant", odd)
        assert (ran.code, "codespace approvals list" in ran.err) == (2, True)


def test_without_the_token_nothing_is_granted(world: World) -> None:
    hold = world.held("bash", command="true")
    ran = world.command("approvals", "grant", hold, "--url", world.url)
    assert (ran.code, "--token-file FILE" in ran.err) == (2, True)
    assert f"{hold}  demo  pending" in world.run("list").out
