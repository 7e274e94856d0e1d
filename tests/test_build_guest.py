"""The build of the guest: what it made is what is pinned, and a build that cannot be says why."""

import importlib.util
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest

HOUSE = Path(__file__).resolve().parent.parent


def _load() -> ModuleType:
    spec = importlib.util.spec_from_file_location("build_guest", HOUSE / "build_guest.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


BUILD = _load()


def test_the_guest_in_use_is_the_one_that_is_pinned() -> None:
    from codespace.codemode import wasm  # noqa: PLC0415 -- a broken build fails this test alone

    key, pinned = BUILD.read_pin()

    assert BUILD.source_key() == key, "run `python build_guest.py --pin`"
    assert BUILD.sha256(wasm.GUEST.read_bytes()) == pinned


def _built(tmp_path: Path, **environ: str) -> "subprocess.CompletedProcess[str]":
    """Build a copy of the sources, with nothing cached."""
    source = tmp_path / "src" / "codespace" / "codemode" / "guest"
    source.mkdir(parents=True)
    for path in BUILD.GUEST.iterdir():
        (source / path.name).write_bytes(path.read_bytes())
    script = tmp_path / "build_guest.py"
    script.write_bytes((HOUSE / "build_guest.py").read_bytes())
    environment = {
        "PATH": "/usr/bin:/bin",
        "HOME": str(tmp_path),
        "XDG_CACHE_HOME": str(tmp_path / "cache"),
        "PIP_CONFIG_FILE": "/dev/null",
        "PIP_NO_INDEX": "1",
        **environ,
    }
    return subprocess.run(
        [sys.executable, script], env=environment, capture_output=True, text=True, check=False
    )


def test_without_the_index_the_build_says_where_a_copy_may_come_from(tmp_path: Path) -> None:
    done = _built(tmp_path)

    assert done.returncode == 1
    assert "set CODESPACE_QUICKJS_SDIST to a copy" in done.stderr
    assert "Traceback" not in done.stderr


def test_sources_that_are_not_the_pinned_ones_are_not_compiled(tmp_path: Path) -> None:
    other = tmp_path / "other.tar.gz"
    other.write_bytes(b"something else")

    done = _built(tmp_path, CODESPACE_QUICKJS_SDIST=str(other))

    assert done.returncode == 1
    assert "its sha256 differs" in done.stderr


def test_a_copy_that_is_not_there_is_named(tmp_path: Path) -> None:
    done = _built(tmp_path, CODESPACE_QUICKJS_SDIST="/nowhere/engine.tar.gz")

    assert done.returncode == 1
    assert "'engine.tar.gz', which is not a file" in done.stderr


def test_without_the_compiler_the_build_names_the_package_to_install(tmp_path: Path) -> None:
    hidden = tmp_path / "hidden"
    hidden.mkdir()
    (hidden / "ziglang.py").write_text("raise SystemExit(1)\n", encoding="ascii")

    done = _built(tmp_path, PYTHONPATH=str(hidden))

    assert done.returncode == 1
    assert "needs the package ziglang==" in done.stderr
    assert "requirements/build.txt" in done.stderr


def test_a_guest_that_changed_without_its_pin_is_not_built(tmp_path: Path) -> None:
    source = tmp_path / "src" / "codespace" / "codemode" / "guest"
    _built(tmp_path)
    with (source / "guest.c").open("a", encoding="ascii") as file:
        file.write("/* changed */\n")

    done = subprocess.run(
        [sys.executable, tmp_path / "build_guest.py"], capture_output=True, text=True, check=False
    )

    assert done.returncode == 1
    assert "--pin" in done.stderr


@pytest.mark.parametrize("value", [0, 1, 63, 64, 127, 128, 1_048_576, 2**31])
def test_numbers_of_the_module_can_be_read_back(value: int) -> None:
    assert BUILD.read_unsigned(b"\0" + BUILD.unsigned(value), 1) == (
        value,
        1 + len(BUILD.unsigned(value)),
    )
