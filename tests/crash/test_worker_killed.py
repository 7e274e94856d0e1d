"""SIGKILL of the worker, or of the gateway above it, at any point: nothing stays, all is told.

A lost start is `unknown` and never refused; its processes are gone when that is said; the lease is
free, and the next call finds a new worker.
"""

import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import anyio
import pytest

from codespace.bootstrap import Gateway, open_gateway
from codespace.domain.errors import CodeSpaceError, ErrorCode
from codespace.domain.tool import Json
from codespace.runner.api import Containment, RunnerLostError
from codespace.runner.uds import UdsRunner
from codespace.settings import load
from programs.leader_kinds import KINDS
from programs.running import (
    LIMITS,
    PROGRAMS,
    Commands,
    both_containments,
    living,
    new_token,
    root_at,
    until,
)

SECONDS = 30
ADD = "*** Begin Patch\n*** Add File: new.txt\n+hello\n*** End Patch"
HERE = {"workspace_id": "default"}


@asynccontextmanager
async def gateway_on(root: Path) -> AsyncGenerator[Gateway]:
    settings = load(path=str(root), flags={"runner": "uds"}, environ={"PATH": "/usr/bin:/bin"})
    async with open_gateway(settings) as gateway:
        with anyio.fail_after(SECONDS):
            yield gateway


def worker_of(runner: object) -> int:
    assert isinstance(runner, UdsRunner)
    assert runner.worker_pid is not None
    return runner.worker_pid


def kill(pid: int) -> None:
    """Kill a worker of this process; return when it is dead, with its end not collected."""
    os.kill(pid, signal.SIGKILL)
    os.waitid(os.P_PID, pid, os.WEXITED | os.WNOWAIT)


async def refusal(gateway: Gateway, name: str, **arguments: object) -> ErrorCode:
    with pytest.raises(CodeSpaceError) as caught:
        await gateway.call(name, arguments)
    return caught.value.code


async def assert_all_is_well(gateway: Gateway, lost: int) -> None:
    """The workspace is free at once, for a command and then a patch, with a new worker."""
    done = await gateway.call("bash", {**HERE, "command": "echo again"})
    assert (done["output"], done["exit_code"]) == ("again\n", 0)
    assert worker_of(gateway.runner) != lost
    assert (await gateway.call("apply_patch", {**HERE, "patch": ADD}))["status"] == "applied"


async def assert_forgotten(gateway: Gateway, process_id: object) -> None:
    asked: dict[str, dict[str, object]] = {
        "read_process": {},
        "process_status": {"wait_ms": 10},
        "write_stdin": {"data": "x"},
        "process_resize": {"rows": 2, "cols": 2},
        "terminate_process": {},
    }
    for name, more in asked.items():
        assert await refusal(gateway, name, process_id=process_id, **more) == "PROCESS_NOT_FOUND"


@pytest.mark.anyio
async def test_killed_before_a_start_it_is_replaced_and_the_command_is_confirmed(tmp_path: Path):
    async with gateway_on(tmp_path) as gateway:
        lost = worker_of(gateway.runner)
        kill(lost)
        started = await gateway.call("exec_command", {**HERE, "command": ["true"]})
        assert started["dispatch_status"] == "confirmed"
        await gateway.call(
            "process_status", {"process_id": started["process_id"], "wait_ms": 9_000}
        )
        await assert_all_is_well(gateway, lost)


@pytest.mark.anyio
@pytest.mark.parametrize("tool", ["exec_command", "bash"])
@pytest.mark.requirement("runner.lost-is-unknown")
async def test_killed_while_it_starts_a_command_that_is_unknown_and_not_refused(
    tmp_path: Path, tool: str
):
    token = new_token()
    answers: list[Json] = []
    async with gateway_on(tmp_path) as gateway:
        lost = worker_of(gateway.runner)
        os.kill(lost, signal.SIGSTOP)  # it is asked, and cannot answer
        text = f"sleep 3600.{token}"
        command = text if tool == "bash" else ["sh", "-c", text]

        async def start() -> None:
            answers.append(await gateway.call(tool, {**HERE, "command": command}))

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(start)
            await until(lambda: _is_asked(gateway.runner), "the request is on its way")
            kill(lost)
        (answer,) = answers
        assert not living(token)
        if tool == "bash":
            assert answer["termination"] == "unknown"
            assert "exit_code" not in answer
        else:
            assert answer["dispatch_status"] == "unknown"
        await assert_forgotten(gateway, answer["process_id"])
        await assert_all_is_well(gateway, lost)


def _is_asked(runner: object) -> bool:
    """Tell whether a request went to the worker, whose answer is not there yet."""
    assert isinstance(runner, UdsRunner)
    worker = runner._worker  # pyright: ignore[reportPrivateUsage] -- nothing else knows it
    return worker is not None and bool(worker.link._waiting)  # pyright: ignore[reportPrivateUsage] -- as above


@pytest.mark.anyio
async def test_killed_at_any_instant_of_a_start_nothing_is_left_and_nothing_is_refused(
    tmp_path: Path,
):
    chance, token, told = random.Random(10), new_token(), set[object]()
    async with gateway_on(tmp_path) as gateway:
        for _ in range(10):
            await gateway.call("bash", {**HERE, "command": "true"})
            lost = worker_of(gateway.runner)
            started: list[Json] = []

            async def start(told: list[Json]) -> None:
                command = ["sh", "-c", f"setsid sleep 3600.{token} & sleep 3600.{token}"]
                told.append(await gateway.call("exec_command", {**HERE, "command": command}))

            async with anyio.create_task_group() as tasks:
                tasks.start_soon(start, started)
                await anyio.sleep(chance.uniform(0, 0.012))
                kill(lost)
            told.add(started[0]["dispatch_status"])
            await assert_forgotten(gateway, started[0]["process_id"])
            assert not living(token)
    assert "unknown" in told


@pytest.mark.anyio
@pytest.mark.requirement("runner.lost-worker-ends-its-processes", "runner.new-worker")
async def test_killed_while_a_command_runs_the_lease_is_free_and_its_processes_are_gone(
    tmp_path: Path,
):
    token = new_token()
    async with gateway_on(tmp_path) as gateway:
        lost = worker_of(gateway.runner)
        command = ["sh", "-c", f"trap '' TERM; setsid sleep 3600.{token} & sleep 3600.{token}"]
        started = await gateway.call("exec_command", {**HERE, "command": command})
        await until(lambda: len(living(token)) >= 2, "it runs")
        assert await refusal(gateway, "apply_patch", **HERE, patch=ADD) == "WORKSPACE_BUSY"
        kill(lost)
        assert (await gateway.call("apply_patch", {**HERE, "patch": ADD}))["status"] == "applied"
        assert not living(token), "the lease was free before its processes were gone"
        await assert_forgotten(gateway, started["process_id"])
        (tmp_path / "new.txt").unlink()
        await assert_all_is_well(gateway, lost)


@pytest.mark.anyio
@pytest.mark.parametrize("waits", ["read_process", "process_status"])
async def test_killed_under_a_waiting_call_that_ends_at_once(tmp_path: Path, waits: str):
    token = new_token()
    async with gateway_on(tmp_path) as gateway:
        lost = worker_of(gateway.runner)
        started = await gateway.call(
            "exec_command", {**HERE, "command": ["sleep", f"3600.{token}"]}
        )

        async def wait() -> None:
            handle = {"process_id": started["process_id"], "wait_ms": 30_000}
            assert await refusal(gateway, waits, **handle) == "PROCESS_NOT_FOUND"
            assert not living(token)

        with anyio.fail_after(SECONDS / 2):
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(wait)
                await gateway.call("process_status", {"process_id": started["process_id"]})
                kill(lost)
        await assert_all_is_well(gateway, lost)


@pytest.mark.anyio
async def test_killed_under_a_shell_text_what_came_is_told_and_the_end_is_unknown(tmp_path: Path):
    token = new_token()
    answers: list[Json] = []
    async with gateway_on(tmp_path) as gateway:
        lost = worker_of(gateway.runner)

        async def run() -> None:
            text = f"echo before; touch began; sleep 3600.{token}"
            answers.append(await gateway.call("bash", {**HERE, "command": text}))

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(run)
            await until((tmp_path / "began").exists, "it runs")
            kill(lost)
        (answer,) = answers
        assert answer["termination"] == "unknown"
        assert "exit_code" not in answer
        assert not living(token)
        await assert_forgotten(gateway, answer["process_id"])
        await assert_all_is_well(gateway, lost)


@pytest.mark.anyio
async def test_a_worker_that_hangs_and_is_killed_by_the_operator_is_like_any_other(tmp_path: Path):
    async with gateway_on(tmp_path) as gateway:
        lost = worker_of(gateway.runner)
        os.kill(lost, signal.SIGTERM)
        os.waitid(os.P_PID, lost, os.WEXITED | os.WNOWAIT)
        await assert_all_is_well(gateway, lost)


@pytest.mark.anyio
@both_containments
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.requirement("runner.lost-worker-ends-its-processes")
async def test_every_kind_of_descendant_is_gone_when_the_loss_is_told(
    tmp_path: Path, containment: Containment, kind: str
):
    token = new_token()
    async with UdsRunner.running(limits=LIMITS, containment=containment) as runner:
        run = Commands(runner, root_at(tmp_path))
        leader = str(PROGRAMS / "leader_kinds.py")
        process_id = await run.start(sys.executable, "-S", leader, kind, token, stdin="null")
        await run.read_until(process_id, "READY")
        assert len(living(token)) >= 2
        kill(worker_of(runner))
        with anyio.fail_after(SECONDS), pytest.raises((CodeSpaceError, RunnerLostError)):
            await runner.read(process_id, 1 << 30, max_bytes=1, wait_ms=30_000)
        assert not living(token)


@both_containments
@pytest.mark.parametrize("point", ["begins", "open", "runs"])
def test_nothing_survives_a_killed_gateway_its_worker_least_of_all(
    tmp_path: Path, containment: Containment, point: str
):
    chance = random.Random(f"{containment}{point}")
    ran = 0
    for _ in range(3):
        token = new_token()
        gateway = subprocess.Popen(
            [
                *(sys.executable, str(PROGRAMS / "worker_gateway.py")),
                *(containment, token, str(tmp_path)),
            ],
            stdout=subprocess.PIPE,
            text=True,
            env={
                **os.environ,
                "TMPDIR": str(tmp_path),  # killed as a worker comes, it leaves a dead socket there
                "PYTHONPATH": os.pathsep.join([str(PROGRAMS.parent), *filter(None, sys.path)]),
            },
        )
        with gateway:
            assert gateway.stdout is not None
            for line in gateway.stdout:
                if line.strip() == point:
                    break
            # What is to be hit is what goes on right after the line.
            time.sleep(chance.uniform(0, 0.3) if point == "begins" else chance.uniform(0, 0.03))
            ran += bool(_others(token, gateway.pid))
            gateway.kill()
            gateway.wait()
        _until(lambda token=token: not living(token), "something outlived the gateway")
    assert ran or point == "begins", "no kill hit anything; nothing was proven"


def _others(token: str, pid: int) -> list[int]:
    return [found for found in living(token) if found != pid]


def _until(true: Callable[[], bool], what: str) -> None:
    deadline = time.monotonic() + SECONDS
    while not true():
        assert time.monotonic() < deadline, what
        time.sleep(0.005)
