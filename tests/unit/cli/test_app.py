"""The command line: how a bad word, a bad setting and a bad file are answered."""

import socket
import sys
from pathlib import Path

import pytest

from codespace.bootstrap import VERSION
from codespace.cli import app as app_module
from codespace.cli.app import main
from commands import Command


@pytest.mark.parametrize(
    "words",
    [
        ["frobnicate"],
        ["call"],
        ["call", "read", "--no-such-flag"],
        ["serve", "--http-port", "http"],
        ["serve", "--http-port", "70000"],
        ["serve", "--max-processes", "0"],
        ["serve", "--log-level", "LOUD"],
        ["serve", "--runner", "elsewhere"],
        ["serve", "/no/such/place"],
        ["serve", "--config", "/no/such/file.json"],
        ["serve", "--http-token-file", "/no/such/file"],
        ["serve", "--http", "--http-host", "0.0.0.0"],
        ["serve", "one", "two"],
        ["demo", "--protocol", "1999-01-01"],
        ["tools", "unexpected"],
        ["tools", "read", "find"],
        *[[name, "--http-port", "1"] for name in ("tools", "run", "stored")],
        ["call", "read", "--url", "http://127.0.0.1:1/mcp", "--path", "."],
        ["run", "-", "--url", "http://127.0.0.1:1/mcp", "--path", "."],
        ["run", "-", "--token-file", "t"],
    ],
)
def test_bad_use_is_exit_code_2_and_one_line_on_stderr(command: Command, words: list[str]) -> None:
    ran = command(*words)
    assert ran.code == 2
    assert ran.out == ""
    assert ran.err.startswith("codespace: ")
    assert ran.err.count("\n") == 1


def test_a_ledger_that_is_something_else_is_bad_configuration(
    command: Command, tmp_path: Path
) -> None:
    file = tmp_path / "ledger.db"
    file.write_text("this is no database, and it is long enough to be looked at " * 50, "utf-8")
    root = tmp_path / "root"
    root.mkdir()
    ran = command("tools", "--path", str(root), "--operations-db", str(file))
    assert (ran.code, ran.out) == (2, "")
    assert ran.err.count("\n") == 1


def test_a_port_that_is_taken_is_bad_use(command: Command, tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        ran = command("serve", str(tmp_path), "--http", "--http-port", port)
    assert (ran.code, ran.out) == (2, "")
    assert f"127.0.0.1:{port} cannot be listened on: Address already in use" in ran.err


def test_an_address_of_another_machine_is_bad_use(command: Command, tmp_path: Path) -> None:
    public = ("--http-host", "2001:db8::1", "--http-port", "8787", "--http-allow-insecure-bind")
    ran = command("serve", str(tmp_path), "--http", *public)
    assert (ran.code, ran.out) == (2, "")
    assert "[2001:db8::1]:8787 cannot be listened on: " in ran.err


def test_the_version_and_the_help_are_on_stdout(command: Command) -> None:
    assert command("--version").out.strip() == VERSION
    helped = command("--help")
    assert helped.code == 0
    assert all(name in helped.out for name in ("serve", "call", "tools", "doctor", "demo"))


@pytest.mark.parametrize("name", ["serve", "call", "tools", "doctor", "demo"])
def test_every_command_explains_itself(command: Command, name: str) -> None:
    helped = command(name, "--help")
    assert (helped.code, helped.err) == (0, "")
    assert f"codespace {name}" in helped.out


def test_words_too_many_are_told_with_what_to_write_instead(command: Command) -> None:
    args = command("run", "-", "--arg", "from=a", "to=b").err
    assert args == "codespace: too many words: 'to=b'; give --arg before each NAME=TEXT\n"
    others = command("doctor", "one", "two").err
    assert "too many words: 'two'; `codespace doctor --help`" in others


@pytest.mark.parametrize(
    ("name", "shown"),
    [
        *[(name, {"--http-host", "--max-processes", "--runner"}) for name in ("serve", "doctor")],
        *[(name, {"--max-processes"}) for name in ("run", "call")],
        ("tools", set[str]()),
    ],
)
def test_a_command_shows_the_flags_that_do_something_for_it(
    command: Command, name: str, shown: set[str]
) -> None:
    helped = command(name, "--help").out
    every = {"--http-host", "--max-processes", "--runner"}
    assert {flag for flag in every if flag in helped} == shown
    assert "--config" in helped


def test_the_help_of_run_says_that_stdin_will_do(command: Command) -> None:
    helped = " ".join(command("run", "--help").out.replace("│", " ").split())
    assert "FILE The script; - is stdin." in helped
    assert "All of `args` as JSON; - is stdin, @FILE a file." in helped


def test_the_help_of_call_shows_how_it_is_called(command: Command) -> None:
    lines = command("call", "--help").out.splitlines()
    examples = [line for line in lines if line.startswith("  codespace call ")]
    assert len(examples) > 3
    assert any("patch=@change.patch" in line for line in examples)
    assert any("--url" in line for line in examples)


def test_being_interrupted_is_the_shells_130(monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(*words: object, **options: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(app_module, "app", interrupted)
    assert app_module.run([]) == 130


def test_the_process_ends_with_the_commands_code(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "argv", ["codespace", "frobnicate"])
    with pytest.raises(SystemExit) as caught:
        main()
    assert caught.value.code == 2
    assert "frobnicate" in capsys.readouterr().err
