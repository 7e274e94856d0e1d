"""`run` as a process of its own: what it prints where, its exit codes, and how it is cancelled."""

import json
import os
import pty
import select
import signal
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from codespace.cli.run import _args  # pyright: ignore[reportPrivateUsage] -- its mistakes, one by one
from codespace.settings import SettingsError
from commands import Command
from contract.servers import command, environment, until, write_config
from contract.subtrees import marked

SECONDS = 45


@pytest.fixture
def root(tmp_path: Path) -> Path:
    root = tmp_path / "root"
    root.mkdir()
    (root / "a.txt").write_text("hé\n", encoding="utf-8")
    return root


def run(
    *words: str, stdin: str = "", cwd: Path | None = None
) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(
        command("run", *words),
        input=stdin,
        capture_output=True,
        encoding="utf-8",
        env=environment(),
        timeout=SECONDS,
        cwd=cwd,
        check=False,
    )


def value_of(code: str, root: Path, *words: str) -> object:
    ran = run("-", "--path", str(root), *words, stdin=code)
    assert ran.returncode == 0, ran.stderr
    return json.loads(ran.stdout)["value"]


def test_a_file_is_run_and_the_envelope_is_json_on_stdout(root: Path) -> None:
    script = root / "script.js"
    script.write_text("text('é'); return (await tools.read({path: 'a.txt'})).content")
    ran = run(str(script), "--path", str(root))
    assert ran.returncode == 0
    envelope = json.loads(ran.stdout)
    assert (envelope["status"], envelope["value"]) == ("completed", "hé\n")
    assert envelope["output"] == [{"type": "text", "text": "é"}]
    assert envelope["run_id"].startswith("run-")
    assert "hé" in ran.stdout, "text is not escaped"
    assert "1 done, 0 running, 0 queued" in ran.stderr
    assert ran.stderr.count("\n") == 1


def test_without_a_workspace_it_is_the_current_directory(root: Path) -> None:
    ran = run("-", stdin="return (await tools.find({})).paths", cwd=root)
    assert json.loads(ran.stdout)["value"] == ["a.txt"]
    assert ran.stderr.startswith("codespace: calls: ")


def test_args_are_names_with_texts_or_any_json(root: Path) -> None:
    code = "return args"
    assert value_of(code, root) == {}
    assert value_of(code, root, "--arg", "a=1", "--arg", "b=x=y", "--arg", "c=") == {
        "a": "1",
        "b": "x=y",
        "c": "",
    }
    assert value_of(code, root, "--args-json", "-5") == -5
    (root / "args.json").write_text('{"é": 1}', encoding="utf-8")
    assert value_of(code, root, "--args-json", f"@{root / 'args.json'}") == {"é": 1}
    assert value_of(code, root, "--args-json", f'[{2**70}, "é", null]') == [2**70, "é", None]


@pytest.mark.parametrize(
    ("pairs", "text", "said"),
    [
        (["a"], None, "NAME=TEXT"),
        (["=a"], None, "NAME=TEXT"),
        (["a=1"], "{}", "exclude each other"),
        ([], "{", "takes JSON"),
        ([], "NaN", "takes JSON"),
        ([], "@no-such.json", "--args-json: the file 'no-such.json' cannot be read"),
        ([], "[1e999]", "takes JSON"),
        ([], "[" * 100_000, "takes JSON"),
    ],
)
def test_args_that_are_none_are_refused(pairs: list[str], text: str | None, said: str) -> None:
    with pytest.raises(SettingsError, match=said):
        _args(pairs, text)


@pytest.mark.parametrize("code", ["throw new Error('no')", "return (", "await tools.none()"])
def test_a_script_that_fails_is_exit_code_1_and_still_an_envelope(root: Path, code: str) -> None:
    ran = run("-", "--path", str(root), stdin=code)
    assert ran.returncode == 1
    assert json.loads(ran.stdout)["error"]["kind"] == "script"
    assert "Traceback" not in ran.stderr


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["no-such.js"], "FILE 'no-such.js' cannot be read"),
        (["."], "FILE '.' cannot be read"),
        (["-", "--arg", "nonsense"], "--arg takes NAME=TEXT"),
        (["-", "--args-json", "-"], "cannot both be stdin"),
        (["-", "--timeout-ms", "0"], "--timeout-ms"),
        (["-", "--max-output-chars", "0"], "--max-output-chars"),
        (["-", "--workspace", "other"], "--workspace takes one of: default"),
        (["-", "--config", "no-such.json"], "cannot be read"),
        (["-", "--no-such-flag"], "no-such-flag"),
        ([], "file"),
    ],
)
def test_bad_use_is_exit_code_2_and_one_line(
    command: Command, root: Path, monkeypatch: pytest.MonkeyPatch, words: list[str], said: str
) -> None:
    monkeypatch.chdir(root)
    ran = command("run", *words, stdin="return 1")
    assert (ran.code, ran.out) == (2, "")
    assert said.lower() in ran.err.lower()
    assert ran.err.count("\n") == 1


def test_a_file_that_is_no_text_is_bad_use(command: Command, root: Path) -> None:
    (root / "bytes.js").write_bytes(b"return '\xff'")
    ran = command("run", str(root / "bytes.js"), "--path", str(root))
    assert (ran.code, ran.out) == (2, "")
    assert "is not UTF-8 text" in ran.err


def test_of_several_workspaces_one_is_named(tmp_path: Path) -> None:
    places = {name: {"root": str(tmp_path / name)} for name in ("one", "two")}
    for name in places:
        (tmp_path / name).mkdir()
        (tmp_path / name / f"{name}.txt").touch()
    config = str(write_config(tmp_path / "c.json", places))
    code = "return (await tools.find({})).paths"
    ran = run("-", "--config", config, "--workspace", "two", stdin=code)
    assert json.loads(ran.stdout)["value"] == ["two.txt"]
    unnamed = run("-", "--config", config, stdin=code)
    assert (unnamed.returncode, unnamed.stdout) == (2, "")
    assert "--workspace takes one of: one, two" in unnamed.stderr


def test_a_key_is_taken_and_what_was_stored_is_there_the_next_time(
    root: Path, tmp_path: Path
) -> None:
    ledger = ("--operations-db", str(tmp_path / "ledger.db"))
    value_of("store('n', 2n ** 64n)", root, "--key", "k", *ledger)
    assert value_of("return load('n')", root, "--key", "k", *ledger) == 2**64


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_cancels_the_run_and_the_envelope_is_printed(
    root: Path, number: signal.Signals
) -> None:
    mark = f"run-{number.name}-{os.getpid()}"
    code = f"text('before'); await tools.bash({{command: ': {mark}; touch begun; sleep 600; :'}})"
    with subprocess.Popen(
        command("run", "-", "--path", str(root)),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=environment(),
    ) as process:
        assert process.stdin is not None
        process.stdin.write(code.encode())
        process.stdin.close()
        process.stdin = None
        until((root / "begun").exists, "the command has begun")
        process.send_signal(number)
        out, err = process.communicate(timeout=SECONDS)
    assert process.returncode == 1
    envelope = json.loads(out)
    assert envelope["status"] == "cancelled"
    assert envelope["output"] == [{"type": "text", "text": "before"}]
    assert {problem["code"] for problem in envelope["problems"]} == {"CANCELLED", "EFFECTS_REMAIN"}
    assert b"Traceback" not in err
    assert marked(mark) == []


def on_a_terminal(root: Path, code: str, then: Callable[[int, str], None]) -> tuple[int, str]:
    """Run a script on a terminal; `then` is given each time the terminal and all it has shown."""
    (root / "s.js").write_text(code, encoding="utf-8")
    ours, theirs = pty.openpty()
    variables = {"TERM": "xterm-256color", "COLUMNS": "100"}
    process = subprocess.Popen(
        # It is its own session's terminal, so that Ctrl-C is for the command.
        ["setsid", "--ctty", *command("run", str(root / "s.js"), "--path", str(root))],
        stdin=theirs,
        stdout=theirs,
        stderr=theirs,
        env=environment(variables),
    )
    os.close(theirs)
    said, deadline = b"", time.monotonic() + SECONDS
    try:
        while time.monotonic() < deadline and select.select([ours], [], [], SECONDS)[0]:
            said += os.read(ours, 65536)
            then(ours, said.decode("utf-8", "replace"))
    except OSError:
        pass  # the other side is closed
    finally:
        if time.monotonic() >= deadline:
            process.kill()
        os.close(ours)
    return process.wait(SECONDS), said.decode("utf-8", "replace")


def test_a_terminal_shows_the_calls_and_then_the_result_to_be_read(root: Path) -> None:
    code = """
    await tools.read({path: 'a.txt'});
    await tools.bash({command: 'until [ -e go-on ]; do sleep 0.01; done'});
    text('printed'); return {n: 1}"""

    def go_on(terminal: int, shown: str) -> None:
        if "1 done, 1 running" in shown and "bash" in shown:
            (root / "go-on").touch()

    status, shown = on_a_terminal(root, code, go_on)
    assert status == 0
    assert "▸" in shown
    assert [line.strip() for line in shown.splitlines()[-2:]] == ["printed", '{"n": 1}']
    assert "calls: 2 done, 0 running, 0 queued" in shown


def test_ctrl_c_on_a_terminal_ends_the_run_and_says_what_came_of_it(root: Path) -> None:
    pressed: list[int] = []

    def press(terminal: int, shown: str) -> None:
        if "1 running" in shown and not pressed:
            pressed.append(os.write(terminal, b"\x03"))

    status, shown = on_a_terminal(root, "await tools.bash({command: 'sleep 600'})", press)
    assert status == 1
    assert "[cancelled; calls: 1 total, 1 cancelled]" in shown
    assert "Traceback" not in shown


def test_a_value_of_any_length_is_printed_whole(root: Path) -> None:
    code = '// @options {"max_output_chars": 50}\nreturn "x".repeat(100_000)'
    assert value_of(code, root) == "x" * 100_000
    assert list(root.iterdir()) == [root / "a.txt"], "nothing is put into a file"


def test_args_may_come_from_stdin(command: Command, root: Path) -> None:
    (root / "s.js").write_text("return args", encoding="utf-8")
    words = ("run", str(root / "s.js"), "--path", str(root), "--args-json", "-")
    assert json.loads(command(*words, stdin="[1, 2]").out)["value"] == [1, 2]


def test_a_run_is_given_its_limits(command: Command, root: Path) -> None:
    code = "text('x'.repeat(1000)); await tools.bash({command: 'sleep 600'})"
    limits = ("--timeout-ms", "200", "--max-output-chars", "100")
    envelope = json.loads(command("run", "-", "--path", str(root), *limits, stdin=code).out)
    assert envelope["error"]["kind"] == "timeout"
    assert "took 200 ms" in envelope["error"]["message"]
    assert envelope["truncated"]["kept_chars"] <= 100


def test_json_is_printed_on_a_terminal_if_asked_for(
    command: Command, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.stdout.isatty", lambda: True)
    read = command("run", "-", "--path", str(root), stdin="return {a: 1}")
    asked = command("run", "-", "--json", "--path", str(root), stdin="return {a: 1}")
    assert read.out == '{"a": 1}\n'
    assert json.loads(asked.out)["value"] == {"a": 1}


def test_an_encoding_without_a_character_loses_no_outcome(root: Path) -> None:
    ran = subprocess.run(
        command("run", "-", "--path", str(root)),
        input=b"return '\\u4e2d \\u{1f600}'",
        capture_output=True,
        env={**environment(), "PYTHONIOENCODING": "ascii"},
        timeout=SECONDS,
        check=False,
    )

    assert ran.returncode == 0
    assert json.loads(ran.stdout)["value"] == "\u4e2d \U0001f600"
