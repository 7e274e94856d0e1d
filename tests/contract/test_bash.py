import hashlib

import pytest

from codespace.domain.errors import ErrorCode
from contract.session import Space

pytestmark = pytest.mark.anyio


@pytest.mark.requirement("bash.fields", "bash.runs-to-the-end")
async def test_a_shell_text_runs_to_its_end(cell_space: Space) -> None:
    cell_space.write("list.txt", "b\na\n")
    reply = await cell_space.call("bash", command="sort < list.txt && echo err >&2; pwd -P")
    seconds = reply["wall_time_seconds"]
    assert isinstance(seconds, float)
    assert seconds >= 0
    assert reply.text("process_id").startswith("proc-")
    assert reply.body == {
        "output": f"a\nb\nerr\n{cell_space.root.resolve()}\n",
        "truncated": False,
        "exit_code": 0,
        "termination": "exited",
        "wall_time_seconds": seconds,
        "process_id": reply["process_id"],
    }


@pytest.mark.requirement("bash.non-zero-is-a-result", "bash.fields")
async def test_a_failing_command_is_a_result(space: Space) -> None:
    reply = await space.call("bash", command="echo said; exit 7")
    assert (reply["exit_code"], reply["termination"]) == (7, "exited")
    assert reply["output"] == "said\n"
    unknown = await space.call("bash", command="no-such-command")
    assert unknown["exit_code"] == 127
    wrong = await space.call("bash", command="if then (")
    assert wrong["exit_code"] == 2
    killed = await space.call("bash", command="kill -9 $$")
    assert (killed["termination"], killed["signal"]) == ("exited", 9)
    assert "exit_code" not in killed


@pytest.mark.requirement("bash.lines", "bash.full-output")
async def test_of_many_lines_the_last_2000_are_told_and_all_are_in_a_file(space: Space) -> None:
    whole = "".join(f"{number}\n" for number in range(1, 3_001))
    reply = await space.call("bash", command="seq 1 3000")
    assert reply["truncated"] is True
    assert reply["output"] == "".join(f"{number}\n" for number in range(1_001, 3_001))
    path = reply.text("full_output_path")
    assert path.startswith(".codespace/output/")
    assert space.text(path) == whole
    assert (await space.call("read", path=path))["content"] == whole
    exact = await space.call("bash", command="seq 1 2000")
    assert exact["truncated"] is False
    assert "full_output_path" not in exact


@pytest.mark.requirement("bash.bytes", "bash.full-output")
async def test_of_long_lines_the_last_50_kib_are_told_and_all_are_in_a_file(space: Space) -> None:
    command = "for i in $(seq 100); do head -c 9999 /dev/zero | tr '\\0' x; echo; done; echo end"
    reply = await space.call("bash", command=command)
    output = reply.text("output")
    assert reply["truncated"] is True
    assert len(output.encode()) <= 50 * 1024
    assert output.endswith("x\nend\n")
    assert len(output) > 49 * 1024
    whole = ("x" * 9_999 + "\n") * 100 + "end\n"
    found = await space.call("read", path=reply["full_output_path"], max_bytes=1)
    assert found["version"] == hashlib.sha256(whole.encode()).hexdigest()


@pytest.mark.requirement("bash.bytes")
async def test_a_cut_never_splits_a_character(space: Space) -> None:
    reply = await space.call("bash", command="for i in $(seq 30000); do printf 'x€'; done")
    output = reply.text("output")
    assert "\ufffd" not in output
    assert len(output.encode()) in range(50 * 1024 - 4, 50 * 1024 + 1)


@pytest.mark.requirement("bash.full-output")
async def test_the_output_files_do_not_show_up_as_the_users_work(space: Space) -> None:
    await space.call("bash", command="seq 1 3000")
    assert (await space.call("find"))["paths"] == []
    status = await space.call("bash", command="git init -q . && git status --porcelain")
    assert status["output"] == ""


@pytest.mark.requirement("bash.full-output", "paths.never-follow-a-symlink")
async def test_output_is_not_written_through_a_link(space: Space, second_space: Space) -> None:
    (space.root / ".codespace").symlink_to(second_space.root)
    reply = await space.call("bash", command="seq 1 3000")
    assert reply["truncated"] is True
    assert "full_output_path" not in reply
    assert second_space.tree() == {}


@pytest.mark.requirement("bash.timeout")
async def test_timeout_ms_ends_the_command_and_keeps_what_it_said(space: Space) -> None:
    reply = await space.call("bash", command="echo before; sleep 600 & sleep 600", timeout_ms=700)
    assert (reply["termination"], reply["output"]) == ("timeout", "before\n")
    assert "exit_code" not in reply
    for timeout_ms in (0, -1):
        refused = await space.refused(
            ErrorCode.INVALID_ARGUMENT, "bash", command="true", timeout_ms=timeout_ms
        )
        assert refused["details", "path"] == "timeout_ms"


async def test_stdin_is_empty(space: Space) -> None:
    reply = await space.call("bash", command="wc -c; read line || echo no line")
    assert reply["output"] == "0\nno line\n"


@pytest.mark.requirement("subtree.daemons-too", "bash.runs-to-the-end")
async def test_what_it_starts_in_the_background_ends_with_it(space: Space) -> None:
    reply = await space.call("bash", command="setsid sleep 600 & sleep 600 & echo over")
    assert (reply["output"], reply["exit_code"]) == ("over\n", 0)


async def test_its_handle_is_a_process_like_any_other(space: Space) -> None:
    reply = await space.call("bash", command="echo said")
    state = await space.session.call("process_status", process_id=reply["process_id"])
    assert (state["state"], state["exit_code"]) == ("exited", 0)
    assert await space.output(reply.text("process_id")) == "said\n"


@pytest.mark.requirement("code.invalid-command")
async def test_a_nul_in_the_text_is_an_invalid_command(space: Space) -> None:
    await space.refused(ErrorCode.INVALID_COMMAND, "bash", command="a\0b")
