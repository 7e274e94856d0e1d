"""What the system shows of a process that keeps to itself, to root and to an ordinary user."""

import os
import subprocess
import sys
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

import pytest

from programs.running import python_for_all, setpriv_line

SOURCE = Path(__file__).parents[3] / "src"
PROGRAM = """
import os, subprocess, sys
from codespace.cli.secrecy import keep_to_itself
keep_to_itself("SECRET", "EMPTY", "MISSING")
child = "import os; print('SECRET' in os.environ, os.environ['SECRETS'], flush=True)"
subprocess.run([sys.executable, "-S", "-c", child], check=True)
print(os.environ["SECRET"], os.listdir("/proc/self/fd") != [], flush=True)
sys.stdin.read()
"""
VARIABLES = {
    "FIRST": "shown",
    "SECRET": "hunter2=hunter2",
    "EMPTY": "",
    "SECRETS": "plural",
    "NO_SECRET": "SECRET=no",
    "LAST": "shown, too",
    "PYTHONPATH": str(SOURCE),
}


@contextmanager
def kept_to_itself(*line: str) -> Generator[int]:
    """Run the program; it must still know its variables itself. Yields its process."""
    with subprocess.Popen(
        [*line, "-S", "-c", PROGRAM],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        env=VARIABLES,
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"False plural\n"
        assert process.stdout.readline() == b"hunter2=hunter2 True\n"
        yield process.pid
        process.communicate(timeout=20)
    assert process.returncode == 0


def can_open(file: str) -> bool:
    """Tell whether an ordinary user can open a file."""
    line = [*(setpriv_line() or []), "/bin/sh", "-c", ': <"$0"', file]
    return subprocess.run(line, capture_output=True, check=False).returncode == 0


@pytest.mark.skipif(os.geteuid() != 0, reason="only root is shown anything at all")
def test_even_root_is_not_shown_the_secret_in_the_environment() -> None:
    with kept_to_itself(sys.executable) as process:
        shown = Path(f"/proc/{process}/environ").read_bytes().split(b"\0")
    assert {b"FIRST=shown", b"SECRETS=plural", b"NO_SECRET=SECRET=no", b"LAST=shown, too"} <= {
        *shown
    }
    assert not [entry for entry in shown if entry.startswith(b"SECRET=") or b"hunter2" in entry]


@pytest.mark.parametrize("name", ["environ", "maps", "mem"])
def test_another_process_of_an_ordinary_user_is_shown_neither_environment_nor_memory(
    name: str,
) -> None:
    python = python_for_all()
    if python is None:
        pytest.skip("an ordinary user can reach no interpreter of this version")
    line = [*(setpriv_line() or []), python]
    with kept_to_itself(*line) as process:
        assert can_open(f"/proc/{process}/stat")
        assert not can_open(f"/proc/{process}/{name}")
