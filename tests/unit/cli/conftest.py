"""What every test of the command line needs: its own environment, and logging put back."""

import io
import logging
import os
from collections.abc import Iterator

import pytest

from codespace.cli.app import run
from commands import Command, Ran


@pytest.fixture(autouse=True)
def quiet_house(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """No setting of this machine counts, and pytest's logging survives the command's own."""
    for name in os.environ:
        if name.startswith("CODESPACE_"):
            monkeypatch.delenv(name)
    root = logging.getLogger()
    handlers, level = root.handlers[:], root.level
    yield
    root.handlers[:] = handlers
    root.setLevel(level)


@pytest.fixture
def command(capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Command:
    """Run a command line in this process, with a text as its stdin."""

    def execute(*words: str, stdin: str = "") -> Ran:
        monkeypatch.setattr("sys.stdin", io.StringIO(stdin))
        capfd.readouterr()
        code = run(list(words))
        printed = capfd.readouterr()
        return Ran(code, printed.out, printed.err)

    return execute
