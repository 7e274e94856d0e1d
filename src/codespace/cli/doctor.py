"""`codespace doctor`: what works on this machine, what does not, and how to mend it."""

import os
import platform
import shlex
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from codespace.bootstrap import VERSION
from codespace.cli.flags import CommandFlags, Directory, Flags, Group, ServerFlags, load_settings
from codespace.operator_files import others_can_read
from codespace.runner.sandbox import probe
from codespace.settings import Loaded, SettingsError
from codespace.store.errors import StoreError
from codespace.store.inspection import inspect
from codespace.workspace.ripgrep import ripgrep_path

Verdict = Literal["ok", "note", "FAIL"]


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that was looked at, and what to do about it."""

    verdict: Verdict
    subject: str
    text: str
    mend: str | None = None


def doctor(
    path: Directory = None,
    *,
    flags: Flags | None = None,
    commands: CommandFlags | None = None,
    server: ServerFlags | None = None,
) -> int:
    """Look at this machine and at the configuration, and say what works.

    Exit code 1 when something that CodeSpace needs is missing.
    """
    findings = list(_findings(path, flags, commands, server))
    for finding in findings:
        print(f"{finding.verdict:5} {finding.subject:14} {finding.text}")
        if finding.mend:
            print(f"{'':20} → {finding.mend}")
    failed = sum(finding.verdict == "FAIL" for finding in findings)
    print(f"\n{failed} of {len(findings)} checks failed." if failed else "\nReady.")
    return 1 if failed else 0


def _findings(path: str | None, *groups: Group | None) -> Iterator[Finding]:
    yield Finding("ok", "codespace", f"version {VERSION}, Python {platform.python_version()}")
    yield _system()
    yield _ripgrep()
    yield _containment()
    yield _sandbox()
    if os.geteuid() == 0:
        yield Finding(
            "note",
            "user",
            "runs as root: commands can do whatever root can",
            "run the gateway as an ordinary user that owns the workspaces",
        )
    try:
        loaded = load_settings(path, *groups)
    except SettingsError as error:
        yield Finding("FAIL", "configuration", str(error), "mend the setting that it names")
        return
    yield from _configuration(loaded)


def _system() -> Finding:
    if sys.platform == "linux":
        return Finding("ok", "system", f"Linux {platform.release()}")
    return Finding(
        "FAIL",
        "system",
        f"{platform.system()} cannot own a command's whole subtree",
        "run the gateway on Linux",
    )


def _ripgrep() -> Finding:
    found = ripgrep_path()
    if found:
        return Finding("ok", "ripgrep", found)
    return Finding("FAIL", "ripgrep", "not found: find and grep do not work", "pip install ripgrep")


def _containment() -> Finding:
    found = probe()
    if found.works:
        return Finding(
            "ok", "containment", f"PID namespace, by bubblewrap {found.version} ({found.path})"
        )
    return Finding(
        "note",
        "containment",
        f"keeper process; bubblewrap cannot be used: {found.reason}",
        found.mend or "pip install 'codespace[sandbox]', or install your system's bubblewrap",
    )


def _sandbox() -> Finding:
    return Finding(
        "note",
        "sandbox",
        "none: a command can do whatever the gateway's user can",
        "register only workspaces whose commands you would run yourself",
    )


def _configuration(loaded: Loaded) -> Iterator[Finding]:
    settings = loaded.settings
    for name, workspace in settings.workspaces.items():
        yield Finding("ok", "workspace", f"{name}: {workspace.root} ({workspace.profile.value})")
    for file in filter(others_can_read, loaded.secret_files):
        yield Finding(
            "note",
            "secrets",
            f"{file}: other users can read or change it",
            f"chmod 600 {shlex.quote(file)}",
        )
    if settings.operations_db is None:
        yield Finding(
            "note",
            "ledger",
            "in memory: nothing survives a restart",
            "set operations_db to a file",
        )
        return
    yield _ledger(settings.operations_db)


def _ledger(path: str) -> Finding:
    try:
        seen = inspect(path)
    except StoreError as error:
        return Finding("FAIL", "ledger", str(error), "mend the file, or name another")
    if seen.holder is not None:
        return Finding(
            "note",
            "ledger",
            f"{path}: in use by process {seen.holder}",
            "stop that gateway before you start another with this ledger",
        )
    return Finding("ok", "ledger", path if seen.exists else f"{path}: the first start makes it")
