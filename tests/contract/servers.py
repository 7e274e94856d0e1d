"""Real `codespace serve` processes over HTTP, and what they said on stderr."""

import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

SECONDS = 45
"""How long anything that a healthy server does may take on a busy machine."""

_SERVING = re.compile(r"serving MCP on (http://\S+)")
_POLL_SECONDS = 0.01

RefusedStart = Callable[..., str]
"""Runs `serve` in this process, which must refuse to start, and returns what it said."""

Registered = Mapping[str, Mapping[str, str]]


@dataclass(frozen=True, slots=True)
class Server:
    """A running server: where it listens, and the file that its stderr goes to."""

    url: str
    process: "subprocess.Popen[bytes]"
    errors: Path

    @property
    def pid(self) -> int:
        """The process that a test may signal."""
        return self.process.pid

    def said(self) -> str:
        """Return what stderr has so far."""
        return self.errors.read_text(encoding="utf-8", errors="replace")

    def end(self, number: signal.Signals = signal.SIGTERM) -> int:
        """Send a signal and return the exit code, negative for a death by signal."""
        self.process.send_signal(number)
        return self.process.wait(SECONDS)


def command(*arguments: str) -> list[str]:
    """Return the command line of this very installation."""
    return [sys.executable, "-m", "codespace", *arguments]


def environment(extra: Mapping[str, str] | None = None) -> dict[str, str]:
    """Return an environment without settings of whoever runs the tests."""
    kept = {key: value for key, value in os.environ.items() if not key.startswith("CODESPACE_")}
    return {**kept, "PYTHONWARNINGS": "error", **(extra or {})}


def write_config(file: Path, workspaces: Registered, **settings: object) -> Path:
    """Write a configuration file and return it."""
    file.write_text(json.dumps({**settings, "workspaces": workspaces}), encoding="utf-8")
    return file


@contextmanager
def serving(
    errors: Path,
    *arguments: str,
    variables: Mapping[str, str] | None = None,
    wrapper: Sequence[str] = (),
) -> Generator[Server]:
    """Run `codespace serve … --http` on a free port; its stderr goes to the file `errors`."""
    line = [*wrapper, *command("serve", *arguments, "--http", "--http-port", "0")]
    with errors.open("wb") as sink:
        process = subprocess.Popen(
            line,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=sink,
            env=environment(variables),
        )
    try:
        yield Server(_url(process, errors), process, errors)
    finally:
        if process.poll() is None:
            process.terminate()
            try:
                process.wait(SECONDS)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()


def run(
    *arguments: str, variables: Mapping[str, str] | None = None, cwd: Path | None = None
) -> "subprocess.CompletedProcess[str]":
    """Run a command of the command line that ends by itself."""
    return subprocess.run(
        command(*arguments),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=SECONDS,
        env=environment(variables),
        cwd=cwd,
        check=False,
    )


def until(true: Callable[[], bool], what: str) -> None:
    """Wait until something that must come true is true."""
    deadline = time.monotonic() + SECONDS
    while not true():
        assert time.monotonic() < deadline, f"never: {what}"
        time.sleep(_POLL_SECONDS)


def _url(process: "subprocess.Popen[bytes]", errors: Path) -> str:
    deadline = time.monotonic() + SECONDS
    while time.monotonic() < deadline:
        said = errors.read_text(encoding="utf-8", errors="replace")
        if found := _SERVING.search(said):
            return found[1]
        if process.poll() is not None:
            raise RuntimeError(f"the server ended: {said}")
        time.sleep(_POLL_SECONDS)
    raise RuntimeError("the server did not serve in time")
