"""`run --url`: a script on a real gateway that runs elsewhere."""

import json
import os
import signal
import subprocess
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

import pytest

from contract.servers import command, environment, serving, until
from contract.subtrees import marked

SECONDS = 45


@pytest.fixture
def root(tmp_path: Path) -> Path:
    (tmp_path / "root").mkdir()
    (tmp_path / "root" / "a.txt").write_text("hé\n", encoding="utf-8")
    return tmp_path / "root"


@contextmanager
def gateway(root: Path, *flags: str) -> Generator[str]:
    """Serve a directory; yield the URL."""
    with serving(root.parent / "errors", str(root), *flags) as server:
        yield server.url


def run(code: str, *words: str) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(
        command("run", "-", *words),
        input=code,
        capture_output=True,
        encoding="utf-8",
        env=environment(),
        timeout=SECONDS,
        check=False,
    )


def test_a_script_runs_there_with_its_arguments_and_its_key(root: Path) -> None:
    code = "return [args.a, (await tools.read({path: 'a.txt'})).content]"
    with gateway(root) as url:
        ran = [run(code, "--url", url, "--arg", "a=1", "--key", "k") for _ in range(2)]
        failed = run("throw new Error('no')", "--url", url)
        other = run("return 1", "--url", url, "--key", "k")
        nowhere = run("return 1", "--url", url, "--workspace", "none")
        pathless = run("return 1", "--url", url.removesuffix("/mcp"))
        limited = run("while (true) {}", "--url", url, "--timeout-ms", "300")
    first, second = (json.loads(each.stdout) for each in ran)
    assert (ran[0].returncode, first["value"]) == (0, ["1", "hé\n"])
    assert second["run_id"] == first["run_id"]
    assert "codespace: calls: 1 done, 0 failed, 0 to come" in ran[0].stderr
    assert (failed.returncode, json.loads(failed.stdout)["status"]) == (1, "failed")
    assert (other.returncode, other.stdout, other.stderr.count("\n")) == (2, "", 1)
    assert f"use a new key. (run_id: {first['run_id']})" in other.stderr
    assert (nowhere.returncode, nowhere.stdout) == (2, "")
    assert (pathless.returncode, pathless.stdout) == (2, "")
    assert f"(did you mean {url}?)" in pathless.stderr
    assert "took 300 ms" in json.loads(limited.stdout)["error"]["message"]


def test_a_gateway_that_asks_for_a_token_is_given_it(root: Path) -> None:
    token = root.parent / "token"
    token.write_text("0123456789abcdef", encoding="utf-8")
    with gateway(root, "--http-token-file", str(token)) as url:
        without = run("return 1", "--url", url)
        ran = run("return 1", "--url", url, "--token-file", str(token))
    assert (without.returncode, without.stdout) == (2, "")
    assert "--token-file FILE" in without.stderr
    assert json.loads(ran.stdout)["value"] == 1


def test_a_signal_cancels_the_run_there(root: Path) -> None:
    mark = f"elsewhere-{os.getpid()}"
    code = f"await tools.bash({{command: ': {mark}; touch begun; sleep 600; :'}})"
    with (
        gateway(root) as url,
        subprocess.Popen(
            command("run", "-", "--url", url),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env=environment(),
        ) as process,
    ):
        assert process.stdin is not None
        process.stdin.write(code.encode())
        process.stdin.close()
        process.stdin = None
        until((root / "begun").exists, "the command has begun")
        process.send_signal(signal.SIGINT)
        out, _ = process.communicate(timeout=SECONDS)
        until(lambda: marked(mark) == [], "the command has ended")
    assert process.returncode == 1
    assert json.loads(out)["status"] == "cancelled"
