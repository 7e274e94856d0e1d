"""`write_stdin`, terminals and `process_resize`."""

import pytest

from codespace.domain.errors import ErrorCode
from contract.session import Space

pytestmark = pytest.mark.anyio


@pytest.mark.requirement("stdin.ok")
async def test_what_is_written_arrives_and_close_ends_the_input(cell_space: Space) -> None:
    process_id = await cell_space.start("cat")
    write = cell_space.session.call
    assert (await write("write_stdin", process_id=process_id, data="ä\n")).body == {"ok": True}
    await cell_space.until_said(process_id, "ä\n")
    reply = await write("write_stdin", process_id=process_id, data="last", close=True)
    assert reply.body == {"ok": True}
    state = await cell_space.ended(process_id)
    assert state["exit_code"] == 0
    assert await cell_space.output(process_id) == "ä\nlast"


@pytest.mark.requirement("code.process-exited")
async def test_a_closed_input_and_an_ended_process_take_nothing_more(space: Space) -> None:
    process_id = await space.start_shell("cat >/dev/null; echo read all; sleep 60")
    write = {"process_id": process_id, "data": "x"}
    await space.session.call("write_stdin", **write, close=True)
    await space.until_said(process_id, "read all")
    await space.session.refused(ErrorCode.PROCESS_EXITED, "write_stdin", **write)
    await space.session.call("terminate_process", process_id=process_id)
    await space.ended(process_id)
    await space.session.refused(ErrorCode.PROCESS_EXITED, "write_stdin", **write)
    terminal = await space.start("true", tty=True)
    await space.ended(terminal)
    await space.session.refused(
        ErrorCode.PROCESS_EXITED, "process_resize", process_id=terminal, rows=10, cols=10
    )


@pytest.mark.requirement("stdin.bounded", "code.timeout")
@pytest.mark.slow
async def test_what_is_not_taken_in_time_is_a_timeout_with_what_was_written(
    space: Space,
) -> None:
    process_id = await space.start_shell("head -c 1000 >/dev/null; sleep 60")
    reply = await space.session.refused(
        ErrorCode.TIMEOUT, "write_stdin", process_id=process_id, data="x" * 900_000
    )
    assert 1_000 <= reply.number("details", "written") < 900_000
    await space.session.call("terminate_process", process_id=process_id)


@pytest.mark.requirement("code.limit-exceeded")
async def test_more_than_one_call_may_bring_is_refused(space: Space) -> None:
    process_id = await space.start("sleep", "60")
    reply = await space.session.refused(
        ErrorCode.LIMIT_EXCEEDED, "write_stdin", process_id=process_id, data="€" * 400_000
    )
    assert reply["details", "limit"] == "stdin_max_bytes"
    await space.session.call("terminate_process", process_id=process_id)


@pytest.mark.requirement("exec.tty")
async def test_a_terminal_has_24_rows_and_80_columns_and_a_pipe_is_none(space: Space) -> None:
    script = "if test -t 0 && test -t 1 && test -t 2; then stty size; else echo no terminal; fi"
    terminal = await space.start_shell(script, tty=True)
    assert await space.output(terminal) == "24 80\r\n"
    for arguments in ({}, {"tty": False}):
        pipe = await space.start_shell(script, **arguments)
        assert await space.output(pipe) == "no terminal\n"


@pytest.mark.requirement("exec.tty")
async def test_a_terminal_is_the_controlling_one_and_takes_control_characters(
    space: Space,
) -> None:
    process_id = await space.start_shell("tty; trap 'echo interrupted' INT; sleep 60", tty=True)
    await space.until_said(process_id, "\n")
    await space.session.call("write_stdin", process_id=process_id, data="\x03")
    await space.until_said(process_id, "interrupted")
    state = await space.ended(process_id)
    assert state["termination"] == "exited"


@pytest.mark.requirement("resize.ok")
async def test_a_resized_terminal_tells_its_process(cell_space: Space) -> None:
    process_id = await cell_space.start_shell("echo ready; read line; stty size", tty=True)
    await cell_space.until_said(process_id, "ready")
    resized = await cell_space.session.call(
        "process_resize", process_id=process_id, rows=50, cols=132
    )
    assert resized.body == {"ok": True, "rows": 50, "cols": 132}
    await cell_space.session.call("write_stdin", process_id=process_id, data="\n")
    await cell_space.until_said(process_id, "50 132")
    await cell_space.ended(process_id)


@pytest.mark.requirement("resize.ok", "code.invalid-argument")
async def test_a_terminal_has_1_to_1000_rows_and_columns(space: Space) -> None:
    process_id = await space.start("sleep", "60", tty=True)
    for rows, cols in ((1, 1), (1_000, 1_000)):
        await space.session.call("process_resize", process_id=process_id, rows=rows, cols=cols)
    for rows, cols, path in ((0, 80, "rows"), (24, 1_001, "cols"), (-1, 80, "rows")):
        reply = await space.session.refused(
            ErrorCode.INVALID_ARGUMENT,
            "process_resize",
            process_id=process_id,
            rows=rows,
            cols=cols,
        )
        assert reply["details", "path"] == path
    await space.session.call("terminate_process", process_id=process_id)


@pytest.mark.requirement("code.not-a-tty")
async def test_a_process_without_terminal_has_no_size(space: Space) -> None:
    process_id = await space.start("sleep", "60")
    resize = {"process_id": process_id, "rows": 10, "cols": 10}
    await space.session.refused(ErrorCode.NOT_A_TTY, "process_resize", **resize)
    await space.session.call("terminate_process", process_id=process_id)
