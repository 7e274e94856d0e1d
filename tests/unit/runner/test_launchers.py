"""Half-made launchers: none is left when one is ended, and the next gateway finds what was left."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from codespace.runner import keeper
from codespace.runner.launchers import end_launcher, end_orphaned_launchers, mark
from codespace.runner.sandbox import containment_arguments, probe
from programs.running import living, new_token

needs_namespace = pytest.mark.skipif(
    not probe().works, reason=f"no PID namespace here: {probe().reason}"
)


@needs_namespace
@pytest.mark.parametrize("at", range(60))
def test_a_launcher_ended_at_any_instant_leaves_nothing(at: int):
    token, path = new_token(), probe_path()
    process = subprocess.Popen(
        [mark(), *containment_arguments(), "sleep", f"3600.{token}"],
        executable=path, start_new_session=True,
    )  # fmt: skip
    time.sleep(at / 5_000)  # the instant is the point; what follows must hold at each
    end_launcher(process.pid)
    process.wait(timeout=20)
    _until_gone(token)


def test_ending_what_is_gone_is_no_error():
    process = subprocess.Popen(["true"])
    process.wait()
    end_launcher(process.pid)


def test_a_mark_names_this_process_exactly():
    kind, namespace, pid, start = mark().split(":")
    assert kind == "codespace-launcher"
    assert namespace == str(Path("/proc/self/ns/pid").stat().st_ino)
    assert int(pid) == os.getpid()
    assert int(start) > 0
    assert mark() == mark()


def test_launchers_of_dead_gateways_are_ended_and_others_are_left_alone():
    _, namespace, pid, start = mark().split(":")
    gone = subprocess.Popen(["true"])
    gone.wait()
    lines = {
        "own": mark(),
        "dead": f"codespace-launcher:{namespace}:{gone.pid}:12345",
        "reused": f"codespace-launcher:{namespace}:{pid}:{int(start) + 1}",
        "foreign": f"codespace-launcher:1:{gone.pid}:12345",
        "malformed": "codespace-launcher:x",
        "odd": f"codespace-launcher:{namespace}:x:y",
        "other": "something else",
    }
    processes = {
        name: subprocess.Popen([line, "60"], executable="/bin/sleep", start_new_session=True)
        for name, line in lines.items()
    }
    try:
        end_orphaned_launchers()  # a gateway that starts meanwhile may be quicker
        ended = {name for name in ("dead", "reused") if processes[name].wait(timeout=20) == -9}
        assert ended == {"dead", "reused"}
        alive = {name for name, process in processes.items() if process.poll() is None}
        assert alive == lines.keys() - ended
    finally:
        for process in processes.values():
            process.kill()
            process.wait()


def test_children_of_an_orphaned_launcher_go_with_it():
    token = new_token()
    gone = subprocess.Popen(["true"])
    gone.wait()
    _, namespace, *_ = mark().split(":")
    code = f"import subprocess; subprocess.Popen(['sleep', '3600.{token}']).wait()"
    process = subprocess.Popen(
        [f"codespace-launcher:{namespace}:{gone.pid}:1", "-I", "-S", "-c", code],
        executable=sys.executable, start_new_session=True,
    )  # fmt: skip
    # A gateway that starts meanwhile may be quicker.
    _until(lambda: bool(living(f"sleep\0003600.{token}")) or process.poll() is not None)
    end_orphaned_launchers()
    process.wait(timeout=20)
    _until_gone(token)


def test_a_stopped_keeper_whose_gateway_is_gone_is_ended_with_all_that_it_owns():
    token = new_token()
    gone = subprocess.Popen(["true"])
    gone.wait()
    _, namespace, *_ = mark().split(":")
    life, order = os.pipe()  # stays open: the keeper does not notice by itself
    text = f"setsid sleep 3600.{token} & sleep 3600.{token}"
    process = subprocess.Popen(
        [
            *(sys.executable, "-I", "-S", keeper.__file__),
            *(f"codespace-launcher:{namespace}:{gone.pid}:1", str(life), "1", "pipe"),
            *("/bin/sh", "-c", text),
        ],
        stdout=subprocess.DEVNULL, pass_fds=[life], start_new_session=True,
    )  # fmt: skip
    _until(lambda: len(living(f"sleep\0003600.{token}")) == 2)
    process.send_signal(signal.SIGSTOP)
    end_orphaned_launchers()
    assert process.wait(timeout=20) == -signal.SIGKILL
    _until_gone(token)
    os.close(life)
    os.close(order)


def probe_path() -> str:
    path = probe().path
    assert path is not None
    return path


def _until_gone(token: str) -> None:
    deadline = time.monotonic() + 10
    while left := living(token):
        assert time.monotonic() < deadline, f"{len(left)} left"
        time.sleep(0.002)


def _until(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 20
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.005)
