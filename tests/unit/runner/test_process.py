"""The truth about one process: how it ended, who is told when, and what pacing promises."""

import contextlib
import dataclasses
import os
import signal
from pathlib import Path

import anyio
import pytest

from codespace.domain.errors import CodeSpaceError
from codespace.domain.sizes import KIB, MIB
from codespace.runner.api import Containment, OutputChunk, ProcessState
from programs.running import LIMITS, both_containments, code_of, commands, living, new_token, until

pytestmark = pytest.mark.anyio


@both_containments
@pytest.mark.parametrize("tty", [False, True])
async def test_a_running_process_has_no_ending_yet(
    tmp_path: Path, containment: Containment, *, tty: bool
):
    async with commands(containment, tmp_path) as run:
        process_id = await run.start("sh", "-c", "printf abc; sleep 60", tty=tty)
        await run.read_until(process_id, "abc")
        state = await run.runner.status(process_id)
    assert state == ProcessState(running=True, output_total=3, output_retained_from=0, eof=False)


@both_containments
@pytest.mark.parametrize("tty", [False, True])
@pytest.mark.parametrize("code", [0, 1, 125, 126, 127, 128, 137, 255])
async def test_every_exit_code_is_told_as_it_was(
    tmp_path: Path, containment: Containment, *, tty: bool, code: int
):
    async with commands(containment, tmp_path) as run:
        state = (await run.run("sh", "-c", f"exit {code}", tty=tty)).state
    assert (state.termination, state.exit_code, state.signal) == ("exited", code, None)


@both_containments
@pytest.mark.parametrize("tty", [False, True])
async def test_a_signal_that_nobody_here_sent_is_no_exit_code(
    tmp_path: Path, containment: Containment, *, tty: bool
):
    async with commands(containment, tmp_path) as run:
        state = (await run.run("sh", "-c", "kill -ABRT $$", tty=tty)).state
    assert (state.termination, state.exit_code, state.signal) == ("exited", None, signal.SIGABRT)


@both_containments
@pytest.mark.parametrize(("intent", "limit"), [("terminated", 30_000), ("timeout", 400)])
async def test_a_clean_exit_within_the_grace_is_still_what_was_intended(
    tmp_path: Path, containment: Containment, intent: str, limit: int
):
    text = "trap 'echo bye; exit 0' TERM; echo up; while :; do sleep 0.01; done"
    async with commands(containment, tmp_path) as run:
        process_id = await run.start("sh", "-c", text, time_limit_ms=limit)
        await run.read_until(process_id, "up")
        if intent == "terminated":
            await run.runner.terminate(process_id)
        done = await run.finish(process_id)
    assert done.text.endswith("bye\n")  # the shell may tell of its own child before
    assert (done.state.termination, done.state.exit_code) == (intent, None)


@both_containments
async def test_every_process_of_the_subtree_is_asked_to_end_first(
    tmp_path: Path, containment: Containment
):
    limits = dataclasses.replace(LIMITS, terminate_grace_ms=10_000)
    text = "trap 'echo $0 asked; exit 0' TERM; echo $0 up; while :; do sleep 0.01; done"
    async with commands(containment, tmp_path, limits) as run:
        process_id = await run.start(
            "sh", "-c", f'setsid sh -c "$1" child & {text}', "leader", text
        )
        seen = await run.read_until(process_id, "leader up")
        if "child up" not in seen:
            await run.read_until(process_id, "child up", len(seen))
        await run.runner.terminate(process_id)
        done = await run.finish(process_id)
    # The leader may go first: that takes the grace from nobody.
    assert "leader asked\n" in done.text
    assert "child asked\n" in done.text
    assert done.state.termination == "terminated"


@both_containments
async def test_the_first_intent_stays(tmp_path: Path, containment: Containment):
    async with commands(containment, tmp_path) as run:
        process_id = await run.start(
            "sh", "-c", "trap '' TERM; echo up; sleep 9; sleep 9", time_limit_ms=400
        )
        await run.read_until(process_id, "up")
        await run.runner.terminate(process_id)
        assert (await run.end(process_id)).termination == "terminated"


@both_containments
async def test_a_stopped_command_can_still_end_itself_in_the_grace(
    tmp_path: Path, containment: Containment
):
    limits = dataclasses.replace(LIMITS, terminate_grace_ms=10_000)
    async with commands(containment, tmp_path, limits) as run:
        process_id = await run.start(
            "sh", "-c", "trap 'echo bye; exit 0' TERM; echo up; kill -STOP $$"
        )
        await run.read_until(process_id, "up")
        await run.runner.terminate(process_id)
        assert "bye" in (await run.finish(process_id)).text


@both_containments
async def test_without_grace_the_end_comes_at_once(tmp_path: Path, containment: Containment):
    limits = dataclasses.replace(LIMITS, terminate_grace_ms=0)
    async with commands(containment, tmp_path, limits) as run:
        process_id = await run.start("sh", "-c", "trap '' TERM; echo up; sleep 60; sleep 60")
        await run.read_until(process_id, "up")
        await run.runner.terminate(process_id)
        assert (await run.end(process_id)).termination == "terminated"


@both_containments
async def test_all_who_wait_are_woken_by_news(tmp_path: Path, containment: Containment):
    chunks: list[OutputChunk] = []
    states: list[ProcessState] = []
    async with commands(containment, tmp_path) as run, anyio.create_task_group() as group:
        process_id = await run.start("sh", "-c", "read line; echo $line; exit 3")

        async def read() -> None:
            chunks.append(await run.runner.read(process_id, 0, max_bytes=100, wait_ms=20_000))

        async def wait() -> None:
            states.append(await run.runner.status(process_id, wait_ms=20_000))

        for _ in range(20):
            group.start_soon(read)
            group.start_soon(wait)
        await anyio.wait_all_tasks_blocked()
        assert (chunks, states) == ([], [])
        await run.runner.write(process_id, b"news\n", close=False)
    assert [chunk.text for chunk in chunks] == ["news\n"] * 20
    assert [state.exit_code for state in states] == [3] * 20


@both_containments
async def test_waiting_ends_with_its_time_and_without_news(
    tmp_path: Path, containment: Containment
):
    async with commands(containment, tmp_path) as run:
        process_id = await run.start("sleep", "60")
        chunk = await run.runner.read(process_id, 0, max_bytes=100, wait_ms=30)
        state = await run.runner.status(process_id, wait_ms=30)
    assert (chunk.text, chunk.cursor, chunk.eof, state.running) == ("", 0, False, True)


async def test_waiting_is_bounded_by_the_limit(tmp_path: Path):
    limits = dataclasses.replace(LIMITS, wait_max_ms=20)
    async with commands(None, tmp_path, limits) as run:
        process_id = await run.start("sleep", "60")
        with anyio.fail_after(20):
            await run.runner.read(process_id, 0, max_bytes=100, wait_ms=1_000_000)
            assert (await run.runner.status(process_id, wait_ms=1_000_000)).running


@both_containments
async def test_on_an_ended_process_nobody_waits(tmp_path: Path, containment: Containment):
    async with commands(containment, tmp_path) as run:
        process_id = await run.start("true")
        await run.finish(process_id)
        with anyio.fail_after(5):
            chunk = await run.runner.read(process_id, 99, max_bytes=100, wait_ms=30_000)
            assert not (await run.runner.status(process_id, wait_ms=30_000)).running
    assert (chunk.cursor, chunk.eof) == (0, True)


@both_containments
async def test_the_last_bytes_are_kept_and_the_loss_is_told(
    tmp_path: Path, containment: Containment
):
    limits = dataclasses.replace(LIMITS, output_kept_bytes=1_000)
    async with commands(containment, tmp_path, limits) as run:
        process_id = await run.start("seq", "100000")
        state = await run.end(process_id)
        chunk = await run.runner.read(process_id, 0, max_bytes=1 << 20, wait_ms=1_000)
    assert state.output_total == 588_895
    assert (chunk.cursor, chunk.retained_from) == (588_895, 587_895)
    assert chunk.output_lost
    assert chunk.text.endswith("99999\n100000\n")
    assert len(chunk.text) == 1_000


@both_containments
async def test_a_paced_command_loses_nothing_and_waits_for_its_reader(
    tmp_path: Path, containment: Containment
):
    limits = dataclasses.replace(LIMITS, output_kept_bytes=10_000)
    async with commands(containment, tmp_path, limits) as run:
        process_id = await run.start("seq", "100000", paced=True)
        held = await run.runner.status(process_id, wait_ms=300)
        text = await run.read_all(process_id)
        state = await run.runner.status(process_id)
    assert held.running
    assert held.output_total == 10_000
    assert text.splitlines() == [str(number) for number in range(1, 100_001)]
    assert (state.exit_code, state.output_total) == (0, len(text))


@both_containments
async def test_a_paced_commands_last_output_can_be_read_after_its_end(
    tmp_path: Path, containment: Containment
):
    limits = dataclasses.replace(LIMITS, output_kept_bytes=1_000)
    async with commands(containment, tmp_path, limits) as run:
        process_id = await run.start("seq", "5000", paced=True)
        state = await run.end(process_id)
        assert (state.exit_code, state.eof) == (0, False)
        text = await run.read_all(process_id)
        assert (await run.runner.status(process_id)).eof
    assert text.splitlines() == [str(number) for number in range(1, 5_001)]


@both_containments
async def test_a_paced_command_that_nobody_reads_can_be_ended(
    tmp_path: Path, containment: Containment
):
    async with commands(containment, tmp_path) as run:
        process_id = await run.start("yes", paced=True, time_limit_ms=300)
        state = await run.end(process_id)
    assert state.termination == "timeout"
    assert state.output_total == LIMITS.output_kept_bytes


@both_containments
async def test_any_bytes_come_as_text(tmp_path: Path, containment: Containment):
    async with commands(containment, tmp_path) as run:
        done = await run.run("printf", r"a\000\377\033[1m\r\342\202")
    assert done.text == "a\0\N{REPLACEMENT CHARACTER}\x1b[1m\r\N{REPLACEMENT CHARACTER}"


@both_containments
@pytest.mark.parametrize(
    "source", ["/dev/zero", "tr '\\0' '\\377' </dev/zero", "tr '\\0' x </dev/zero"]
)
async def test_a_line_of_a_hundred_megabytes_is_no_trouble(
    tmp_path: Path, containment: Containment, source: str
):
    size = 100 * MIB
    command = f"cat {source}" if source.startswith("/") else source
    async with commands(containment, tmp_path) as run:
        process_id = await run.start("sh", "-c", f"{command} | head -c {size}")
        state = await run.end(process_id)
        chunk = await run.runner.read(
            process_id, size - 64 * KIB, max_bytes=64 * KIB, wait_ms=1_000
        )
    assert (state.output_total, state.exit_code) == (size, 0)
    assert chunk.text


@both_containments
async def test_the_loop_stays_quick_while_commands_print_without_pause(
    tmp_path: Path, containment: Containment
):
    async with commands(containment, tmp_path) as run:
        for _ in range(8):
            await run.start("yes")
        with anyio.fail_after(20):
            for _ in range(200):
                await anyio.sleep(0.001)


@both_containments
async def test_resizing_needs_a_terminal_a_live_process_and_a_sane_size(
    tmp_path: Path, containment: Containment
):
    async with commands(containment, tmp_path) as run:
        piped = await run.start("sleep", "60")
        typed = await run.start("sleep", "60", tty=True)
        ended = await run.start("true", tty=True)
        await run.end(ended)
        for process_id, rows, columns, code in (
            (piped, 24, 80, "NOT_A_TTY"),
            (ended, 24, 80, "PROCESS_EXITED"),
            (typed, 0, 80, "INVALID_ARGUMENT"),
            (typed, 24, 1_001, "INVALID_ARGUMENT"),
            (typed, -1, 80, "INVALID_ARGUMENT"),
        ):
            with pytest.raises(CodeSpaceError) as caught:
                await run.runner.resize(process_id, rows, columns)
            assert code_of(caught) == code
        await run.runner.resize(typed, 1, 1)
        await run.runner.resize(typed, 1_000, 1_000)


@both_containments
async def test_output_that_a_stranger_holds_open_ends_soon_after_the_process(
    tmp_path: Path, containment: Containment
):
    # A process that is not below the command keeps the writing end, as a server might that was
    # handed it over a socket.
    async with commands(containment, tmp_path) as run:
        process_id = await run.start("sh", "-c", "readlink /proc/self/fd/1; read _")
        said = await run.read_until(process_id, "\n")
        stranger = _open_for_writing(said.strip())
        try:
            await run.runner.write(process_id, b"\n", close=False)
            state = await run.end(process_id)
            assert not state.eof
            with anyio.fail_after(15):
                chunk = await run.runner.read(process_id, len(said), max_bytes=10, wait_ms=10_000)
            assert chunk.eof
        finally:
            os.close(stranger)


def _open_for_writing(pipe: str) -> int:
    for entry in Path("/proc/self/fd").iterdir():
        with contextlib.suppress(OSError):
            if entry.readlink() == Path(pipe):
                return os.open(entry, os.O_WRONLY | os.O_NONBLOCK)
    raise AssertionError("the gateway does not hold the command's output")


@both_containments
async def test_a_deaf_command_is_gone_after_the_grace(tmp_path: Path, containment: Containment):
    token = new_token()
    async with commands(containment, tmp_path) as run:
        process_id = await run.start(
            "sh", "-c", f"trap '' TERM; sleep 3600.{token}; sleep 3600.{token}"
        )
        await until(lambda: len(living(token)) >= 2, "the command runs")
        await run.runner.terminate(process_id)
        await run.end(process_id)
        assert not living(token)
