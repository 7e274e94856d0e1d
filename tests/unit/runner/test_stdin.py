"""Standard input: all of it or a truthful error, in turn, and never a blocked loop."""

import dataclasses
import os
from pathlib import Path

import anyio
import pytest

from codespace.domain.errors import CodeSpaceError
from codespace.domain.sizes import KIB
from codespace.runner.api import Containment
from codespace.runner.stdin import StandardInput
from programs.running import LIMITS, both_containments, code_of, commands

pytestmark = pytest.mark.anyio

COUNT = ("sh", "-c", "echo up; wc -c")


@both_containments
async def test_a_command_reads_what_was_written_until_it_is_closed(
    tmp_path: Path, containment: Containment
):
    async with commands(containment, tmp_path) as run:
        process_id = await run.start("cat")
        await run.runner.write(process_id, b"one\n", close=False)
        assert await run.read_until(process_id, "\n") == "one\n"
        await run.runner.write(process_id, b"two\n", close=True)
        done = await run.finish(process_id)
    assert (done.text, done.state.exit_code) == ("one\ntwo\n", 0)


@both_containments
async def test_closing_needs_no_data(tmp_path: Path, containment: Containment):
    async with commands(containment, tmp_path) as run:
        process_id = await run.start("cat")
        await run.runner.write(process_id, b"", close=True)
        assert (await run.finish(process_id)).state.exit_code == 0


@both_containments
async def test_a_large_input_arrives_whole(tmp_path: Path, containment: Containment):
    limits = dataclasses.replace(LIMITS, stdin_timeout_ms=20_000)
    data = os.urandom(LIMITS.stdin_max_bytes)
    (tmp_path / "expected").write_bytes(data)
    async with commands(containment, tmp_path, limits) as run:
        process_id = await run.start("cmp", "-", "expected")
        await run.runner.write(process_id, data, close=True)
        done = await run.finish(process_id)
    assert (done.text, done.state.exit_code) == ("", 0)


@both_containments
async def test_more_than_one_call_may_bring_is_refused_whole(
    tmp_path: Path, containment: Containment
):
    async with commands(containment, tmp_path) as run:
        process_id = await run.start(*COUNT)
        with pytest.raises(CodeSpaceError) as caught:
            await run.runner.write(process_id, bytes(LIMITS.stdin_max_bytes + 1), close=True)
        assert code_of(caught) == "LIMIT_EXCEEDED"
        assert caught.value.details["limit"] == "stdin_max_bytes"
        await run.runner.write(process_id, b"", close=True)
        assert (await run.finish(process_id)).text.split() == ["up", "0"]


@both_containments
async def test_a_process_that_never_reads_is_a_timeout_that_tells_what_it_took(
    tmp_path: Path, containment: Containment
):
    async with commands(containment, tmp_path) as run:
        process_id = await run.start("sleep", "60")
        with pytest.raises(CodeSpaceError) as caught:
            await run.runner.write(process_id, bytes(1_000_000), close=True)
        assert code_of(caught) == "TIMEOUT"
        written = caught.value.details["written"]
    assert isinstance(written, int)
    assert 0 < written < 1_000_000


@both_containments
async def test_what_a_timeout_says_was_written_is_what_arrives(
    tmp_path: Path, containment: Containment
):
    async with commands(containment, tmp_path) as run:
        process_id = await run.start("sh", "-c", "until [ -e go ]; do sleep 0.02; done; wc -c")
        with pytest.raises(CodeSpaceError) as caught:
            await run.runner.write(process_id, bytes(1_000_000), close=False)
        assert code_of(caught) == "TIMEOUT"
        (tmp_path / "go").touch()
        await run.runner.write(process_id, b"", close=True)
        assert (await run.finish(process_id)).text.strip() == str(caught.value.details["written"])


@both_containments
async def test_writers_take_turns_and_mix_nothing(tmp_path: Path, containment: Containment):
    limits = dataclasses.replace(LIMITS, stdin_timeout_ms=20_000)
    letters = b"abcdefgh"
    size = 200 * KIB
    async with commands(containment, tmp_path, limits) as run:
        process_id = await run.start("sh", "-c", "tr -s a-h")
        async with anyio.create_task_group() as group:
            for letter in letters:

                async def write(data: bytes = bytes([letter]) * size) -> None:
                    await run.runner.write(process_id, data, close=False)

                group.start_soon(write)
        await run.runner.write(process_id, b"", close=True)
        assert sorted((await run.finish(process_id)).text.encode()) == sorted(letters)


@both_containments
async def test_a_writer_that_gets_no_turn_in_time_wrote_nothing(
    tmp_path: Path, containment: Containment
):
    errors: list[CodeSpaceError] = []
    async with commands(containment, tmp_path) as run, anyio.create_task_group() as group:
        process_id = await run.start("sleep", "60")

        async def write() -> None:
            with pytest.raises(CodeSpaceError) as caught:
                await run.runner.write(process_id, bytes(1_000_000), close=False)
            errors.append(caught.value)

        group.start_soon(write)
        group.start_soon(write)
    assert [error.code.value for error in errors] == ["TIMEOUT", "TIMEOUT"]
    assert 0 in [error.details["written"] for error in errors]


@both_containments
@pytest.mark.parametrize("tty", [False, True])
async def test_after_the_end_and_after_closing_nothing_is_taken(
    tmp_path: Path, containment: Containment, *, tty: bool
):
    async with commands(containment, tmp_path) as run:
        ended = await run.start("true", tty=tty)
        await run.end(ended)
        closed = await run.start("sh", "-c", "cat; sleep 60", tty=tty)
        await run.runner.write(closed, b"x\n", close=True)
        deaf = await run.start("sleep", "60", stdin="null")
        for process_id in (ended, closed, deaf):
            with pytest.raises(CodeSpaceError) as caught:
                await run.runner.write(process_id, b"more", close=False)
            assert code_of(caught) == "PROCESS_EXITED"


@both_containments
async def test_a_writer_learns_of_the_end_at_once(tmp_path: Path, containment: Containment):
    limits = dataclasses.replace(LIMITS, stdin_timeout_ms=1_000_000)
    async with commands(containment, tmp_path, limits) as run:
        process_id = await run.start("sleep", "60", time_limit_ms=200)
        with pytest.raises(CodeSpaceError) as caught:
            await run.runner.write(process_id, bytes(1_000_000), close=False)
    assert code_of(caught) == "PROCESS_EXITED"
    assert caught.value.details["written"]


@both_containments
async def test_a_cancelled_writer_frees_its_turn(tmp_path: Path, containment: Containment):
    async with commands(containment, tmp_path) as run:
        process_id = await run.start("sh", "-c", "until [ -e go ]; do sleep 0.02; done; wc -c")
        with anyio.move_on_after(0.05):
            await run.runner.write(process_id, bytes(1_000_000), close=False)
        (tmp_path / "go").touch()
        await run.runner.write(process_id, b"", close=True)
        assert int((await run.finish(process_id)).text) > 0


async def test_a_reader_that_is_gone_means_closed():
    reader, writer = os.pipe()
    stdin = StandardInput(writer, terminal=False, limits=LIMITS)
    os.close(reader)
    for _ in range(2):
        with pytest.raises(CodeSpaceError) as caught:
            await stdin.write(b"x", close=False)
        assert code_of(caught) == "PROCESS_EXITED"
    with pytest.raises(OSError, match="Bad file descriptor"):
        os.fstat(writer)


@both_containments
async def test_a_terminals_long_line_is_refused_whole(tmp_path: Path, containment: Containment):
    async with commands(containment, tmp_path) as run:
        process_id = await run.start("sh", "-c", "stty -echo; echo up; wc -c", tty=True)
        await run.read_until(process_id, "up")
        for data in (b"x" * 4_096, b"short\n" + b"x" * 5_000 + b"\nshort\n"):
            with pytest.raises(CodeSpaceError) as caught:
                await run.runner.write(process_id, data, close=False)
            assert code_of(caught) == "LIMIT_EXCEEDED"
            assert caught.value.details["limit"] == "tty_line_max_bytes"
        await run.runner.write(process_id, b"x" * 4_000, close=False)
        with pytest.raises(CodeSpaceError) as caught:
            await run.runner.write(process_id, b"x" * 96, close=False)
        assert code_of(caught) == "LIMIT_EXCEEDED"
        await run.runner.write(process_id, b"x" * 95 + b"\n", close=True)
        assert (await run.finish(process_id)).text.split()[-1] == "4096"


@both_containments
async def test_many_short_lines_reach_a_terminal_whole(tmp_path: Path, containment: Containment):
    limits = dataclasses.replace(LIMITS, stdin_timeout_ms=20_000)
    async with commands(containment, tmp_path, limits) as run:
        process_id = await run.start("sh", "-c", "stty -echo; echo up; wc -c", tty=True)
        await run.read_until(process_id, "up")
        await run.runner.write(process_id, b"123456789\n" * 10_000, close=True)
        assert (await run.finish(process_id)).text.split()[-1] == "100000"


@both_containments
async def test_a_terminal_without_lines_takes_any_length(tmp_path: Path, containment: Containment):
    limits = dataclasses.replace(LIMITS, stdin_timeout_ms=20_000)
    async with commands(containment, tmp_path, limits) as run:
        process_id = await run.start(
            "sh", "-c", "stty raw -echo; echo up; head -c 50000 | wc -c", tty=True
        )
        await run.read_until(process_id, "up")
        await run.runner.write(process_id, b"x" * 50_000, close=False)
        assert (await run.finish(process_id)).text.split()[-1] == "50000"


@both_containments
@pytest.mark.parametrize("typed", [b"", b"line\n", b"started"])
async def test_closing_a_terminal_is_an_end_of_file_and_no_hang_up(
    tmp_path: Path, containment: Containment, typed: bytes
):
    async with commands(containment, tmp_path) as run:
        process_id = await run.start(
            "sh", "-c", "trap 'echo HUNG UP' HUP; stty -echo; echo up; wc -c; echo then", tty=True
        )
        await run.read_until(process_id, "up")
        await run.runner.write(process_id, typed, close=True)
        done = await run.finish(process_id)
    assert done.text.split()[-2:] == [str(len(typed)), "then"]
    assert "HUNG UP" not in done.text


@both_containments
async def test_another_end_of_file_character_is_respected(tmp_path: Path, containment: Containment):
    async with commands(containment, tmp_path) as run:
        process_id = await run.start("sh", "-c", "stty -echo eof ^B; echo up; wc -c", tty=True)
        await run.read_until(process_id, "up")
        await run.runner.write(process_id, b"", close=True)
        assert (await run.finish(process_id)).text.split()[-1] == "0"


@both_containments
async def test_an_interrupt_typed_at_a_terminal_reaches_a_plain_program(
    tmp_path: Path, containment: Containment
):
    async with commands(containment, tmp_path) as run:
        process_id = await run.start("sh", "-c", "echo up; exec sleep 60", tty=True)
        await run.read_until(process_id, "up")
        await run.runner.write(process_id, b"\x03", close=False)
        state = (await run.finish(process_id)).state
    assert (state.termination, state.exit_code, state.signal) == ("exited", None, 2)
