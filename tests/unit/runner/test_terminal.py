"""Pseudo-terminals: what a command finds, and how long a typed line gets."""

import os
import signal
import termios
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from codespace.runner.api import Containment
from codespace.runner.terminal import TypedLine, end_of_file, is_canonical, open_terminal, set_size
from programs.running import both_containments, commands

PIECES = st.lists(st.text(alphabet="ab\n\r\x03\x04", max_size=6).map(str.encode), max_size=8)


@pytest.mark.anyio
@both_containments
async def test_a_terminal_is_one_of_24_rows_and_80_columns_and_controls_the_command(
    tmp_path: Path, containment: Containment
):
    async with commands(containment, tmp_path) as run:
        done = await run.run(
            "sh",
            "-c",
            "for f in 0 1 2; do test -t $f && echo $f; done; stty size </dev/tty",
            tty=True,
        )
    assert done.text == "0\r\n1\r\n2\r\n24 80\r\n"


@pytest.mark.anyio
@both_containments
async def test_without_a_terminal_there_is_none(tmp_path: Path, containment: Containment):
    text = "for f in 0 1 2; do test -t $f && echo $f; done; (: </dev/tty) 2>/dev/null || echo none"
    async with commands(containment, tmp_path) as run:
        assert (await run.run("sh", "-c", text)).text == "none\n"


@pytest.mark.anyio
@both_containments
async def test_a_new_size_is_told_to_the_command(tmp_path: Path, containment: Containment):
    text = "trap 'stty size; exit 0' WINCH; echo up; while :; do sleep 0.02; done"
    async with commands(containment, tmp_path) as run:
        process_id = await run.start("bash", "-c", text, tty=True)
        await run.read_until(process_id, "up")
        await run.runner.resize(process_id, 50, 132)
        assert (await run.finish(process_id)).text == "up\r\n50 132\r\n"


@pytest.mark.anyio
@both_containments
async def test_an_interrupt_ends_the_foreground_and_not_the_shell(
    tmp_path: Path, containment: Containment
):
    async with commands(containment, tmp_path) as run:
        process_id = await run.start(
            "bash", "--norc", "-i", tty=True, environment={"PATH": "/usr/bin:/bin", "PS1": "> "}
        )
        await run.read_until(process_id, "> ")
        # The job itself says that it runs, and is one process: of a shell with a child, the child
        # would swallow an interrupt that came before it became another program.
        await run.runner.write(process_id, b"sh -c 'echo s\"\"tart; exec sleep 60'\n", close=False)
        await run.read_until(process_id, "start\r\n")
        await run.runner.write(process_id, b"\x03", close=False)
        await run.read_until(process_id, "^C\r\n> ")
        await run.runner.write(process_id, b"echo rc=$?; exit 9\n", close=False)
        done = await run.finish(process_id)
    assert f"rc={128 + signal.SIGINT}" in done.text
    assert done.state.exit_code == 9


@pytest.mark.anyio
@both_containments
async def test_job_control_works(tmp_path: Path, containment: Containment):
    async with commands(containment, tmp_path) as run:
        process_id = await run.start(
            "bash", "-c", "set -m; sleep 0.05 & jobs; fg >/dev/null; echo rc=$?", tty=True
        )
        done = await run.finish(process_id)
    assert "Running" in done.text
    assert "rc=0" in done.text


@pytest.mark.anyio
@both_containments
async def test_closing_all_of_a_terminal_is_no_end_while_the_command_lives(
    tmp_path: Path, containment: Containment
):
    text = "exec </dev/null >/dev/null 2>&1; sleep 0.2; echo back >/dev/tty; exit 4"
    async with commands(containment, tmp_path) as run:
        done = await run.run("sh", "-c", text, tty=True)
    assert (done.text, done.state.exit_code, done.state.signal) == ("back\r\n", 4, None)


def test_neither_side_is_inherited():
    for side in (sides := open_terminal()):
        assert not os.get_inheritable(side)
    for side in sides:
        os.close(side)


def test_the_line_discipline_is_read_from_our_side():
    ours, theirs = open_terminal()
    assert is_canonical(ours)
    assert end_of_file(ours) == b"\x04"
    settings = termios.tcgetattr(theirs)
    settings[3] &= ~termios.ICANON
    termios.tcsetattr(theirs, termios.TCSANOW, settings)
    assert not is_canonical(ours)
    set_size(ours, 7, 9)
    assert os.get_terminal_size(theirs) == (9, 7)
    os.close(theirs)
    os.close(ours)


def test_what_is_no_terminal_collects_no_lines():
    reader, writer = os.pipe()
    assert not is_canonical(writer)
    assert end_of_file(writer) == b"\x04"
    os.close(reader)
    os.close(writer)


@given(PIECES)
def test_the_longest_line_is_that_of_all_that_was_typed(pieces: list[bytes]):
    line, whole, longest = TypedLine(), b"", 0
    for piece in pieces:
        longest = max(longest, line.longest_with(piece))
        line.add(piece)
        whole += piece
    for end in b"\r\x03\x04\x15\x1c":
        whole = whole.replace(bytes([end]), b"\n")
    assert longest == max(map(len, whole.split(b"\n")))
    assert line.length == len(whole.split(b"\n")[-1])
