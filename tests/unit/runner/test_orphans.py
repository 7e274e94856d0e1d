"""Adopted orphans on their own: whose they can be, and what others of this process keep."""

import ctypes
import errno
import os
import signal
import subprocess
import time
from collections.abc import Callable, Generator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

from codespace.runner.keeper import children_of, prctl_function
from codespace.runner.launchers import start_time
from codespace.runner.orphans import Adoption, Orphans
from programs.running import PATIENCE, living, new_token

PR_GET_CHILD_SUBREAPER = 37


def adopts() -> bool:
    state = ctypes.c_int()
    prctl_function()(PR_GET_CHILD_SUBREAPER, ctypes.addressof(state))
    return bool(state.value)


def until(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + PATIENCE
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.005)


@contextmanager
def adopted(token: str) -> Generator[int]:
    """Yield when an orphan with a keeper's marks started that has TOKEN in its arguments."""
    adoption = Adoption()
    adoption.begin()
    text = f"setsid sleep 3600.{token} & :"
    try:
        parent = subprocess.Popen(
            ["setpriv", "--no-new-privs", "sh", "-c", text], start_new_session=True
        )
        since = int(start_time(parent.pid))
        parent.wait(timeout=20)
        until(lambda: any(pid in living(token) for pid in children_of(os.getpid())))
        yield since
    finally:
        adoption.end()
        for pid in living(token):
            os.kill(pid, signal.SIGKILL)
            with suppress(ChildProcessError):
                os.waitpid(pid, 0)


def test_adopting_begins_and_ends_and_goes_back_to_what_was_before():
    outer, inner = Adoption(), Adoption()
    assert not adopts()
    outer.begin()
    outer.begin()
    inner.begin()
    inner.end()
    inner.end()
    assert adopts()
    outer.end()
    assert not adopts()


def test_an_orphan_is_killed_and_collected():
    token, before = new_token(), set(children_of(os.getpid()))
    with adopted(token) as since:
        ours = Orphans(since, set())
        assert ours.end()
        until(lambda: not ours.end())
        assert not living(token)
        assert set(children_of(os.getpid())) == before


@pytest.mark.parametrize("reason", ["older", "known", "held"])
def test_what_cannot_be_of_the_keeper_goes_on(reason: str):
    token = new_token()
    with adopted(token) as since:
        (pid,) = living(token)
        known = {pid} if reason == "known" else set[int]()
        pidfd = os.pidfd_open(pid) if reason == "held" else None
        assert not Orphans(since + (10**6 if reason == "older" else 0), known).end()
        until(lambda: ") S" in Path(f"/proc/{pid}/stat").read_text(encoding="ascii"))
        if pidfd is not None:
            os.close(pidfd)


def test_where_this_process_may_not_look_what_is_known_has_to_do(monkeypatch: pytest.MonkeyPatch):
    token = new_token()
    with adopted(token) as since, monkeypatch.context() as patch:
        (pid,) = living(token)
        patch.setattr(Path, "iterdir", _forbidden)
        assert not Orphans(since, {pid}).end()
        assert Orphans(since, set()).end()


def test_without_a_look_nothing_is_said(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(Path, "iterdir", _too_many)
    with pytest.raises(OSError, match="Too many"):
        Orphans(0, set()).end()


def _forbidden(_self: Path) -> Generator[Path]:
    raise PermissionError


def _too_many(_self: Path) -> Generator[Path]:
    raise OSError(errno.EMFILE, os.strerror(errno.EMFILE))
