"""SIGKILL of the gateway while a command holds its keeper up: the kernel or the next start ends it.

The keepers are those of a kernel that lets a command signal them; elsewhere it cannot hinder them.
"""

import os
import subprocess
import sys
import time
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

import pytest

from codespace.runner.launchers import end_orphaned_launchers
from programs.running import PATIENCE, PROGRAMS, living, new_token, older_kernels_keeper

# Stops the keeper without pause; sh has a builtin for it, so it is quicker than any answer.
STOPS_FOR_EVER = 'k=$PPID; (exec setsid sh -c "while :; do kill -STOP $k; done # TOKEN") &'
HOLDS_LIFE_LINE = (
    "for n in $(ls /proc/$GATEWAY/fd); do"
    " p=$(readlink /proc/$GATEWAY/fd/$n); case $p in pipe:*)"
    ' $PYTHON -S -c "import os, sys, time; os.open(sys.argv[1], os.O_WRONLY); time.sleep(3600.0)"'
    " /proc/$GATEWAY/fd/$n TOKEN </dev/null & esac; done; sleep 0.5;"
)


@contextmanager
def killed_gateway(tmp_path: Path, text: str, mark: str) -> Generator[str]:
    """Yield the token of a command whose gateway was killed after the command printed `up`."""
    token = new_token()
    text = text.replace("TOKEN", token)
    path = os.pathsep.join([str(PROGRAMS.parent), *filter(None, sys.path)])
    program = [sys.executable, str(PROGRAMS / "hindering_gateway.py")]
    gateway = subprocess.Popen(
        [*program, older_kernels_keeper(tmp_path), mark, token, str(tmp_path), text],
        stdout=subprocess.PIPE,
        env={**os.environ, "PYTHONPATH": path},
    )
    try:
        assert gateway.stdout is not None
        assert gateway.stdout.readline() == b"up\n"
        assert living(token)
        gateway.kill()
        gateway.communicate(timeout=20)
        yield token
    finally:
        gateway.kill()
        for pid in living(token):
            os.kill(pid, 9)


def assert_gone(token: str) -> None:
    deadline = time.monotonic() + PATIENCE
    while left := living(token):
        assert time.monotonic() < deadline, f"{len(left)} left"
        time.sleep(0.005)


@pytest.mark.parametrize(
    "text",
    [
        "setsid sleep 3600.TOKEN & kill -STOP $PPID; echo up; sleep 3600.TOKEN",
        "(sleep 3600.TOKEN & echo up); kill -STOP $PPID; kill -STOP $$; sleep 3600.TOKEN",
        HOLDS_LIFE_LINE + "kill -STOP $PPID; echo up; sleep 3600.TOKEN",
        HOLDS_LIFE_LINE + "echo up; sleep 3600.TOKEN",
    ],
    ids=["stopped", "stopped with itself", "stopped, life line held", "life line held"],
)
def test_the_kernel_wakes_a_hindered_keeper_when_its_gateway_is_killed(tmp_path: Path, text: str):
    # No gateway that starts meanwhile may do the kernel's work.
    with killed_gateway(tmp_path, text, mark="none") as token:
        assert_gone(token)


def test_the_next_gateway_ends_a_command_that_stops_its_keeper_without_pause(tmp_path: Path):
    text = f"{STOPS_FOR_EVER} sleep 0.2; echo up; setsid sleep 3600.TOKEN"
    with killed_gateway(tmp_path, text, mark="own") as token:
        end_orphaned_launchers()
        assert_gone(token)
