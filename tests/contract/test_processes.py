"""`exec_command` and `process_status`: starting, and how a process ended."""

import os
import signal
from pathlib import Path

import pytest

from codespace.domain.errors import ErrorCode
from contract.houses import over_stdio
from contract.servers import write_config
from contract.session import Space

pytestmark = pytest.mark.anyio


@pytest.mark.requirement("exec.result", "exec.confirmed", "ids.prefixes")
async def test_a_started_command_is_confirmed_whether_or_not_it_succeeds(
    cell_space: Space,
) -> None:
    for argv, code in ((["true"], 0), (["false"], 1), (["sh", "-c", "exit 42"], 42)):
        reply = await cell_space.call("exec_command", command=argv)
        assert reply.keys == {"process_id", "dispatch_status"}
        assert reply["dispatch_status"] == "confirmed"
        assert reply.text("process_id").startswith("proc-")
        state = await cell_space.ended(reply.text("process_id"))
        assert (state["termination"], state["exit_code"]) == ("exited", code)


@pytest.mark.requirement("process-status.fields", "process-status.exit-code")
async def test_a_running_process_has_no_termination_and_an_ended_one_all_fields(
    space: Space,
) -> None:
    process_id = await space.start_shell("echo ready; read line; echo done")
    await space.until_said(process_id, "ready")
    running = await space.session.call("process_status", process_id=process_id)
    assert running.body == {
        "process_id": process_id,
        "state": "running",
        "output_total": 6,
        "output_retained_from": 0,
        "eof": False,
    }
    await space.session.call("write_stdin", process_id=process_id, data="\n")
    ended = await space.ended(process_id)
    assert ended.body == {
        "process_id": process_id,
        "state": "exited",
        "termination": "exited",
        "exit_code": 0,
        "output_total": 11,
        "output_retained_from": 0,
        "eof": True,
    }


@pytest.mark.requirement("process-status.wait")
async def test_a_wait_ends_with_the_process_and_is_bounded(space: Space) -> None:
    process_id = await space.start("sleep", "60")
    state = await space.session.call("process_status", process_id=process_id, wait_ms=10)
    assert state["state"] == "running"
    for wait_ms in (-1, 30_001):
        reply = await space.session.refused(
            ErrorCode.INVALID_ARGUMENT, "process_status", process_id=process_id, wait_ms=wait_ms
        )
        assert reply["details", "path"] == "wait_ms"
    await space.call("terminate_process", process_id=process_id)
    await space.ended(process_id)


@pytest.mark.requirement("process-status.signal")
@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM, signal.SIGSEGV])
async def test_a_process_killed_by_a_foreign_signal_is_exited_with_that_signal(
    space: Space, number: signal.Signals
) -> None:
    process_id = await space.start_shell(f"kill -{number.value} $$; sleep 60")
    state = await space.ended(process_id)
    assert (state["termination"], state["signal"]) == ("exited", number.value)
    assert "exit_code" not in state


@pytest.mark.requirement("process-status.exit-code")
async def test_an_exit_code_above_128_is_an_exit_code(space: Space) -> None:
    state = await space.ended(await space.start_shell("exit 143"))
    assert state["exit_code"] == 143
    assert "signal" not in state


@pytest.mark.requirement("exec.no-shell")
async def test_there_is_no_shell_unless_the_argv_names_one(space: Space) -> None:
    process_id = await space.start("printf", "%s|", "$HOME", "*", "a;b", "`id`", "")
    assert await space.output(process_id) == "$HOME|*|a;b|`id`||"
    await space.refused(ErrorCode.PROCESS_SPAWN_FAILED, "exec_command", command=["echo hello"])


@pytest.mark.requirement("exec.working-directory")
async def test_the_working_directory_is_the_root(space: Space) -> None:
    assert await space.output(await space.start("pwd", "-P")) == f"{space.root.resolve()}\n"
    space.write("script.sh", "#!/bin/sh\necho ran in $(ls)\n")
    (space.root / "script.sh").chmod(0o755)
    assert await space.output(await space.start("./script.sh")) == "ran in script.sh\n"


@pytest.mark.requirement("exec.environment")
async def test_a_command_sees_a_minimal_environment_and_no_secret(
    tmp_path: Path, root: Path
) -> None:
    config = write_config(
        tmp_path / "codespace.json",
        {"default": {"root": str(root), "profile": "workspace-write"}},
        process_environment={"GIVEN": "by the operator"},
        process_environment_pass=["PASSED"],
    )
    own = {
        "CODESPACE_HTTP_TOKEN": "a-secret-of-the-gateway",
        "PASSED": "through",
        "SECRET_OF_THE_SHELL": "secret",
    }
    async with over_stdio(config, variables=own) as session:
        space = Space(session, "default", root)
        seen = await space.output(await space.start("env"))
        parent = await space.output(await space.start_shell("tr '\\0' '\\n' </proc/$PPID/environ"))
    variables = {
        name: value for name, _, value in (line.partition("=") for line in seen.splitlines())
    }
    assert variables["GIVEN"] == "by the operator"
    assert variables["PASSED"] == "through"
    assert set(variables) <= {
        *("PATH", "HOME", "LANG", "TMPDIR", "USER", "LOGNAME", "TZ", "PWD", "SHLVL", "_"),
        *("GIVEN", "PASSED"),
    }
    assert "secret" not in seen
    assert "secret" not in parent


@pytest.mark.requirement("code.invalid-command")
@pytest.mark.parametrize("argv", [[], [""], ["", "a"], ["echo", "a\0b"], ["ec\0ho"]])
async def test_a_command_that_no_kernel_runs_is_invalid(space: Space, argv: list[str]) -> None:
    await space.refused(ErrorCode.INVALID_COMMAND, "exec_command", command=argv)
    assert await space.start("true")


@pytest.mark.requirement("code.process-spawn-failed")
async def test_a_program_that_cannot_be_started_leaves_the_lease_free(space: Space) -> None:
    space.write("plain.txt", "no program")
    space.write("folder/x", "")
    space.write("broken", "#!/no/such/interpreter\n")
    (space.root / "broken").chmod(0o755)
    for argv in (["no-such-program"], ["./plain.txt"], ["./folder"], ["/"], ["./none"]):
        reply = await space.refused(ErrorCode.PROCESS_SPAWN_FAILED, "exec_command", command=argv)
        assert reply.keys <= {"code", "message", "details"}
    await space.ended(await space.start("true"))


@pytest.mark.requirement("code.process-spawn-failed")
async def test_one_process_too_many_is_not_started(tmp_path: Path) -> None:
    registered: dict[str, dict[str, str]] = {}
    for name in ("a", "b", "c"):
        (tmp_path / name).mkdir()
        registered[name] = {"root": str(tmp_path / name), "profile": "workspace-write"}
    config = write_config(tmp_path / "codespace.json", registered, max_processes=2)
    async with over_stdio(config) as session:
        spaces = [Space(session, name, tmp_path / name) for name in registered]
        first = await spaces[0].start("sleep", "60")
        await spaces[1].start("sleep", "60")
        command = ["touch", "started"]
        await spaces[2].refused(ErrorCode.PROCESS_SPAWN_FAILED, "exec_command", command=command)
        await session.call("terminate_process", process_id=first)
        await spaces[0].ended(first)
        assert spaces[2].tree() == {}
        await spaces[2].ended(await spaces[2].start(*command))
        assert spaces[2].tree() == {"started": b""}


@pytest.mark.requirement("code.limit-exceeded")
async def test_a_command_line_that_is_too_long_is_told_with_its_limit(space: Space) -> None:
    for argv, limit in (
        (["true", "x" * 200_000], "argument_max_bytes"),
        (["true", *["x"] * 5_000], "argv_max_count"),
        (["true", *["x" * 100_000] * 6], "argv_max_bytes"),
    ):
        reply = await space.refused(ErrorCode.LIMIT_EXCEEDED, "exec_command", command=argv)
        assert reply["details", "limit"] == limit
        assert "operation_id" not in reply


@pytest.mark.requirement("code.process-not-found")
async def test_an_unknown_handle_is_not_found_by_any_tool(space: Space) -> None:
    for handle in ("proc-unknown", "", "1", str(os.getpid()), "op-x"):
        for tool, arguments in (
            ("read_process", {}),
            ("process_status", {}),
            ("write_stdin", {"data": "x"}),
            ("process_resize", {"rows": 1, "cols": 1}),
            ("terminate_process", {}),
        ):
            await space.session.refused(
                ErrorCode.PROCESS_NOT_FOUND, tool, process_id=handle, **arguments
            )


@pytest.mark.requirement("exec.time-limit", "time-limit.termination")
async def test_the_operators_time_limit_ends_the_whole_subtree(tmp_path: Path, root: Path) -> None:
    config = write_config(
        tmp_path / "codespace.json",
        {"default": {"root": str(root), "profile": "workspace-write"}},
        process_timeout_secs=1.5,
    )
    async with over_stdio(config) as session:
        space = Space(session, "default", root)
        process_id = await space.start_shell("sleep 600 & setsid sleep 600 & wait")
        state = await space.ended(process_id)
        assert state["termination"] == "timeout"
        assert "exit_code" not in state
        await space.ended(await space.start("true"))
        info = await space.call("workspace_info")
        assert info["execution", "limits", "process_timeout_ms"] == 1_500
        shell = await space.call("bash", command="echo before; sleep 600", timeout_ms=60_000)
        assert (shell["termination"], shell["output"]) == ("timeout", "before\n")


@pytest.mark.requirement("ids.processes-do-not-survive-a-restart")
async def test_a_handle_of_an_earlier_gateway_is_unknown(config: Path, root: Path) -> None:
    async with over_stdio(config) as session:
        space = Space(session, "default", root)
        process_id = await space.start("true")
        await space.ended(process_id)
    async with over_stdio(config) as session:
        await session.refused(ErrorCode.PROCESS_NOT_FOUND, "process_status", process_id=process_id)


@pytest.mark.requirement("finished.kept")
@pytest.mark.slow
async def test_the_last_64_finished_handles_are_kept_and_older_ones_forgotten(
    config: Path, root: Path
) -> None:
    async with over_stdio(config) as session:
        space = Space(session, "default", root)
        handles: list[str] = []
        for _ in range(66):
            handles.append(await space.start("true"))
            await space.ended(handles[-1])
        for handle in handles[2:]:
            state = await session.call("process_status", process_id=handle)
            assert state["exit_code"] == 0
        for handle in handles[:2]:
            await session.refused(ErrorCode.PROCESS_NOT_FOUND, "process_status", process_id=handle)
