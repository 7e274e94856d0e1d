"""What an operator sees and deletes of scripts' values, on a real database."""

import json
import os
from pathlib import Path

import pytest

from codespace.domain.ids import WorkspaceId
from codespace.gateway.script_values import owner_of
from codespace.store.engine import Store
from codespace.store.values import ScriptValues
from commands import Command


@pytest.fixture
def config(tmp_path: Path) -> str:
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
    settings = {
        "operations_db": str(tmp_path / "ledger.db"),
        "workspaces": {name: {"root": str(tmp_path / name)} for name in ("one", "two")},
    }
    file = tmp_path / "codespace.json"
    file.write_text(json.dumps(settings), encoding="utf-8")
    return str(file)


def keep(command: Command, config: str, workspace: str, script: str) -> None:
    ran = command("run", "-", "--config", config, "--workspace", workspace, stdin=script)
    assert ran.code == 0, ran.err


def test_keys_are_listed_by_workspace_with_their_lengths(command: Command, config: str) -> None:
    keep(command, config, "one", 'store("b", [1, 2]); store("a", "x")')
    keep(command, config, "two", 'store("a", null)')
    ran = command("stored", "list", "--config", config)
    assert (ran.code, ran.out) == (0, "one\ta\t3\none\tb\t5\ntwo\ta\t4\n")


def test_one_workspaces_values_are_deleted(command: Command, config: str) -> None:
    keep(command, config, "one", 'store("a", 1); store("b", 2)')
    keep(command, config, "two", 'store("a", 3)')
    ran = command("stored", "clear", "one", "--config", config)
    assert (ran.code, ran.out) == (0, "2 values deleted\n")
    assert command("stored", "list", "--config", config).out == "two\ta\t1\n"


def test_a_workspace_that_is_not_registered_is_bad_use(command: Command, config: str) -> None:
    ran = command("stored", "clear", "three", "--config", config)
    assert (ran.code, ran.out) == (2, "")
    assert "one, two" in ran.err


def test_without_a_database_there_is_nothing_to_see(command: Command, tmp_path: Path) -> None:
    ran = command("stored", "list", "--config", _without_database(tmp_path))
    assert (ran.code, ran.out) == (2, "")
    assert "operations_db" in ran.err


def _without_database(folder: Path) -> str:
    (folder / "one").mkdir()
    file = folder / "plain.json"
    file.write_text(json.dumps({"workspaces": {"one": {"root": str(folder / "one")}}}))
    return str(file)


def test_a_database_that_is_not_there_is_not_made(command: Command, config: str) -> None:
    ran = command("stored", "list", "--config", config)
    assert (ran.code, ran.out) == (2, "")
    assert "no database" in ran.err
    assert not Path(config).with_name("ledger.db").exists()


def test_keys_are_listed_beside_a_gateway_but_not_deleted(command: Command, config: str) -> None:
    keep(command, config, "one", 'store("a", "x")')
    beside = Store(str(Path(config).with_name("ledger.db")))
    ScriptValues(beside).write(owner_of(WorkspaceId("one")), {"b": "12"}, most_chars=99)
    listed = command("stored", "list", "--config", config)
    refused = command("stored", "clear", "one", "--config", config)
    beside.close()
    assert (listed.code, listed.out) == (0, "one\ta\t3\none\tb\t2\n")
    assert (refused.code, refused.out) == (2, "")
    assert f"the gateway of process {os.getpid()} uses" in refused.err
    assert "end it first" in refused.err


def test_a_database_in_a_workspace_can_be_looked_at(command: Command, tmp_path: Path) -> None:
    place = tmp_path / "ledger.db"
    Store(str(place)).close()
    config = tmp_path / "c.json"
    workspaces = {"one": {"root": str(tmp_path)}}
    config.write_text(json.dumps({"operations_db": str(place), "workspaces": workspaces}))
    assert command("run", "-", "--config", str(config), stdin="1").code == 2
    assert command("stored", "list", "--config", str(config)).code == 0
    assert command("stored", "clear", "one", "--config", str(config)).out == "0 values deleted\n"
