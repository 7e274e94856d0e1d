"""Commands below a keeper that is hindered or killed: by whom, and what is told then."""

import ctypes
import dataclasses
import os
import signal
import subprocess
import sys
from pathlib import Path

import anyio
import pytest

from codespace.domain.errors import CodeSpaceError
from codespace.domain.ids import ProcessId
from codespace.runner import keeper, spawn
from codespace.runner.api import Containment
from codespace.runner.keeper import children_of, prctl_function
from programs.running import (
    LIMITS,
    Commands,
    code_of,
    commands,
    descriptors,
    living,
    new_token,
    older_kernels_keeper,
    signals_are_scoped,
    until,
)

pytestmark = pytest.mark.anyio

needs_scope = pytest.mark.skipif(
    not signals_are_scoped(), reason="this kernel cannot confine a command's signals"
)


@pytest.fixture
def older_kernel(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Make keepers act as where a command can signal them."""
    monkeypatch.setattr(keeper, "__file__", older_kernels_keeper(tmp_path))


older = pytest.mark.usefixtures("older_kernel")


@needs_scope
@pytest.mark.parametrize("name", ["KILL", "STOP", "CONT", "0"])
async def test_a_command_cannot_signal_its_keeper_nor_the_gateway(tmp_path: Path, name: str):
    async with commands(Containment.KEEPER, tmp_path) as run:
        for target in ("$PPID", str(os.getpid())):
            done = await run.run("sh", "-c", f"kill -{name} {target} 2>/dev/null || exit 6")
            assert done.state.exit_code == 6


@needs_scope
async def test_a_command_signals_its_own_processes_as_ever(tmp_path: Path):
    text = "setsid sleep 60 & p=$!; kill -STOP $p; kill -KILL $p; wait $p; echo rc=$?"
    async with commands(Containment.KEEPER, tmp_path) as run:
        done = await run.run("sh", "-c", text)
    assert "rc=137" in done.text


@older
async def test_a_command_that_stops_its_keeper_can_still_be_ended(tmp_path: Path):
    token = new_token()
    async with commands(Containment.KEEPER, tmp_path) as run:
        process_id = await run.start("sh", "-c", f"kill -STOP $PPID; echo up; sleep 3600.{token}")
        await run.read_until(process_id, "up")
        await run.runner.terminate(process_id)
        assert (await run.end(process_id)).termination == "terminated"
        assert not living(token)


STOPS_FOR_EVER = """
import os, signal
keeper = os.getppid()
if os.fork() == 0:
    os.setsid()
signal.signal(signal.SIGTERM, signal.SIG_IGN)
while True:
    os.kill(keeper, signal.SIGSTOP)
"""


@older
async def test_a_command_that_stops_its_keeper_without_pause_can_still_be_ended(tmp_path: Path):
    token = new_token()
    async with commands(Containment.KEEPER, tmp_path) as run:
        process_id = await run.start(sys.executable, "-S", "-c", STOPS_FOR_EVER, token)
        await until(lambda: len(living(token)) == 3, "two of them stop the keeper")
        await run.runner.terminate(process_id)
        assert (await run.end(process_id)).termination == "terminated"
        assert not living(token)


@older
@pytest.mark.parametrize(
    "survivor",
    [
        "sleep 3600.{}",
        "setsid sleep 3600.{}",
        "setsid sh -c 'setsid sleep 3600.{} & sleep 3600.{}'",
    ],
)
async def test_what_outlives_a_killed_keeper_is_ended_before_the_end_is_told(
    tmp_path: Path, survivor: str
):
    token = new_token()
    text = f"{survivor.replace('{}', token)} & sleep 0.1; kill -KILL $PPID; sleep 3600.{token}"
    async with commands(Containment.KEEPER, tmp_path) as run:
        before = descriptors()
        process_id = await run.start("sh", "-c", text)
        state = await run.end(process_id)
        assert not living(token)
        await run.read_all(process_id)
        assert descriptors() == before
    assert (state.termination, state.exit_code, state.signal) == ("unknown", None, None)


FORKS_ON = """
import os, time
keeper, end = os.getppid(), time.monotonic() + 30
held = os.open("held", os.O_WRONLY)
if os.fork() == 0:
    os.setsid()
    time.sleep(0.05)
    os.kill(keeper, 9)
    while time.monotonic() < end:
        if os.fork():
            os._exit(0)
        os.setsid()
time.sleep(30)
"""


@older
async def test_what_forks_without_pause_is_ended_after_it_killed_its_keeper(tmp_path: Path):
    os.mkfifo(tmp_path / "held")
    held = os.open(tmp_path / "held", os.O_RDONLY | os.O_NONBLOCK)
    async with commands(Containment.KEEPER, tmp_path) as run:
        process_id = await run.start(sys.executable, "-S", "-c", FORKS_ON)
        state = await run.end(process_id)
        assert os.read(held, 1) == b"", "one of them still holds the file"
    os.close(held)
    assert state.termination == "unknown"


@older
async def test_commands_of_other_keepers_and_children_of_others_outlive_a_killed_keeper(
    tmp_path: Path,
):
    async with (
        commands(Containment.KEEPER, tmp_path) as run,
        commands(Containment.KEEPER, tmp_path) as second,
    ):
        killer = await run.start("sh", "-c", "read go; kill -KILL $PPID; sleep 3600")
        # All of these are younger than the keeper, and some are just like what it leaves.
        others = [(each, await each.start("sleep", "3600")) for each in (run, second, second)]
        strangers = [subprocess.Popen(["setpriv", "--no-new-privs", "sleep", "3600"])]
        if "NoNewPrivs:\t0" in Path("/proc/self/status").read_text(encoding="ascii"):
            strangers.append(subprocess.Popen(["sleep", "3600"], start_new_session=True))
        try:
            await run.runner.write(killer, b"\n", close=True)
            await run.end(killer)
            for each, other in others:
                assert (await each.runner.status(other)).running
            assert {stranger.poll() for stranger in strangers} == {None}
        finally:
            for stranger in strangers:
                stranger.kill()
            assert {stranger.wait() for stranger in strangers} == {-signal.SIGKILL}


@older
async def test_the_dead_that_were_adopted_are_collected(tmp_path: Path):
    async with commands(Containment.KEEPER, tmp_path) as run:
        before = set(children_of(os.getpid()))
        for _ in range(3):
            await run.end(
                await run.start("sh", "-c", "setsid sleep 60 & kill -KILL $PPID; sleep 60")
            )
        assert set(children_of(os.getpid())) <= before


@pytest.mark.parametrize("name", ["TERM", "INT", "HUP", "QUIT", "CHLD", "USR1", "ALRM", "TSTP"])
@older
async def test_other_signals_do_not_move_the_keeper(tmp_path: Path, name: str):
    async with commands(Containment.KEEPER, tmp_path) as run:
        state = (await run.run("sh", "-c", f"kill -{name} $PPID; exit 6")).state
    assert (state.termination, state.exit_code) == ("exited", 6)


async def test_a_keeper_that_does_not_come_up_is_a_failed_spawn(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(sys, "executable", "/bin/false")
    async with commands(Containment.KEEPER, tmp_path) as run:
        before = descriptors()
        with pytest.raises(CodeSpaceError) as caught:
            await run.start("true")
        assert descriptors() == before
    assert code_of(caught) == "PROCESS_SPAWN_FAILED"


async def test_a_keeper_that_stops_before_it_comes_up_is_given_up(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    token = new_token()
    interpreter = tmp_path / "interpreter"
    interpreter.write_text(
        f"#!/bin/sh\nwhile :; do kill -STOP $$; done # {token}\n", encoding="utf-8"
    )
    interpreter.chmod(0o755)
    monkeypatch.setattr(sys, "executable", str(interpreter))
    limits = dataclasses.replace(LIMITS, process_start_ms=200)
    async with commands(Containment.KEEPER, tmp_path, limits) as run:
        await _assert_given_up(run)
    assert not living(str(interpreter))


async def _assert_given_up(run: Commands) -> None:
    before = descriptors()
    with pytest.raises(CodeSpaceError) as caught, anyio.fail_after(20):
        await run.runner.start(run.request(ProcessId("proc-slow"), "true"))
    assert code_of(caught) == "PROCESS_SPAWN_FAILED"
    assert "did not start within 0.2 seconds" in caught.value.message
    assert descriptors() == before
    with pytest.raises(CodeSpaceError) as unknown:
        await run.runner.status(ProcessId("proc-slow"))
    assert code_of(unknown) == "PROCESS_NOT_FOUND"


async def test_a_keeper_that_hears_nothing_is_ended_with_what_is_below_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    token = new_token()
    interpreter = tmp_path / "interpreter"
    interpreter.write_text(
        f'#!/bin/bash\nsetsid sleep 3600.{token} &\necho "started $!" >&"$6"\nwait\nwait\n',
        encoding="utf-8",
    )
    interpreter.chmod(0o755)
    monkeypatch.setattr(sys, "executable", str(interpreter))
    async with commands(Containment.KEEPER, tmp_path) as run:
        process_id = await run.start("true")
        await until(lambda: bool(living(token)), "the fake's command runs")
        await run.runner.terminate(process_id)
        assert (await run.end(process_id)).termination == "terminated"
        assert not living(token)


async def test_a_keeper_that_is_not_there_is_a_failed_spawn(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(spawn.sys, "executable", str(tmp_path / "gone"))
    async with commands(Containment.KEEPER, tmp_path) as run:
        before = descriptors()
        with pytest.raises(CodeSpaceError) as caught:
            await run.start("true")
        assert descriptors() == before
    assert code_of(caught) == "PROCESS_SPAWN_FAILED"
    assert str(tmp_path) not in caught.value.message


def _adopts() -> bool:
    state = ctypes.c_int()
    prctl_function()(37, ctypes.addressof(state))
    return bool(state.value)


async def test_the_process_adopts_orphans_only_while_a_runner_with_keepers_is_open(tmp_path: Path):
    assert not _adopts()
    async with commands(Containment.KEEPER, tmp_path) as run:
        await run.run("true")
        assert _adopts()
        async with commands(Containment.KEEPER, tmp_path) as second:
            await second.run("true")
        assert _adopts()
    assert not _adopts()
