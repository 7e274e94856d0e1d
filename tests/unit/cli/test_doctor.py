"""`doctor`: what it finds, and that it never says well of what is not."""

import json
import os
from pathlib import Path

import pytest

from codespace.cli import doctor
from codespace.runner.sandbox import ProbeResult
from codespace.store.engine import Store
from commands import Command


def verdicts(out: str) -> dict[str, str]:
    """Return the verdict on each subject."""
    lines = [line.split() for line in out.splitlines()]
    return {line[1]: line[0] for line in lines if line and line[0] in ("ok", "note", "FAIL")}


def root_of(tmp_path: Path) -> Path:
    """Make a directory to serve, beside the gateway's own files."""
    root = tmp_path / "root"
    root.mkdir()
    return root


def test_a_machine_that_will_do_is_ready(command: Command, tmp_path: Path) -> None:
    ran = command("doctor", "--path", str(tmp_path))
    assert (ran.code, ran.err) == (0, "")
    found = verdicts(ran.out)
    assert (found["codespace"], found["system"], found["ripgrep"]) == ("ok", "ok", "ok")
    assert (found["workspace"], found["ledger"]) == ("ok", "note")
    assert ran.out.endswith("\nReady.\n")


def test_it_never_claims_a_sandbox(command: Command, tmp_path: Path) -> None:
    ran = command("doctor", "--path", str(tmp_path))
    assert verdicts(ran.out)["sandbox"] == "note"
    assert "a command can do whatever the gateway's user can" in ran.out


def test_a_bad_configuration_is_a_failure_with_its_key(command: Command, tmp_path: Path) -> None:
    config = tmp_path / "c.json"
    config.write_text(json.dumps({"http_prot": 1}), encoding="utf-8")
    ran = command("doctor", "--config", str(config))
    assert ran.code == 1
    assert verdicts(ran.out)["configuration"] == "FAIL"
    assert "http_prot: is not a setting" in ran.out
    assert "1 of " in ran.out.splitlines()[-1]


def test_a_ledger_that_cannot_be_used_is_a_failure(command: Command, tmp_path: Path) -> None:
    place = tmp_path / "ledger.db"
    place.write_text("no database " * 500, encoding="utf-8")
    ran = command("doctor", "--path", str(root_of(tmp_path)), "--operations-db", str(place))
    assert ran.code == 1
    assert verdicts(ran.out)["ledger"] == "FAIL"


def test_a_ledger_that_is_not_there_yet_is_not_made(command: Command, tmp_path: Path) -> None:
    root, place = root_of(tmp_path), tmp_path / "state" / "ledger.db"
    ran = command("doctor", "--path", str(root), "--operations-db", str(place))
    assert (ran.code, verdicts(ran.out)["ledger"]) == (0, "ok")
    assert f"{place}: the first start makes it" in ran.out
    assert [*tmp_path.rglob("*")] == [root]


def test_a_ledger_in_use_is_told_with_its_process(command: Command, tmp_path: Path) -> None:
    root, place = root_of(tmp_path), str(tmp_path / "ledger.db")
    store = Store(place)
    ran = command("doctor", "--path", str(root), "--operations-db", place)
    store.close()
    assert (ran.code, verdicts(ran.out)["ledger"]) == (0, "note")
    assert f"{place}: in use by process {os.getpid()}\n" in ran.out
    again = command("doctor", "--path", str(root), "--operations-db", place)
    assert f"{place}\n" in again.out


def test_a_ledger_in_a_workspace_is_a_failure(command: Command, tmp_path: Path) -> None:
    ran = command("doctor", "--path", str(tmp_path), "--operations-db", str(tmp_path / "l.db"))
    assert (ran.code, verdicts(ran.out)["configuration"]) == (1, "FAIL")
    assert "keep it outside of every workspace" in ran.out


def test_every_workspace_is_named_with_its_profile(command: Command, tmp_path: Path) -> None:
    config = tmp_path / "c.json"
    workspaces = {
        "looking": {"root": str(tmp_path)},
        "changing": {"root": str(root_of(tmp_path)), "profile": "workspace-write"},
    }
    config.write_text(json.dumps({"workspaces": workspaces}), encoding="utf-8")
    out = command("doctor", "--config", str(config)).out
    assert f"looking: {tmp_path} (read-only)" in out
    assert f"changing: {tmp_path}/root (workspace-write)" in out


def test_what_is_missing_says_how_to_mend_it(
    command: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(doctor, "ripgrep_path", lambda: None)
    weak = ProbeResult(works=False, reason="it is not installed.", mend="Install it.")
    monkeypatch.setattr(doctor, "probe", lambda: weak)
    ran = command("doctor", "--path", str(tmp_path))
    found = verdicts(ran.out)
    assert (found["ripgrep"], found["containment"]) == ("FAIL", "note")
    assert "→ pip install ripgrep" in ran.out
    assert "it is not installed.\n" in ran.out
    assert "→ Install it." in ran.out
    assert (ran.code, ran.out.splitlines()[-1].startswith("1 of ")) == (1, True)


def test_the_stronger_containment_is_told_with_its_version(
    command: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    strong = ProbeResult(works=True, path="/usr/bin/bwrap", version="1.2")
    monkeypatch.setattr(doctor, "probe", lambda: strong)
    ran = command("doctor", "--path", str(tmp_path))
    assert verdicts(ran.out)["containment"] == "ok"
    assert "bubblewrap 1.2 (/usr/bin/bwrap)" in ran.out


def test_a_secret_that_others_can_read_is_told(command: Command, tmp_path: Path) -> None:
    root, token = root_of(tmp_path), tmp_path / "token"
    token.write_text("0123456789abcdef", encoding="utf-8")
    words = ("doctor", "--path", str(root), "--http-token-file", str(token))
    token.chmod(0o644)
    assert verdicts(command(*words).out)["secrets"] == "note"
    token.chmod(0o600)
    assert "secrets" not in verdicts(command(*words).out)
