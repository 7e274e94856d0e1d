"""The worker process from outside: the door, what it is given, and its end."""

import os
import socket
import stat
import subprocess
import sys
from pathlib import Path

import anyio
import pytest

from codespace.runner.child import Child, Door, import_path, new_nonce, open_door
from codespace.runner.worker import SOCKET_NAME
from programs.running import until

pytestmark = pytest.mark.anyio

SECONDS = 20
KNOCK = "import socket,sys; s=socket.socket(socket.AF_UNIX); s.connect(sys.argv[1]); s.recv(1)"


@pytest.mark.requirement("runner.private-socket")
async def test_the_door_is_the_owners_alone_and_leaves_nothing() -> None:
    with open_door() as door:
        directory = Path(door.directory)
        assert stat.S_IMODE(directory.stat().st_mode) == 0o700
        assert stat.S_IMODE((directory / SOCKET_NAME).stat().st_mode) == 0o600
        with open_door() as other:
            assert other.directory != door.directory
    assert not directory.exists()


async def test_a_directory_with_a_long_path_has_room_for_the_door(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    deep = tmp_path / ("x" * 120)
    deep.mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(deep))
    with open_door() as door:
        assert Path(door.directory).parent == deep
        await _come_in(door, os.getpid())


async def _come_in(door: Door, pid: int) -> None:
    directory = os.open(door.directory, os.O_PATH)
    visitor = socket.socket(socket.AF_UNIX)
    visitor.connect(f"/proc/self/fd/{directory}/{SOCKET_NAME}")
    os.close(directory)
    with anyio.fail_after(SECONDS):
        (await door.admit(pid)).close()
    visitor.close()


@pytest.mark.requirement("runner.private-socket")
async def test_whoever_is_not_the_worker_is_sent_away_and_the_worker_still_comes_in() -> None:
    with open_door() as door:
        strangers = [
            subprocess.Popen([sys.executable, "-S", "-c", KNOCK, f"{door.directory}/{SOCKET_NAME}"])
            for _ in range(2)
        ]
        admitted: list[socket.socket] = []

        async def admit() -> None:
            admitted.append(await door.admit(os.getpid()))

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(admit)
            for stranger in strangers:  # each ends when it is sent away, and only then
                assert await anyio.to_thread.run_sync(lambda one=stranger: one.wait(SECONDS)) == 0
            assert admitted == []
            await _knock(door)
        admitted[0].close()


async def _knock(door: Door) -> None:
    visitor = socket.socket(socket.AF_UNIX)
    visitor.connect(f"{door.directory}/{SOCKET_NAME}")
    visitor.close()


def test_nobody_guesses_a_nonce() -> None:
    assert len({new_nonce() for _ in range(100)}) == 100
    assert len(new_nonce()) >= 32


def test_the_import_path_has_the_package_and_no_place_that_depends_on_where_one_is(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(sys, "path", ["", "relative", "/one", "/two", "/one"])
    path = import_path()
    assert path[:2] == ["/one", "/two"]
    assert (Path(path[2]) / "codespace" / "runner" / "child.py").is_file()


@pytest.mark.requirement("runner.execution-requests-only")
async def test_a_worker_is_told_nothing_by_its_arguments_and_gets_no_environment(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("CODESPACE_HTTP_TOKEN", "a-secret-that-nobody-sees")
    nonce = new_nonce()
    with anyio.fail_after(SECONDS), open_door() as door:
        child = Child.start(door.directory, nonce, "/usr/bin:/bin")
        connected = await door.admit(child.pid)
        line = Path(f"/proc/{child.pid}/cmdline").read_bytes()
        assert nonce.encode() not in line
        assert b"codespace.runner.worker" in line
        place = Path(f"/proc/{child.pid}")
        if os.geteuid() == 0:
            variables = (place / "environ").read_bytes().split(b"\0")
            assert sorted(filter(None, variables)) == [b"LANG=C.UTF-8", b"PATH=/usr/bin:/bin"]
            assert (place / "cwd").readlink() == Path("/")
        else:  # to others of its user it is closed, as its memory is
            with pytest.raises(PermissionError):
                (place / "environ").read_bytes()
        connected.close()
        await child.ended()
        await child.cleared()
    assert child.has_ended


async def test_a_worker_whose_door_is_closed_ends_by_itself() -> None:
    with open_door() as door:
        directory = door.directory
    with anyio.fail_after(SECONDS):
        child = Child.start(directory, new_nonce(), "/usr/bin:/bin")
        await child.ended()
        await child.cleared()
    assert child.has_ended


async def test_a_killed_worker_is_collected(tmp_path: Path) -> None:
    with anyio.fail_after(SECONDS), open_door() as door:
        child = Child.start(door.directory, new_nonce(), "/usr/bin:/bin")
        assert not child.has_ended
        child.kill()
        await child.ended()
        child.kill()
        await until(lambda: not Path(f"/proc/{child.pid}").exists(), "nothing is left of it")


async def test_a_module_in_the_working_directory_is_never_the_workers(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "anyio.py").write_text("raise SystemExit('mine')", encoding="utf-8")
    (tmp_path / "codespace.py").write_text("raise SystemExit('mine')", encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    with anyio.fail_after(SECONDS), open_door() as door:
        child = Child.start(door.directory, new_nonce(), "/usr/bin:/bin")
        (await door.admit(child.pid)).close()
        await child.ended()
