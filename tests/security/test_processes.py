"""Nothing of a command outlives it: whatever it leaves behind, and however it ends.

The rows K01 to K12 are the attack matrix's; K10 and K11 (the gateway is killed) are in tests/crash.
"""

import contextlib
import dataclasses
import os
import random
import signal
import subprocess
import sys
from pathlib import Path

import anyio
import pytest

from codespace.domain.errors import CodeSpaceError
from codespace.domain.ids import ProcessId
from codespace.runner.api import Containment, ProcessState
from programs.leader_kinds import GONE, KINDS
from programs.running import (
    LIMITS,
    PROGRAMS,
    Commands,
    both_containments,
    commands,
    descriptors,
    each_backend,
    living,
    new_token,
    python_for_all,
    setpriv_line,
    until,
)

pytestmark = pytest.mark.anyio

LEADER = str(PROGRAMS / "leader_kinds.py")
each_kind = pytest.mark.parametrize("kind", KINDS)


async def start_leader(
    run: Commands, kind: str, token: str, time_limit_ms: int = 30_000
) -> ProcessId:
    process_id = await run.start(
        sys.executable, "-S", LEADER, kind, token, time_limit_ms=time_limit_ms, stdin="null"
    )
    await run.read_until(process_id, "READY")
    return process_id


async def assert_all_gone(run: Commands, process_id: ProcessId, token: str) -> ProcessState:
    """Wait for the end; at that instant, not later, nothing with the token may live."""
    state = await run.end(process_id)
    left = living(token)
    assert not left, f"{len(left)} processes outlived the command"
    return state


@both_containments
@each_backend
@each_kind
async def test_terminate_ends_every_kind_of_descendant(
    tmp_path: Path, containment: Containment, kind: str
):
    token = new_token()
    async with commands(containment, tmp_path) as run:
        process_id = await start_leader(run, kind, token)
        assert len(living(token)) >= 2
        await run.runner.terminate(process_id)
        state = await assert_all_gone(run, process_id, token)
    assert (state.termination, state.exit_code, state.signal) == ("terminated", None, None)


@both_containments
@each_kind
async def test_the_time_limit_ends_every_kind_of_descendant(
    tmp_path: Path, containment: Containment, kind: str
):
    token = new_token()
    async with commands(containment, tmp_path) as run:
        process_id = await start_leader(run, kind, token, time_limit_ms=1_000)
        assert len(living(token)) >= 2
        state = await assert_all_gone(run, process_id, token)
    assert (state.termination, state.exit_code, state.signal) == ("timeout", None, None)


@both_containments
@each_kind
async def test_the_leaders_own_end_ends_every_kind_of_descendant(
    tmp_path: Path, containment: Containment, kind: str
):
    token = new_token()
    async with commands(containment, tmp_path) as run:
        process_id = await start_leader(run, GONE + kind, token)
        state = await assert_all_gone(run, process_id, token)
    assert (state.termination, state.exit_code) == ("exited", 0)


@both_containments
@each_backend
@each_kind
async def test_closing_the_runner_ends_every_kind_of_descendant(
    tmp_path: Path, containment: Containment, kind: str
):
    token = new_token()
    async with commands(containment, tmp_path) as run:
        await start_leader(run, kind, token)
        assert len(living(token)) >= 2
    assert not living(token)


@both_containments
@each_backend
async def test_k01_a_daemon_is_gone_after_the_leaders_end(tmp_path: Path, containment: Containment):
    token = new_token()
    async with commands(containment, tmp_path) as run:
        process_id = await start_leader(run, GONE + "daemon", token)
        state = await assert_all_gone(run, process_id, token)
    assert state.exit_code == 0


@both_containments
@each_backend
@pytest.mark.parametrize(("row", "kind"), [("K02", "setsid"), ("K03", "nohup"), ("K04", "deaf")])
async def test_k02_to_k04_terminate_ends_what_left_the_group_or_ignores_it(
    tmp_path: Path, containment: Containment, row: str, kind: str
):
    token = new_token()
    async with commands(containment, tmp_path) as run:
        process_id = await start_leader(run, kind, token)
        await run.runner.terminate(process_id)
        await assert_all_gone(run, process_id, token)


@both_containments
@each_backend
async def test_k05_a_stopped_child_is_gone_at_the_time_limit(
    tmp_path: Path, containment: Containment
):
    token = new_token()
    async with commands(containment, tmp_path) as run:
        process_id = await start_leader(run, "stopped", token, time_limit_ms=800)
        state = await assert_all_gone(run, process_id, token)
    assert state.termination == "timeout"


@both_containments
async def test_k06_three_hundred_children_are_gone_at_the_time_limit(
    tmp_path: Path, containment: Containment
):
    token = new_token()
    text = f"for i in $(seq 300); do sleep 3600.{token} & done; echo READY; wait"
    async with commands(containment, tmp_path) as run:
        process_id = await run.start("sh", "-c", text, time_limit_ms=4_000)
        await run.read_until(process_id, "READY")
        await until(lambda: len(living(token)) >= 300, "all children run")
        state = await assert_all_gone(run, process_id, token)
    assert state.termination == "timeout"


@both_containments
@each_backend
async def test_k07_closed_output_is_no_end_until_the_process_ends(
    tmp_path: Path, containment: Containment
):
    token = new_token()
    async with commands(containment, tmp_path) as run:
        process_id = await run.start(
            "sh", "-c", f"echo before; exec >&- 2>&-; sleep 3600.{token}", time_limit_ms=1_000
        )
        await run.read_until(process_id, "before")
        await until(lambda: len(living(token)) >= 2, "the command went on")
        chunk = await run.runner.read(process_id, 7, max_bytes=100, wait_ms=100)
        assert (chunk.text, chunk.eof) == ("", False)
        assert not (await run.runner.status(process_id)).eof
        state = await assert_all_gone(run, process_id, token)
        assert (state.termination, state.eof) == ("timeout", True)
        assert (await run.runner.read(process_id, 7, max_bytes=100)).eof


@both_containments
@each_backend
async def test_k08_a_background_child_on_the_pipe_does_not_hold_the_end_of_output_back(
    tmp_path: Path, containment: Containment
):
    token = new_token()
    async with commands(containment, tmp_path) as run:
        process_id = await run.start("sh", "-c", f"sleep 3600.{token} & echo done")
        with anyio.fail_after(10):
            assert await run.read_all(process_id) == "done\n"
        await assert_all_gone(run, process_id, token)


@pytest.mark.timeout(240)
@both_containments
@each_backend
async def test_k09_terminated_or_cancelled_at_any_instant_of_its_start_nothing_is_left(
    tmp_path: Path, containment: Containment
):
    token, chance = new_token(), random.Random(9)
    limits = dataclasses.replace(LIMITS, terminate_grace_ms=0)
    async with commands(containment, tmp_path, limits) as run:
        before = descriptors()
        for number in range(60):
            process_id = ProcessId(f"proc-{number}")
            await _start_and_stop(run, process_id, token, chance)
            with contextlib.suppress(CodeSpaceError):  # it never was, for its start was cancelled
                await run.end(process_id)
            assert not living(token)
        assert descriptors() == before


async def _start_and_stop(
    run: Commands, process_id: ProcessId, token: str, chance: random.Random
) -> None:
    """Start a command and, 0 to 15 ms later, cancel its start or terminate it."""
    request = run.request(process_id, "sh", "-c", f"setsid sleep 3600.{token} & sleep 3600.{token}")
    async with anyio.create_task_group() as group:

        async def start() -> None:
            with contextlib.suppress(CodeSpaceError):  # it was terminated before it ran
                await run.runner.start(request)

        group.start_soon(start)
        await anyio.sleep(chance.uniform(0, 0.015))
        if chance.random() < 0.5:
            group.cancel_scope.cancel()
        else:
            with contextlib.suppress(CodeSpaceError):  # not even registered yet
                await run.runner.terminate(process_id)
    with contextlib.suppress(CodeSpaceError):  # its start was cancelled
        await run.runner.terminate(process_id)


@both_containments
@each_backend
async def test_k12_an_exit_code_and_two_signals_are_three_answers(
    tmp_path: Path, containment: Containment
):
    async with commands(containment, tmp_path) as run:
        ends = [
            (await run.run("sh", "-c", text)).state
            for text in ("exit 137", "kill -KILL $$", "kill -SEGV $$", "kill -TERM $$", "exit 0")
        ]
    assert [(end.termination, end.exit_code, end.signal) for end in ends] == [
        ("exited", 137, None),
        ("exited", None, signal.SIGKILL),
        ("exited", None, signal.SIGSEGV),
        ("exited", None, signal.SIGTERM),
        ("exited", 0, None),
    ]


@both_containments
@each_backend
async def test_a_command_holds_no_descriptor_but_its_three(
    tmp_path: Path, containment: Containment
):
    secret = os.open(tmp_path, os.O_RDONLY)
    os.set_inheritable(secret, True)  # noqa: FBT003 -- the function has no keyword
    try:
        async with commands(containment, tmp_path) as run:
            for tty in (False, True):
                done = await run.run("ls", "/proc/self/fd", tty=tty)
                directory_that_ls_reads = "3"
                assert done.text.split() == ["0", "1", "2", directory_that_ls_reads]
    finally:
        os.close(secret)


@both_containments
@each_backend
async def test_a_command_never_has_the_gateways_standard_streams(
    tmp_path: Path, containment: Containment
):
    own = {str(Path(f"/proc/self/fd/{number}").readlink()) for number in range(3)} - {"/dev/null"}
    async with commands(containment, tmp_path) as run:
        for stdin in ("pipe", "null"):
            done = await run.run(
                "sh", "-c", "readlink /proc/$$/fd/0 /proc/$$/fd/1 /proc/$$/fd/2", stdin=stdin
            )
            streams = done.text.split()
            assert len(streams) == 3
            assert not own & set(streams)
            assert (streams[0] == "/dev/null") == (stdin == "null")


@both_containments
@each_backend
async def test_a_command_sees_files_as_the_gateways_user_does(
    tmp_path: Path, containment: Containment
):
    (tmp_path / "mine").touch(mode=0o600)
    async with commands(containment, tmp_path) as run:
        done = await run.run("sh", "-c", "id -u; stat -c %u mine; touch made; cat mine && echo ok")
    assert done.text.split() == [str(os.geteuid())] * 2 + ["ok"]
    assert (tmp_path / "made").stat().st_uid == os.geteuid()


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give files away")
@both_containments
@each_backend
async def test_root_keeps_its_rights_over_other_peoples_files(
    tmp_path: Path, containment: Containment
):
    theirs = tmp_path / "theirs"
    theirs.touch(mode=0o600)
    os.chown(theirs, 1234, 1234)
    async with commands(containment, tmp_path) as run:
        done = await run.run(
            "sh", "-c", "stat -c %u:%g theirs; chown 1:1 theirs; stat -c %u:%g theirs"
        )
    assert done.text.split() == ["1234:1234", "1:1"]


@both_containments
@each_backend
async def test_a_command_cannot_gain_rights_by_a_set_user_id_program(
    tmp_path: Path, containment: Containment
):
    async with commands(containment, tmp_path) as run:
        done = await run.run("grep", "NoNewPrivs", "/proc/self/status")
    assert done.text.split() == ["NoNewPrivs:", "1"]


async def test_a_command_in_a_namespace_sees_no_process_of_the_host(tmp_path: Path):
    async with commands(None, tmp_path) as run:
        if run.runner.facts.containment is not Containment.PID_NAMESPACE:
            pytest.skip("no PID namespace here")
        done = await run.run("sh", "-c", "ls /proc | grep -c '^[0-9]'; kill -9 -1; echo survived")
    assert done.state.signal == signal.SIGKILL or "survived" in done.text
    assert int(done.text.split()[0]) < 10


@pytest.mark.slow
@pytest.mark.timeout(400)
@pytest.mark.skipif(setpriv_line() is None, reason="needs root and setpriv to become somebody else")
@pytest.mark.parametrize(
    "where", ["security/test_processes.py", "unit/runner", "crash/test_gateway_killed.py"]
)
def test_all_of_it_holds_for_an_ordinary_user_too(
    tmp_path_factory: pytest.TempPathFactory, where: str
):
    python = python_for_all()
    if python is None:
        pytest.skip("an ordinary user can reach no interpreter of this version")
    directory = Path("/tmp") / f"codespace-tests-{new_token()}"
    directory.mkdir(mode=0o700)
    os.chown(directory, 65534, 65534)
    tests = PROGRAMS.parent
    try:
        done = subprocess.run(
            [
                *(setpriv_line() or []),
                python,
                "-m",
                "pytest",
                "-q",
                "-x",
                "-p",
                "no:cacheprovider",
                f"--basetemp={directory}/base",
                "-p",
                "no:randomly",
                "-k",
                "not in_worker",
                str(tests / where),
            ],
            cwd=tests.parent,
            capture_output=True,
            text=True,
            timeout=390,
            check=False,
            env={
                "PATH": "/usr/bin:/bin",
                "HOME": str(directory),
                "PYTHONDONTWRITEBYTECODE": "1",
                "HYPOTHESIS_STORAGE_DIRECTORY": str(directory),
                "PYTHONPATH": os.pathsep.join(
                    [
                        str(tests.parent / "src"),
                        *(p for p in sys.path if p.endswith("site-packages")),
                    ]
                ),
            },
        )
    finally:
        subprocess.run(["rm", "-rf", str(directory)], check=True)
    assert done.returncode == 0, done.stdout[-4_000:] + done.stderr[-2_000:]
    assert " passed" in done.stdout
