"""`call --url` on a real gateway: which workspace it means."""

import json
import subprocess
from pathlib import Path

from codespace.adapters import http_app
from codespace.cli.remote import MCP_PATH
from contract.servers import command, environment, serving

SECONDS = 45


def test_the_path_that_is_told_is_the_servers() -> None:
    assert http_app.MCP_PATH == MCP_PATH


def call(*words: str) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(
        command("call", *words),
        capture_output=True,
        encoding="utf-8",
        env=environment(),
        timeout=SECONDS,
        check=False,
    )


def test_the_only_workspace_there_need_not_be_named(tmp_path: Path) -> None:
    (tmp_path / "root").mkdir()
    (tmp_path / "root" / "a.txt").write_text("hé\n", encoding="utf-8")
    with serving(tmp_path / "errors", str(tmp_path / "root")) as server:
        ran = call("read", "path=a.txt", "--url", server.url)
    assert json.loads(ran.stdout)["content"] == "hé\n"


def test_of_several_workspaces_there_the_ids_are_told(tmp_path: Path) -> None:
    config = tmp_path / "c.json"
    places = {name: {"root": str(tmp_path / name)} for name in ("one", "two")}
    for name in places:
        (tmp_path / name).mkdir()
    config.write_text(json.dumps({"workspaces": places}), encoding="utf-8")
    with serving(tmp_path / "errors", "--config", str(config)) as server:
        ran = call("find", "--url", server.url)
        named = call("find", "workspace_id=one", "--url", server.url)
        script = subprocess.run(
            command("run", "-", "--url", server.url),
            input="return 1",
            capture_output=True,
            encoding="utf-8",
            env=environment(),
            timeout=SECONDS,
            check=False,
        )
    assert (ran.returncode, json.loads(ran.stdout)["details"]["path"]) == (1, "workspace_id")
    assert ran.stderr == "codespace: workspace_id takes one of: one, two\n"
    assert json.loads(named.stdout)["paths"] == []
    assert (script.returncode, "name one of: one, two" in script.stderr) == (2, True)
