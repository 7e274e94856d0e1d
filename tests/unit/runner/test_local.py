"""The in-process runner as its callers see it, in both containments."""

import asyncio
import contextlib
import dataclasses
import os
import threading
from pathlib import Path

import anyio
import pytest
import uvloop

from codespace.domain.errors import CodeSpaceError, ErrorCode
from codespace.domain.ids import ProcessId
from codespace.runner.api import Containment, Runner, StartRequest
from codespace.runner.local import LocalRunner
from codespace.runner.sandbox import probe
from programs.running import (
    ENVIRONMENT,
    LIMITS,
    Commands,
    both_containments,
    code_of,
    commands,
    descriptors,
    each_backend,
    living,
    new_token,
    until,
)

pytestmark = pytest.mark.anyio


def sleeper(token: str) -> tuple[str, str]:
    return ("sleep", f"3600.{token}")


@both_containments
@each_backend
async def test_a_command_runs_in_the_root_with_just_its_environment(
    tmp_path: Path, containment: Containment
):
    async with commands(containment, tmp_path) as run:
        done = await run.run("sh", "-c", "pwd; env | sort; echo err >&2")
    lines = {f"{name}={value}" for name, value in ENVIRONMENT.items()} | {f"PWD={tmp_path}"}
    where, *rest = done.text.splitlines()
    assert where == str(tmp_path)
    assert rest.pop() == "err"
    assert {line for line in rest if not line.startswith(("_=", "SHLVL=", "OLDPWD"))} == lines


@both_containments
@each_backend
async def test_arguments_arrive_as_they_were_given(tmp_path: Path, containment: Containment):
    argv = ("$(id)", ";", "-a", "--", "", "two\nlines", "*", "😀" * 25_000, "'\"\\")
    async with commands(containment, tmp_path) as run:
        done = await run.run("python3", "-c", "import sys;print(ascii(sys.argv[1:]))", *argv)
    assert done.text == ascii(list(argv)) + "\n"


@both_containments
@each_backend
async def test_the_runner_says_what_it_enforces(tmp_path: Path, containment: Containment):
    async with commands(containment, tmp_path) as run:
        facts = run.runner.facts
    assert facts.containment is containment
    assert (facts.reason is None) == (containment is Containment.PID_NAMESPACE)


async def test_unasked_the_strongest_containment_that_works_is_taken(tmp_path: Path):
    async with commands(None, tmp_path) as run:
        works = run.runner.facts.containment is Containment.PID_NAMESPACE
    assert works == probe().works


async def test_a_named_containment_that_does_not_work_is_refused(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
):
    monkeypatch.setenv("PATH", str(tmp_path))
    broken = tmp_path / "bwrap"
    broken.write_text("#!/bin/sh\necho bubblewrap 99.0\n[ $# = 1 ]\n", encoding="utf-8")
    broken.chmod(0o755)
    monkeypatch.setattr("codespace.runner.sandbox._packaged", lambda: None)
    with pytest.raises(CodeSpaceError) as caught:
        await LocalRunner.open(containment=Containment.PID_NAMESPACE)
    assert caught.value.code is ErrorCode.PROCESS_SPAWN_FAILED
    async with commands(None, tmp_path) as run:
        assert run.runner.facts.containment is Containment.KEEPER
        assert run.runner.facts.reason


@both_containments
@each_backend
async def test_a_local_runner_is_a_runner(tmp_path: Path, containment: Containment):
    async with commands(containment, tmp_path) as run:
        runner: Runner = run.runner
        assert runner.facts.containment is containment


def asleep(token: str) -> list[int]:
    """Return the commands themselves: their launchers have the token in their arguments, too."""
    found: list[int] = []
    for pid in living(token):
        with contextlib.suppress(OSError):
            if Path(f"/proc/{pid}/exe").readlink().name == Path("/bin/sleep").resolve().name:
                found.append(pid)
    return found


@both_containments
@each_backend
async def test_too_many_live_processes_are_refused_and_an_end_frees_the_slot(
    tmp_path: Path, containment: Containment
):
    limits = dataclasses.replace(LIMITS, max_processes=2)
    token = new_token()
    async with commands(containment, tmp_path, limits) as run:
        first = await run.start(*sleeper(token))
        await run.start(*sleeper(token))
        await until(lambda: len(asleep(token)) == 2, "both sleep")
        with pytest.raises(CodeSpaceError) as caught:
            await run.start(*sleeper(token))
        assert code_of(caught) == "PROCESS_SPAWN_FAILED"
        assert len(asleep(token)) == 2
        await run.runner.terminate(first)
        await run.end(first)
        await run.start(*sleeper(token))


@both_containments
@each_backend
async def test_a_process_id_is_used_once(tmp_path: Path, containment: Containment):
    async with commands(containment, tmp_path) as run:
        process_id = await run.start("true")
        await run.end(process_id)
        with pytest.raises(CodeSpaceError) as caught:
            await run.runner.start(run.request(process_id, "true"))
    assert code_of(caught) == "PROCESS_SPAWN_FAILED"


async def test_an_unknown_process_is_not_found(tmp_path: Path):
    unknown = ProcessId("proc-unknown")
    async with commands(Containment.KEEPER, tmp_path) as run:
        calls = (
            run.runner.read(unknown, 0, max_bytes=10),
            run.runner.status(unknown),
            run.runner.write(unknown, b"", close=True),
            run.runner.resize(unknown, 1, 1),
            run.runner.terminate(unknown),
        )
        for call in calls:
            with pytest.raises(CodeSpaceError) as caught:
                await call
            assert code_of(caught) == "PROCESS_NOT_FOUND"


async def test_a_negative_cursor_is_refused(tmp_path: Path):
    async with commands(None, tmp_path) as run:
        process_id = await run.start("true")
        with pytest.raises(CodeSpaceError) as caught:
            await run.runner.read(process_id, -1, max_bytes=10)
    assert code_of(caught) == "INVALID_ARGUMENT"


async def test_only_the_last_finished_processes_are_kept(tmp_path: Path):
    limits = dataclasses.replace(LIMITS, finished_processes_kept=2)
    async with commands(None, tmp_path, limits) as run:
        ids: list[ProcessId] = []
        for _ in range(4):
            ids.append(await run.start("true"))
            await run.end(ids[-1])
        for process_id in ids[:2]:
            with pytest.raises(CodeSpaceError) as caught:
                await run.runner.status(process_id)
            assert code_of(caught) == "PROCESS_NOT_FOUND"
        for process_id in ids[2:]:
            assert not (await run.runner.status(process_id)).running


@pytest.mark.requirement("finished.kept-for-15-minutes")
async def test_a_finished_process_is_forgotten_after_its_time_and_a_live_one_is_not(
    tmp_path: Path,
):
    limits = dataclasses.replace(LIMITS, finished_process_kept_ms=50)
    async with commands(None, tmp_path, limits) as run:
        live = await run.start("sleep", "60")
        ended = await run.start("true")
        with anyio.fail_after(20):
            while await _is_known(run, ended):
                await anyio.sleep(0.01)
        assert (await run.runner.status(live)).running


async def _is_known(run: Commands, process_id: ProcessId) -> bool:
    try:
        await run.runner.status(process_id)
    except CodeSpaceError as error:
        return error.code is not ErrorCode.PROCESS_NOT_FOUND
    return True


@both_containments
@each_backend
async def test_a_missing_root_starts_nothing(tmp_path: Path, containment: Containment):
    root = tmp_path / "root"
    root.mkdir()
    token = new_token()
    async with commands(containment, root) as run:
        root.rename(tmp_path / "elsewhere")
        with pytest.raises(CodeSpaceError) as missing:
            await run.start(*sleeper(token))
        root.mkdir()
        with pytest.raises(CodeSpaceError) as replaced:
            await run.start(*sleeper(token))
    for caught in (missing, replaced):
        assert code_of(caught) == "FILE_OPERATION_FAILED"
        assert str(tmp_path) not in caught.value.message
    assert not living(token)


@both_containments
@each_backend
async def test_a_root_behind_a_registered_symlink_is_used(tmp_path: Path, containment: Containment):
    target = tmp_path / "target"
    target.mkdir()
    link = tmp_path / "link"
    link.symlink_to(target)
    async with commands(containment, link) as run:
        assert (await run.run("sh", "-c", "pwd -P")).text == f"{target}\n"


@both_containments
@each_backend
async def test_terminate_answers_at_once_and_may_be_repeated(
    tmp_path: Path, containment: Containment
):
    async with commands(containment, tmp_path) as run:
        process_id = await run.start("sh", "-c", "trap '' TERM; echo up; sleep 60; sleep 60")
        await run.read_until(process_id, "up")
        await run.runner.terminate(process_id)
        await run.runner.terminate(process_id)
        assert (await run.runner.status(process_id)).running
        state = await run.end(process_id)
        await run.runner.terminate(process_id)
    assert (state.termination, state.exit_code, state.signal) == ("terminated", None, None)


@both_containments
@each_backend
async def test_a_cancelled_start_leaves_nothing(tmp_path: Path, containment: Containment):
    token = new_token()
    async with commands(containment, tmp_path) as run:
        before = descriptors()
        with anyio.move_on_after(0) as scope:
            await run.runner.start(run.request(ProcessId("proc-x"), *sleeper(token)))
        assert scope.cancelled_caught
        assert not living(token)
        assert descriptors() == before
        with pytest.raises(CodeSpaceError) as caught:
            await run.runner.status(ProcessId("proc-x"))
        assert code_of(caught) == "PROCESS_NOT_FOUND"


@both_containments
@each_backend
async def test_a_process_that_is_terminated_while_it_starts_never_runs(
    tmp_path: Path, containment: Containment
):
    marker = tmp_path / "ran"
    process_id = ProcessId("proc-x")
    async with commands(containment, tmp_path) as run, anyio.create_task_group() as group:

        async def start() -> None:
            with pytest.raises(CodeSpaceError) as caught:
                await run.runner.start(run.request(process_id, "touch", str(marker)))
            assert code_of(caught) == "PROCESS_SPAWN_FAILED"

        group.start_soon(start)
        await anyio.lowlevel.checkpoint()
        await run.runner.terminate(process_id)
    assert not marker.exists()


@both_containments
@each_backend
async def test_closing_ends_everything_and_nothing_starts_afterwards(
    tmp_path: Path, containment: Containment
):
    token = new_token()
    async with commands(containment, tmp_path) as run:
        before = descriptors()
        for _ in range(4):
            await run.start("sh", "-c", f"trap '' TERM; setsid sleep 3600.{token} & sleep 60")
        await until(lambda: len(living(token)) >= 4, "the commands run")
        await run.runner.close()
        assert not living(token)
        assert descriptors() <= before  # less by those that a worker's runner holds on it
        with pytest.raises(CodeSpaceError) as caught:
            await run.start("true")
    assert code_of(caught) == "PROCESS_SPAWN_FAILED"


async def use(run: Commands, rounds: int, wide: int) -> None:
    async def one(number: int) -> None:
        done = await run.run("sh", "-c", f"echo {number}; exit 7", tty=number % 4 == 0)
        assert (done.text.strip(), done.state.exit_code) == (str(number), 7)

    for at in range(rounds):
        async with anyio.create_task_group() as group:
            for number in range(at * wide, (at + 1) * wide):
                group.start_soon(one, number)


@both_containments
@each_backend
async def test_two_hundred_commands_leave_no_descriptor_no_zombie_and_no_thread(
    tmp_path: Path, containment: Containment
):
    limits = dataclasses.replace(LIMITS, finished_processes_kept=32)
    async with commands(containment, tmp_path, limits) as run:
        await use(run, 1, 2)
        before, threads = descriptors(), threading.active_count()
        await use(run, 10, 20)
        assert descriptors() == before
        assert threading.active_count() <= threads  # one of an earlier test may end meanwhile
        with contextlib.suppress(ChildProcessError):  # other tests' servers may be children, too
            assert os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT) is None


@both_containments
@each_backend
def test_everything_works_under_uvloop(tmp_path: Path, containment: Containment):
    async def session() -> None:
        async with commands(containment, tmp_path) as run:
            await use(run, 2, 4)
            process_id = await run.start("cat")
            await run.runner.write(process_id, b"x" * 500_000, close=True)
            state = await run.end(process_id)
            assert (state.output_total, state.exit_code) == (500_000, 0)
            looping = await run.start("sh", "-c", "setsid sleep 60 & sleep 60", time_limit_ms=50)
            assert (await run.end(looping)).termination == "timeout"

    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(session())


async def test_a_request_needs_no_options(tmp_path: Path):
    async with commands(None, tmp_path) as run:
        await run.runner.start(
            StartRequest(ProcessId("proc-bare"), run.root, ("/bin/sh", "-c", "exit 5"))
        )
        assert (await run.end(ProcessId("proc-bare"))).exit_code == 5
