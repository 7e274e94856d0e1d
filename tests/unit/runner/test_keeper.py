"""The keeper program on its own, and the walk over a process's descendants."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Generator
from contextlib import contextmanager
from pathlib import Path

import pytest

from codespace.runner import keeper
from codespace.runner.keeper import ask_to_end, descendants, signal_quietly
from programs.running import living, new_token


class Kept:
    """A keeper whose pipes are ours."""

    def __init__(self, *argv: str, alive: bool = True) -> None:
        life, self._order = os.pipe()
        self._news, status = os.pipe()
        if not alive:
            self.cut()
        program = [sys.executable, "-I", "-S", keeper.__file__]
        line = [*program, "mark", str(life), str(status), "pipe", *argv]
        self.process = subprocess.Popen(
            line, pass_fds=(life, status), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
            env={"PATH": "/usr/bin:/bin"}, start_new_session=True,
        )  # fmt: skip
        os.close(life)
        os.close(status)

    def cut(self) -> None:
        os.close(self._order)

    def ask(self) -> None:
        os.write(self._order, b"\n")

    def news(self) -> list[str]:
        """Return all that it says until it ends."""
        with os.fdopen(self._news, encoding="ascii") as file:
            lines = file.read().splitlines()
        self.process.communicate(timeout=20)
        return lines


@contextmanager
def kept(*argv: str) -> Generator[Kept]:
    keeping = Kept(*argv)
    yield keeping
    assert keeping.process.poll() == 0


def ended(news: list[str]) -> str:
    started, end = news
    assert started.startswith("started ")
    return end


@pytest.mark.parametrize(
    ("text", "end"), [("exit 0", "ended 0"), ("exit 200", "ended 200"), ("kill -9 $$", "ended -9")]
)
def test_it_tells_how_the_command_ended(text: str, end: str):
    with kept("/bin/sh", "-c", text) as keeping:
        assert ended(keeping.news()) == end


@pytest.mark.parametrize(
    ("program", "end"), [("/nowhere/program", "ended 127"), ("/etc", "ended 126")]
)
def test_what_cannot_be_executed_ends_as_in_a_shell(program: str, end: str):
    with kept(program) as keeping:
        assert ended(keeping.news()) == end


def test_a_script_without_an_interpreter_line_runs_by_the_shell(tmp_path: Path):
    script = tmp_path / "script"
    script.write_text('test "$1" = "a b" && exit 9\n', encoding="utf-8")
    script.chmod(0o755)
    with kept(str(script), "a b") as keeping:
        assert ended(keeping.news()) == "ended 9"


def test_it_ends_everything_when_its_life_line_is_cut():
    token = new_token()
    with kept("/bin/sh", "-c", f"trap '' TERM; setsid sleep 3600.{token} & wait") as keeping:
        _until(lambda: bool(living(f"sleep\0003600.{token}")))
        keeping.cut()
        assert ended(keeping.news()) == "ended -9"
    assert not living(token)


def test_it_ends_everything_also_when_it_may_open_no_file_any_more():
    token = new_token()
    text = (
        f"setsid sh -c 'setsid sleep 3600.{token} & sleep 3600.{token}' &"
        f" prlimit --pid $PPID --nofile=0:0 && sleep 3600.{token}"
    )
    with kept("/bin/sh", "-c", text) as keeping:
        _until(lambda: len(living(f"sleep\0003600.{token}")) == 3)
        keeping.cut()
        assert ended(keeping.news()) == "ended -9"
    assert not living(token)


def test_it_asks_when_it_is_told_to():
    token = new_token()
    with kept("/bin/sh", "-c", f"trap 'exit 5' TERM; sleep 3600.{token}") as keeping:
        _until(lambda: bool(living(f"sleep\0003600.{token}")))
        keeping.ask()
        assert ended(keeping.news()) == "ended 5"
        keeping.cut()


def test_it_starts_nothing_for_a_gateway_that_is_gone(tmp_path: Path):
    keeping = Kept("/bin/touch", str(tmp_path / "ran"), alive=False)
    assert keeping.news() == []
    assert not (tmp_path / "ran").exists()


def ignored_here() -> int:
    status = Path("/proc/self/status").read_text(encoding="ascii")
    return int(status.partition("SigIgn:")[2].split()[0], 16)


def test_a_command_has_no_signal_ignored_that_the_keeper_ignores():
    with kept("/bin/grep", "SigIgn", "/proc/self/status") as keeping:
        stdout = keeping.process.stdout
        assert stdout is not None
        # Whoever started the tests may ignore one that only the C library knows (32 and on).
        inherited = ignored_here() & ~0x7FFF_FFFF
        assert int(stdout.read().split()[1], 16) == inherited
        assert ended(keeping.news()) == "ended 0"
        keeping.cut()


def test_a_command_gets_what_the_keeper_was_given_and_no_more():
    with kept("/usr/bin/env") as keeping:
        stdout = keeping.process.stdout
        assert stdout is not None
        assert sorted(stdout.read().decode().splitlines()) == [
            "PATH=/usr/bin:/bin",
            f"PWD={Path.cwd()}",
        ]
        assert ended(keeping.news()) == "ended 0"


@pytest.mark.parametrize("listed", [True, False])
def test_descendants_are_found_below_children_and_threads(
    monkeypatch: pytest.MonkeyPatch, *, listed: bool
):
    if not listed:  # a kernel without /proc/PID/task/TID/children
        monkeypatch.setattr(os.path, "exists", _nothing_exists)
    code = (
        "import threading, subprocess\n"
        "line = ['sh', '-c', 'sleep 60; :']\n"
        "threading.Thread(target=lambda: subprocess.run(line)).start()"
    )
    process = subprocess.Popen([sys.executable, "-I", "-S", "-c", code])
    try:
        _until(lambda: len(list(descendants(process.pid))) == 2)
    finally:
        ask_to_end(process.pid)
        process.wait(timeout=20)


def test_what_is_gone_has_no_descendants_and_takes_no_signal():
    process = subprocess.Popen(["true"])
    process.wait()
    assert list(descendants(process.pid)) == []
    signal_quietly(process.pid, signal.SIGTERM)


def test_asking_reaches_at_most_the_given_number():
    process = subprocess.Popen(["sh", "-c", "sleep 60 & sleep 60 & sleep 60 & wait"])
    _until(lambda: len(list(descendants(process.pid))) == 3)
    ask_to_end(process.pid, at_most=2)
    _until(lambda: len([pid for pid in descendants(process.pid) if _runs(pid)]) == 1)
    ask_to_end(process.pid)
    process.wait(timeout=20)


def _nothing_exists(_path: str) -> bool:
    return False


def _runs(pid: int) -> bool:
    try:
        return ") Z" not in Path(f"/proc/{pid}/stat").read_text(encoding="ascii")
    except OSError:
        return False


def _until(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 20
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.005)
