"""Runs every fenced example of README.md and docs/ as a test, one evaluator a language."""

import json
import os
import re
import subprocess
import sys
import tempfile
import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Any

from sybil import Example, Sybil
from sybil.parsers.markdown import CodeBlockParser, PythonCodeBlockParser, SkipParser

from codespace.settings import load

ROOT = Path(__file__).parent
COMMAND_SECONDS = 60
EXAMPLE_ROOTS = ("/srv/app", "/srv/reference", "/path/to/repository", "/path/to/ledger.db")


def setup(namespace: dict[str, object]) -> None:
    """Give each page a directory of its own."""
    namespace["directory"] = tempfile.TemporaryDirectory(prefix="codespace-docs-")


def teardown(namespace: dict[str, object]) -> None:
    """Remove the page's directory."""
    directory = namespace["directory"]
    if isinstance(directory, tempfile.TemporaryDirectory):
        directory.cleanup()


def page_directory(example: Example) -> Path:
    """Return the directory of the example's page."""
    directory = example.namespace["directory"]
    return Path(directory.name)


def run_console(example: Example) -> str | None:
    """Run each `$` line and compare what it prints with the lines below it."""
    commands: list[tuple[str, list[str]]] = []
    for line in example.parsed.splitlines():
        if line.startswith("$ "):
            commands.append((line[2:], []))
        elif line:
            commands[-1][1].append(line)
    for command, expected in commands:
        printed = _shell(command, page_directory(example)).splitlines()
        if printed != expected:
            return f"{command!r} printed {printed}, the page says {expected}"
    return None


def _shell(command: str, directory: Path) -> str:
    path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    environment = {"PATH": path, "HOME": str(directory), "LANG": "C.UTF-8"}
    done = subprocess.run(
        ["bash", "-c", command],
        cwd=directory,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        timeout=COMMAND_SECONDS,
        check=False,
    )
    return done.stdout.decode()


def run_json(example: Example) -> str | None:
    """Load a configuration, or try the command of an `mcpServers` entry."""
    parsed = json.loads(example.parsed)
    if "workspaces" in parsed:
        return _load(example, example.parsed, "json")
    return _try_servers(example, parsed["mcpServers"])


def run_toml(example: Example) -> str | None:
    """Load a configuration, or try the command of an `mcp_servers` entry."""
    parsed = tomllib.loads(example.parsed)
    if "workspaces" in parsed:
        return _load(example, example.parsed, "toml")
    return _try_servers(example, parsed["mcp_servers"])


def run_script(example: Example) -> str | None:
    """Save a script under the name in its first line, for a console example; run any other."""
    named = re.match(r"// (\S+\.js)\n", example.parsed)
    directory = page_directory(example)
    file = directory / (named[1] if named else "example.js")
    file.write_text(example.parsed, encoding="utf-8")
    if named:
        return None
    printed = _shell(f"codespace run {file.name}", directory)
    status: object = json.loads(printed)["status"]
    return None if status == "completed" else f"the script did not complete: {printed}"


def _here(example: Example, text: str) -> str:
    for place in EXAMPLE_ROOTS:
        there = page_directory(example) / place.strip("/").replace("/", "-")
        if not place.endswith(".db"):
            there.mkdir(exist_ok=True)
        text = text.replace(place, str(there))
    return text.replace("/path/to/CodeSpace/.venv/bin", str(Path(sys.executable).parent))


def _load(example: Example, text: str, suffix: str) -> None:
    file = page_directory(example) / f"example.{suffix}"
    file.write_text(_here(example, text), encoding="utf-8")
    load(config=str(file), environ={"PATH": "/usr/bin:/bin", "HOME": "/"})


INITIALIZE = {
    "jsonrpc": "2.0",
    "id": 1,
    "method": "initialize",
    "params": {
        "protocolVersion": "2025-11-25",
        "capabilities": {},
        "clientInfo": {"name": "docs", "version": "0"},
    },
}


def _try_servers(example: Example, servers: dict[str, dict[str, Any]]) -> str | None:
    for server in servers.values():
        arguments = [_here(example, str(item)) for item in server["args"]]
        done = subprocess.run(
            [_here(example, str(server["command"])), *arguments],
            input=json.dumps(INITIALIZE).encode() + b"\n",
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            timeout=COMMAND_SECONDS,
            check=True,
        )
        answer = json.loads(done.stdout.splitlines()[0])
        if answer["result"]["serverInfo"]["name"] != "codespace":
            return f"the server answered {answer}"
    return None


def leave(example: Example) -> None:
    """Take an example as text: its commands stand in another test, or need another program."""


def fences(language: str, evaluator: Callable[[Example], str | None]) -> CodeBlockParser:
    """Return the parser of one language's fences."""
    return CodeBlockParser(language=language, evaluator=evaluator)


pytest_collect_file = Sybil(
    parsers=[
        SkipParser(),
        PythonCodeBlockParser(),
        fences("console", run_console),
        fences("js", run_script),
        fences("json", run_json),
        fences("toml", run_toml),
        fences("sh", leave),
        fences("text", leave),
    ],
    patterns=["README.md", "AGENTS.md", "docs/*.md"],
    path=str(ROOT),
    setup=setup,
    teardown=teardown,
).pytest()
