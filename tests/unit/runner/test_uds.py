"""The runner in a worker process: what differs from the one in this process, in both containments.

What does not differ is in test_local.py and tests/security/test_processes.py, which run with both.
Its loss in all its forms is in tests/crash/test_worker_killed.py.
"""

import asyncio
import dataclasses
import os
import signal
from pathlib import Path

import anyio
import pytest
import uvloop

from codespace.domain.errors import CodeSpaceError, ErrorCode
from codespace.domain.ids import ProcessId
from codespace.runner.api import Containment, Runner, RunnerFacts, RunnerLostError
from codespace.runner.handshake import Terms
from codespace.runner.uds import UdsRunner
from programs.running import (
    LIMITS,
    Commands,
    both_containments,
    code_of,
    descriptors,
    living,
    new_token,
    root_at,
    until,
)

pytestmark = pytest.mark.anyio


def pid_of(runner: UdsRunner) -> int:
    assert runner.worker_pid is not None
    return runner.worker_pid


def kill(runner: UdsRunner) -> None:
    """Kill the worker and return when it is dead; nobody has collected it yet."""
    pid = pid_of(runner)
    os.kill(pid, signal.SIGKILL)
    os.waitid(os.P_PID, pid, os.WEXITED | os.WNOWAIT)


@both_containments
async def test_it_says_what_its_worker_enforces(tmp_path: Path, containment: Containment):
    async with UdsRunner.running(limits=LIMITS, containment=containment) as runner:
        port: Runner = runner
        assert port.facts.containment is containment
        assert Path(f"/proc/{runner.worker_pid}").exists()
        assert runner.worker_pid != os.getpid()


@both_containments
async def test_commands_are_the_workers_children_and_not_ours(
    tmp_path: Path, containment: Containment
):
    token = new_token()
    async with UdsRunner.running(limits=LIMITS, containment=containment) as runner:
        await Commands(runner, root_at(tmp_path)).start("sleep", f"3600.{token}")
        ours = Path(f"/proc/self/task/{os.getpid()}/children").read_text(encoding="ascii").split()
        assert not set(living(token)) & set(map(int, ours))
        assert living(token)


async def test_limits_are_the_workers_too(tmp_path: Path):
    async with UdsRunner.running(limits=LIMITS, containment=Containment.KEEPER) as runner:
        run = Commands(runner, root_at(tmp_path))
        process_id = await run.start("cat")
        with pytest.raises(CodeSpaceError) as caught:
            await runner.write(process_id, bytes(LIMITS.stdin_max_bytes + 1), close=False)
        assert caught.value.details["maximum"] == LIMITS.stdin_max_bytes
        with pytest.raises(CodeSpaceError) as caught:
            await run.start("x" * (LIMITS.argument_max_bytes + 1))
        assert code_of(caught) == "LIMIT_EXCEEDED"


async def test_the_longest_command_line_and_input_pass(tmp_path: Path):
    async with UdsRunner.running(limits=LIMITS, containment=None) as runner:
        run = Commands(runner, root_at(tmp_path))
        worst = "\x01" * (LIMITS.argument_max_bytes - 1)
        done = await run.run(
            "sh",
            "-c",
            'printf %s "$*" | wc -c',
            "sh",
            worst,
            worst,
            worst,
            environment={"PATH": "/usr/bin:/bin"},
        )
        assert int(done.text) == 3 * len(worst) + 2
        process_id = await run.start("wc", "-c")
        await runner.write(
            process_id, bytes(range(256)) * (LIMITS.stdin_max_bytes // 256), close=True
        )
        assert int((await run.finish(process_id)).text) == LIMITS.stdin_max_bytes


async def test_broken_unicode_is_refused_as_anywhere_and_the_worker_goes_on(tmp_path: Path):
    async with UdsRunner.running(limits=LIMITS, containment=None) as runner:
        run = Commands(runner, root_at(tmp_path))
        before = pid_of(runner)
        with pytest.raises(CodeSpaceError) as caught:
            await run.start("echo", "\ud800")
        assert code_of(caught) == "INVALID_COMMAND"
        assert (await run.run("echo", "\u2028")).text == "\u2028\n"
        assert pid_of(runner) == before


async def test_a_waiting_read_does_not_hold_others_up(tmp_path: Path):
    async with UdsRunner.running(limits=LIMITS, containment=None) as runner:
        run = Commands(runner, root_at(tmp_path))
        quiet = await run.start("cat")
        async with anyio.create_task_group() as tasks:
            for _ in range(50):
                tasks.start_soon(_read, runner, quiet)
            assert (await run.run("echo", "here")).text == "here\n"
            await runner.write(quiet, b"now", close=False)


async def _read(runner: UdsRunner, process_id: ProcessId) -> None:
    chunk = await runner.read(process_id, 0, max_bytes=100, wait_ms=30_000)
    assert chunk.text == "now"


async def test_a_new_worker_comes_with_the_next_command_and_for_nothing_else(tmp_path: Path):
    async with UdsRunner.running(limits=LIMITS, containment=None) as runner:
        run = Commands(runner, root_at(tmp_path))
        old, first = await run.start("sleep", "60"), pid_of(runner)
        kill(runner)
        for ask in (
            runner.status(old),
            runner.read(old, 0, max_bytes=10),
            runner.write(old, b"x", close=False),
            runner.resize(old, 2, 2),
            runner.terminate(old),
        ):
            with pytest.raises((CodeSpaceError, RunnerLostError)) as caught:
                await ask
            if isinstance(caught.value, CodeSpaceError):
                assert caught.value.code is ErrorCode.PROCESS_NOT_FOUND
        assert runner.worker_pid is None
        assert (await run.run("echo", "again")).text == "again\n"
        assert pid_of(runner) != first
        with pytest.raises(CodeSpaceError) as refused:
            await runner.status(old)
        assert code_of(refused) == "PROCESS_NOT_FOUND"


async def test_many_commands_after_a_loss_share_one_new_worker(tmp_path: Path):
    async with UdsRunner.running(limits=LIMITS, containment=None) as runner:
        run = Commands(runner, root_at(tmp_path))
        kill(runner)
        pids: set[int] = set()

        async def one() -> None:
            assert (await run.run("echo", "x")).text == "x\n"
            pids.add(pid_of(runner))

        async with anyio.create_task_group() as tasks:
            for _ in range(8):
                tasks.start_soon(one)
        assert len(pids) == 1


async def test_a_later_worker_enforces_no_less_than_was_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    async with UdsRunner.running(limits=LIMITS, containment=None) as runner:
        said = runner.facts
        if said.containment is not Containment.PID_NAMESPACE:
            pytest.skip("there is nothing to fall back from here")
        (tmp_path / "bwrap").write_text("#!/bin/sh\necho bubblewrap 99\n[ $# = 1 ]\n", "utf-8")
        (tmp_path / "bwrap").chmod(0o755)
        monkeypatch.setattr(runner, "_search_path", str(tmp_path))
        monkeypatch.setattr(
            "codespace.runner.child._BEGIN",
            "import sys; sys.path[:] = sys.argv[1:];"
            " from codespace.runner import sandbox, worker;"
            " sandbox._packaged = lambda: None; worker.main()",
        )
        kill(runner)
        with pytest.raises(CodeSpaceError) as caught:
            await Commands(runner, root_at(tmp_path)).start("true")
        assert code_of(caught) == "PROCESS_SPAWN_FAILED"
        assert runner.facts == said


async def test_a_worker_that_does_not_come_up_is_a_failed_spawn_and_leaves_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
):
    monkeypatch.setattr("codespace.runner.child._BEGIN", "raise SystemExit(3)")
    before = descriptors()
    with pytest.raises(CodeSpaceError) as caught:
        await UdsRunner.open(limits=LIMITS)
    assert code_of(caught) == "PROCESS_SPAWN_FAILED"
    assert "no worker process came up" in caplog.text
    assert descriptors() == before


@pytest.mark.requirement("runner.handshake")
async def test_a_worker_of_another_version_is_not_taken_in(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
):
    monkeypatch.setattr(
        "codespace.runner.child._BEGIN",
        "import sys; sys.path[:] = sys.argv[1:];"
        " from codespace.runner import handshake, worker; handshake.VERSION += 1; worker.main()",
    )
    with pytest.raises(CodeSpaceError) as caught:
        await UdsRunner.open(limits=LIMITS)
    assert code_of(caught) == "PROCESS_SPAWN_FAILED"
    assert "a worker of version" in caplog.text


async def test_a_worker_that_says_what_is_no_message_is_ended(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
):
    # Each later answer is noise: the first after the opening is the one to a start.
    monkeypatch.setattr(
        "codespace.runner.child._BEGIN",
        "import sys; sys.path[:] = sys.argv[1:];"
        " from codespace.runner import channel, worker;"
        " worker.answer_json = lambda number, answer: {'id': 'noise'}; worker.main()",
    )
    async with UdsRunner.running(limits=LIMITS) as runner:
        with pytest.raises(RunnerLostError):
            await Commands(runner, root_at(tmp_path)).start("true")
        assert runner.worker_pid is None
    assert "the connection between gateway and worker ends" in caplog.text


@pytest.mark.parametrize("asked", ["start", "status"])
async def test_a_worker_that_does_not_answer_is_given_up_and_replaced(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, asked: str
):
    token, process_id = new_token(), ProcessId("proc-1")
    async with UdsRunner.running(limits=LIMITS) as runner:
        run = Commands(runner, root_at(tmp_path))
        await runner.start(run.request(process_id, "sleep", f"3600.{token}"))
        first = pid_of(runner)
        os.kill(first, signal.SIGSTOP)
        hurried = dataclasses.replace(LIMITS, process_start_ms=10)
        monkeypatch.setattr(runner, "_terms", Terms(hurried, runner.facts.containment))
        monkeypatch.setattr("codespace.runner.link.ANSWER_SECONDS", 0.2)
        monkeypatch.setattr("codespace.runner.link._SECOND_LOOK_SECONDS", 0.1)
        ask = run.start("true") if asked == "start" else runner.status(process_id)
        with pytest.raises((RunnerLostError, CodeSpaceError)) as caught:
            await ask
        assert (caught.type is RunnerLostError) is (asked == "start")
        assert not living(token)
        monkeypatch.undo()
        assert (await run.run("echo", "again")).text == "again\n"
        assert pid_of(runner) != first
    assert "the worker process does not answer" in caplog.text


@both_containments
async def test_closing_ends_the_worker_and_leaves_no_descriptor(
    tmp_path: Path, containment: Containment
):
    before, token = descriptors(), new_token()
    runner = await UdsRunner.open(limits=LIMITS, containment=containment)
    worker = pid_of(runner)
    await Commands(runner, root_at(tmp_path)).start("sh", "-c", f"setsid sleep 3600.{token} & cat")
    await until(lambda: bool(living(token)), "it runs")
    async with anyio.create_task_group() as tasks:
        for _ in range(2):
            tasks.start_soon(runner.close)
    assert not living(token)
    assert not Path(f"/proc/{worker}").exists()
    assert descriptors() == before
    with pytest.raises(CodeSpaceError) as caught:
        await Commands(runner, root_at(tmp_path)).start("true")
    assert "shutting down" in caught.value.message
    with pytest.raises(CodeSpaceError) as caught:
        await runner.status(ProcessId("proc-any"))
    assert code_of(caught) == "PROCESS_NOT_FOUND"


async def test_who_waits_for_an_end_hears_of_it_when_the_runner_closes(tmp_path: Path):
    async with UdsRunner.running(limits=LIMITS) as runner:
        process_id = await Commands(runner, root_at(tmp_path)).start("sleep", "60")
        told: list[str | None] = []

        async def wait() -> None:
            told.append((await runner.status(process_id, wait_ms=30_000)).termination)

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(wait)
            await runner.read(process_id, 0, max_bytes=1)
            await runner.close()
    assert told == ["terminated"]


async def test_closing_a_lost_runner_is_fine(tmp_path: Path):
    async with UdsRunner.running(limits=LIMITS) as runner:
        kill(runner)


def test_it_works_under_uvloop_too(tmp_path: Path):
    async def session() -> None:
        async with UdsRunner.running(limits=LIMITS) as runner:
            run = Commands(runner, root_at(tmp_path))
            assert (await run.run("echo", "one")).text == "one\n"
            kill(runner)
            assert (await run.run("echo", "two")).text == "two\n"

    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(session())


def test_facts_are_there_only_once_it_is_open():
    async def look() -> RunnerFacts:
        runner = await UdsRunner.open(limits=LIMITS, containment=Containment.KEEPER)
        await runner.close()
        return runner.facts

    assert asyncio.run(look()).containment is Containment.KEEPER
