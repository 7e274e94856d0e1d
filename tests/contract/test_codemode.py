"""Scripts as clients have them: over each transport and revision, on the one path of every call."""

import asyncio
import json
import os
import re
import signal
import time
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import cast

import anyio
import pytest

from codespace.adapters.client import Era
from codespace.domain.errors import ErrorCode
from codespace.domain.run_limits import RunLimits
from contract.answers import Reply
from contract.conftest import CELLS
from contract.houses import House, Transport, over_http, over_stdio
from contract.servers import RefusedStart, run, serving, until, write_config
from contract.session import Session, Space
from contract.subtrees import marked
from schemas import fits

pytestmark = pytest.mark.anyio

FILES = 200
NO_CALLS = {"total": 0, "ok": 0, "failed": 0, "cancelled": 0, "unknown": 0}


def codes(reply: Reply) -> list[object]:
    """Return the codes of a run's problems."""
    return [problem["code"] for problem in reply.each("problems")]


def bash(mark: str) -> str:
    """Return a script that is in a command until somebody ends it."""
    return f"await tools.bash({{command: ': {mark}; touch begun; sleep 600; :'}})"


async def begun(space: Space) -> None:
    """Wait until the command of `bash` runs."""
    await anyio.to_thread.run_sync(until, (space.root / "begun").exists, "the command has begun")


# What a script does in place of many calls.


@pytest.mark.requirement("codemode.one-call", "codemode.envelope", "codemode.parallel")
async def test_one_call_reads_200_files(cell_space: Space) -> None:
    for number in range(FILES):
        cell_space.write(f"d/{number:03}.txt", f"{number}\n" * (number % 7))
    reply = await cell_space.script(
        """
        const {paths} = await tools.find({glob: "d/*.txt"});
        const files = await Promise.all(paths.map(path => tools.read({path})));
        const lines = files.map(file => file.content.split("\\n").length - 1);
        return {files: files.length, lines: lines.reduce((a, b) => a + b)};
        """
    )
    assert reply["value"] == {"files": FILES, "lines": sum(n % 7 for n in range(FILES))}
    assert reply["calls"] == {**NO_CALLS, "total": FILES + 1, "ok": FILES + 1}
    assert (reply["status"], reply["problems"], reply["error"]) == ("completed", [], None)


@pytest.mark.requirement("codemode.schema", "codemode.big-integers", "codemode.args-are-frozen")
async def test_the_envelope_fits_the_tools_schema_and_values_cross_unharmed(
    cell: tuple[House, Session],
) -> None:
    house, session = cell
    space = Space(session, *house.take())
    listed = {tool.name: tool for tool in (await session.client.list_tools()).tools}
    schema = listed["codemode"].output_schema
    assert schema is not None
    args = {"n": 2**63, "deep": [{"é": -(2**70)}], "text": "123", "half": 0.5}
    answers = [
        await space.script(
            """
            try { args.n = 1 } catch {}
            try { args = 1 } catch {}
            return {...args, big: typeof args.n};
            """,
            args=args,
        ),
        await space.script("text('a'); store('k', 1); null.x"),
        await space.script(bash("schema"), wait_ms=0),
    ]
    for answer in answers:
        assert fits(schema, answer.body), answer.body
    assert answers[0]["value"] == {**args, "big": "bigint"}
    ended = await session.run("codemode_cancel", run_id=answers[2]["run_id"])
    for tool in ("codemode_status", "codemode_cancel"):
        assert fits(listed[tool].output_schema or {}, ended.body)


@pytest.mark.requirement("codemode.text-is-for-reading")
async def test_the_text_is_for_reading_and_the_structured_content_is_the_envelope(
    cell: tuple[House, Session],
) -> None:
    house, session = cell
    space = Space(session, *house.take())
    code = """
        text("printed");
        image({type: "image", data: "AA==", mimeType: "image/png"});
        await tools.read({path: "none"}).catch(() => {});
        return {n: 1};"""
    answer = await session.client.call_tool("codemode", {"code": code, "workspace_id": space.id})
    told = [item.model_dump(exclude_none=True) for item in answer.content]
    assert [item["type"] for item in told] == ["text", "image", "text"]
    assert told[0]["text"] == "printed"
    value, problem = told[2]["text"].splitlines()
    assert json.loads(value) == {"n": 1}
    assert re.fullmatch(
        r"\[problem call 1 of read at line 4: FILE_NOT_FOUND: .*, caught by the script\]", problem
    )
    envelope = Reply(cast("Mapping[str, object]", answer.structured_content))
    assert envelope["value"] == {"n": 1}
    assert envelope.each("problems")[0]["handled"] is True


async def test_a_script_that_fails_is_a_result_with_its_place_and_what_it_did(
    space: Space,
) -> None:
    reply = await space.script(
        "text('before');\n"
        "await tools.apply_patch({patch: '*** Begin Patch\\n*** Add File: a\\n+a\\n*** End Patch'})"
        ";\nthrow new TypeError('no')"
    )
    assert (reply["status"], reply["value"]) == ("failed", None)
    assert reply.at("error")["kind"] == "script"
    assert (reply["error", "name"], reply["error", "line"]) == ("TypeError", 3)
    assert reply["output"] == [{"type": "text", "text": "before"}]
    assert codes(reply) == ["EFFECTS_REMAIN"]
    assert space.text("a") == "a\n"


@pytest.mark.requirement("codemode.description")
async def test_the_description_is_small_and_declares_the_tools(session: Session) -> None:
    listed = (await session.client.list_tools()).tools
    (described,) = [tool.description or "" for tool in listed if tool.name == "codemode"]
    assert len(described) < 12_000
    not_in_scripts = ("codemode", "work_", "approval_", "operation_resume")
    own = [tool.name for tool in listed if not tool.name.startswith(not_in_scripts)]
    assert [name for name in own if f"{name}(" not in described] == []


@pytest.mark.requirement("codemode.progress")
async def test_progress_is_the_number_of_calls_that_finished(cell: tuple[House, Session]) -> None:
    house, session = cell
    space = Space(session, *house.take())
    told: list[tuple[float, float | None]] = []

    async def note(progress: float, total: float | None, message: str | None) -> None:
        told.append((progress, total))
        if progress >= 2:
            space.write("go-on")

    code = (
        "await tools.find(); await tools.find();"
        " await tools.bash({command: 'until [ -e go-on ]; do sleep 0.01; done'})"
    )
    await session.watched("codemode", {"code": code, "workspace_id": space.id}, note)
    assert (2, 3) in told
    assert [done for done, _ in told] == sorted({done for done, _ in told})


# A script can do nothing that its client could not.


@pytest.mark.requirement("codemode.same-policy", "codemode.tool-error")
async def test_a_refusal_reaches_the_script_as_an_error_with_its_code_and_line(
    looking: Space,
) -> None:
    before = looking.tree()
    caught = await looking.script(
        """const said = [];
        for (const call of [
          () => tools.bash({command: "touch x"}),
          () => tools.exec_command({command: ["touch", "x"], approved: true}),
          () => tools.apply_patch({patch: "*** Begin Patch\\n*** End Patch"}),
        ]) {
          try { await call() } catch (e) { said.push([e instanceof Error, e.name, e.code, e.tool]) }
        }
        return said;"""
    )
    assert caught["value"] == [
        [True, "ToolError", "UNAUTHORIZED", tool]
        for tool in ("bash", "exec_command", "apply_patch")
    ]
    assert codes(caught) == ["UNAUTHORIZED"] * 3
    assert [problem["line"] for problem in caught.each("problems")] == [3, 4, 5]
    thrown = await looking.script("\nawait tools.bash({command: 'touch x'})")
    assert (thrown["status"], thrown["error", "name"]) == ("failed", "ToolError")
    assert thrown["error", "line"] == 2
    assert "read-only" in thrown.text("error", "message")
    assert looking.tree() == before


@pytest.mark.requirement("codemode.same-policy")
async def test_no_argument_grants_anything(looking: Space, contained: Space) -> None:
    claims = {"approved": True, "profile": "workspace-write", "user_id": "root"}
    code = "await tools.bash({command: 'touch x', approved: true, profile: 'workspace-write'})"
    refused = await looking.script(code, **claims)
    assert codes(refused) == ["UNAUTHORIZED"]
    other = await contained.script("await tools.find({approved: true})", **claims)
    assert codes(other) == ["UNAUTHORIZED"]


@pytest.mark.requirement("codemode.same-policy")
async def test_arguments_that_do_not_fit_are_refused_in_the_words_that_a_client_gets(
    space: Space,
) -> None:
    slips: list[tuple[str, dict[str, object]]] = [
        ("read", {"pth": "a"}),
        ("read", {"path": "a", "offset": -1}),
        ("exec_command", {"command": "ls -la"}),
        ("bash", {"command": ["ls"]}),
        ("apply_patch", {"patch": "x", "expected_versions": {"a": 1}}),
        ("grep", {}),
    ]
    for tool, given in slips:
        code = (
            f"try {{ await tools.{tool}(args) }}"
            " catch ({code, message, details}) { return {code, message, details} }"
        )
        said = await space.refused(ErrorCode.INVALID_ARGUMENT, tool, **given)
        assert (await space.script(code, args=given))["value"] == said.body


@pytest.mark.requirement("errors.unknown-arguments-are-ignored")
async def test_an_argument_that_a_tool_does_not_know_refuses_nothing_and_is_told(
    space: Space,
) -> None:
    patch = "*** Begin Patch\\n*** Add File: a\\n+a\\n*** End Patch"
    reply = await space.script(
        f"return await tools.apply_patch({{checkOnly: true, patch: '{patch}'}})"
    )
    assert (reply["status"], reply["value", "status"]) == ("completed", "applied")
    (problem,) = reply.each("problems")
    assert (problem["code"], problem["line"]) == ("UNKNOWN_ARGUMENT", 1)
    assert "'checkOnly' (did you mean 'check_only'?)" in str(problem["message"])


async def test_a_script_can_list_the_workspaces(space: Space, looking: Space) -> None:
    for given in ("", "{workspace_id: null}"):
        reply = await space.script(f"return await tools.workspace_info({given})")
        listed = cast("Mapping[str, list[Mapping[str, str]]]", reply["value"])["workspaces"]
        assert {space.id, looking.id} <= {each["workspace_id"] for each in listed}


async def test_a_script_reaches_another_workspace_as_its_client_does(
    space: Space, looking: Space
) -> None:
    code = "return (await tools.read({workspace_id: args, path: 'kept.txt'})).content"
    assert (await space.script(code, args=looking.id))["value"] == "kept\n"
    missing = await space.script(code, args="nowhere")
    assert codes(missing) == ["WORKSPACE_NOT_FOUND"]
    for path in ("../x", "/etc/passwd"):
        code = f"await tools.read({{path: '{path}'}})"
        assert codes(await space.script(code)) == ["PATH_ESCAPE"]


async def test_codemode_itself_is_not_callable(space: Space) -> None:
    runs = ("codemode", "codemode_status", "codemode_cancel")
    confirmations = ("approval_create", "approval_resolve", "operation_resume")
    for name in (*runs, "work_open", "work_finish", *confirmations):
        reply = await space.script(f"await tools.{name}({{code: '1', run_id: 'x'}})")
        assert (reply["status"], reply["calls"]) == ("failed", NO_CALLS)


# Runs outlive calls.


@pytest.mark.requirement("codemode.wait", "codemode.status")
async def test_a_run_goes_on_after_its_wait_and_is_waited_for(cell_space: Space) -> None:
    space = cell_space
    code = (
        "text('step 1'); await tools.bash({command:"
        " 'touch begun; until [ -e go-on ]; do sleep 0.01; done'}); return 5"
    )
    first = await space.script(code, wait_ms=50)
    assert (first["status"], first["value"]) == ("running", None)
    run_id = first.text("run_id")
    await begun(space)
    looked = await space.session.run("codemode_status", run_id=run_id)
    assert (looked["status"], looked["calls", "total"]) == ("running", 1)
    assert looked["output"] == [{"type": "text", "text": "step 1"}]
    assert cast("float", looked["engine_ms"]) > 0
    space.write("go-on")
    ended = await space.session.run("codemode_status", run_id=run_id, wait_ms=30_000)
    assert (ended["status"], ended["value"], ended["run_id"]) == ("completed", 5, run_id)
    assert (await space.session.run("codemode_status", run_id=run_id)).body == ended.body


@pytest.mark.requirement("codemode.cancel", "lease.free-after-exit")
async def test_cancelling_ends_the_command_that_runs_and_frees_the_lease(
    cell_space: Space,
) -> None:
    mark = f"cancel-{os.getpid()}-{time.time_ns()}"
    first = await cell_space.script(f"text('before'); {bash(mark)}", wait_ms=0)
    await begun(cell_space)
    assert marked(mark) != []
    ended = await cell_space.session.run("codemode_cancel", run_id=first["run_id"])
    assert marked(mark) == []
    assert ended["status"] == "cancelled"
    assert ended["output"] == [{"type": "text", "text": "before"}]
    assert ended["calls"] == {**NO_CALLS, "total": 1, "cancelled": 1}
    assert codes(ended) == ["CANCELLED", "EFFECTS_REMAIN"]
    assert (await cell_space.call("bash", command="echo free"))["output"] == "free\n"


@pytest.mark.requirement("codemode.cancel")
async def test_a_command_that_ignores_the_request_to_end_is_gone_too(space: Space) -> None:
    mark = f"stubborn-{os.getpid()}-{time.time_ns()}"
    first = await space.script(
        "await tools.bash({command: args})",
        args=f": {mark}; trap '' TERM; touch begun; while :; do sleep 0.1; done",
        wait_ms=0,
    )
    await begun(space)
    ended = await space.session.run("codemode_cancel", run_id=first["run_id"])
    assert marked(mark) == []
    assert ended["calls"] == {**NO_CALLS, "total": 1, "cancelled": 1}


@pytest.mark.requirement("codemode.run-not-found", "code.run-not-found")
async def test_an_unknown_run_is_refused(space: Space) -> None:
    for tool in ("codemode_status", "codemode_cancel"):
        await space.session.refused(ErrorCode.RUN_NOT_FOUND, tool, run_id="run-unknown")


@pytest.mark.requirement("codemode.run-key", "code.run-conflict")
async def test_the_same_key_and_request_are_the_same_run_for_every_client(
    space: Space, second_session: Session, second_space: Space
) -> None:
    code = "await tools.bash({command: 'echo x >> times'}); return Math.random()"
    first = await space.script(code, run_key="k", args={"a": 1})
    there = Space(second_session, space.id, space.root)
    again = await there.script(code, run_key="k", args={"a": 1}, wait_ms=5)
    assert again.body == first.body
    assert space.text("times") == "x\n"
    conflict = await space.refused(
        ErrorCode.RUN_CONFLICT, "codemode", code=code, run_key="k", args={"a": 2}
    )
    assert conflict["details", "run_id"] == first["run_id"]
    other = await second_space.script(code, run_key="k", args={"a": 2})
    assert other["run_id"] != first["run_id"]


@pytest.mark.requirement("codemode.disconnect")
async def test_a_client_that_leaves_in_mid_run_changes_nothing(house: House, space: Space) -> None:
    code = (
        "await tools.bash({command: 'touch begun; until [ -e go-on ]; do sleep 0.01; done'});"
        "await tools.bash({command: 'echo done > end'}); return 7"
    )
    async with over_http(house.url) as leaving:
        there = Space(leaving, space.id, space.root)
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(lambda: there.script(code, run_key="left"))
            await begun(space)
            tasks.cancel_scope.cancel()
    space.write("go-on")
    ended = await space.script(code, run_key="left")
    assert (ended["status"], ended["value"]) == ("completed", 7)
    assert space.text("end") == "done\n"


@pytest.mark.requirement("codemode.ids-unguessable")
async def test_ids_of_runs_are_unguessable(space: Space) -> None:
    ids = [(await space.script("")).text("run_id") for _ in range(20)]
    assert len(set(ids)) == len(ids)
    for run_id in ids:
        assert re.fullmatch(r"run-[A-Za-z0-9_-]{22}", run_id)
    for place in range(len("run-"), len(ids[0])):
        assert len({run_id[place] for run_id in ids}) > 1


# The lease.


@pytest.mark.requirement("codemode.one-change-at-a-time")
async def test_calls_that_change_a_workspace_go_one_after_another_in_order(
    cell_space: Space,
) -> None:
    reply = await cell_space.script(
        """
        const each = [1, 2, 3, 4, 5];
        const ends = await Promise.all(each.map(n => tools.bash({command: `echo ${n} >> log`})));
        return ends.map(end => end.exit_code);"""
    )
    assert (reply["value"], reply["problems"]) == ([0] * 5, [])
    assert cell_space.text("log") == "1\n2\n3\n4\n5\n"


@pytest.mark.requirement("codemode.own-process-is-waited-for")
async def test_a_live_process_of_the_run_itself_is_waited_for(
    busy_gateway: tuple[Space, Session],
) -> None:
    space, _ = busy_gateway
    reply = await space.script(
        """
        const {process_id} = await tools.exec_command({command: ["sh", "-c", args]});
        const after = tools.bash({command: "cat f"});
        const waited = await tools.process_status({process_id, wait_ms: 900});
        await tools.write_stdin({process_id, data: "said\\n"});
        return [waited.state, (await after).output];""",
        args="read x; echo $x > f",
    )
    assert (reply["value"], reply["problems"]) == (["running", "said\n"], [])


@pytest.mark.requirement("codemode.others-are-waited-for-a-while", "code.workspace-busy")
async def test_a_process_of_somebody_else_is_waited_for_a_while(
    busy_gateway: tuple[Space, Session],
) -> None:
    space, other = busy_gateway
    process_id = await Space(other, space.id, space.root).start("cat")
    reply = await space.script(
        "try { await tools.bash({command: 'true'}) } catch (e) { return [e.code, e.details] }"
    )
    holder = {"kind": "process", "id": process_id}
    assert reply["value"] == ["WORKSPACE_BUSY", {"holder": holder}]
    assert codes(reply) == ["WORKSPACE_BUSY"]
    assert reply["wall_ms"] >= 300  # pyright: ignore[reportOperatorIssue] -- the lower bound of the setting
    await other.call("terminate_process", process_id=process_id)
    ended = await space.script("return (await tools.bash({command: 'echo free'})).output")
    assert ended["value"] == "free\n"


@pytest.fixture
async def busy_gateway(tmp_path: Path, root: Path) -> AsyncGenerator[tuple[Space, Session]]:
    """A gateway of its own that waits 300 ms for others, with two clients."""
    config = write_config(
        tmp_path / "busy.json",
        {"default": {"root": str(root), "profile": "workspace-write"}},
        codemode={"mutation_wait_ms": 300},
    )
    with serving(tmp_path / "stderr.txt", "--config", str(config)) as server:
        async with over_http(server.url) as session, over_http(server.url) as other:
            yield Space(session, "default", root), other


# What is kept, and what is written.


@pytest.mark.requirement("codemode.store", "codemode.store-is-the-workspaces")
@pytest.mark.parametrize(("transport", "era"), CELLS)
async def test_what_a_script_stores_survives_a_restart_and_is_its_workspaces_own(
    tmp_path: Path, transport: Transport, era: Era
) -> None:
    house = House.build(tmp_path, workspaces=2)
    (one, _), (other, _) = house.take(), house.take()

    @asynccontextmanager
    async def session() -> AsyncGenerator[Session]:
        if transport == "stdio":
            async with over_stdio(house.config, era) as session:
                yield session
            return
        with serving(tmp_path / "stderr.txt", "--config", str(house.config)) as server:
            async with over_http(server.url, era) as session:
                yield session

    async with session() as first:
        kept = Space(first, one, tmp_path)
        reply = await kept.script("store('k', {n: 2n ** 64n}); store('l', 1)")
        assert reply["store"] == ["k", "l"]
        await kept.script("store('k', 'lost'); throw 1")
        await kept.script("store('l', undefined)")
    async with session() as second:
        kept, stranger = Space(second, one, tmp_path), Space(second, other, tmp_path)
        code = "return [load('k') ?? null, load('l') ?? null]"
        assert (await kept.script(code))["value"] == [{"n": 2**64}, None]
        assert (await stranger.script(code))["value"] == [None, None]


@pytest.mark.requirement("codemode.cut-is-in-a-file")
async def test_output_and_value_that_are_too_long_are_in_files_that_read_reads(
    cell_space: Space,
) -> None:
    space = cell_space
    printed = await space.script("text('é'.repeat(900) + 'END')", max_output_chars=300)
    shown = printed.each("output")[0].text("text")
    path = printed.text("truncated", "path")
    assert len(shown) <= 300
    assert shown.endswith("END")
    assert path in shown
    assert (await space.call("read", path=path))["content"] == "é" * 900 + "END"
    returned = await space.script("return 'é'.repeat(900)", max_output_chars=300)
    assert (returned["status"], returned["value"]) == ("completed", None)
    assert codes(returned) == ["VALUE_TOO_LONG"]
    path = returned.text("truncated", "path")
    assert path in returned.each("problems")[0].text("message")
    content = (await space.call("read", path=path)).text("content")
    assert json.loads(content) == "é" * 900
    assert (await space.call("find"))["paths"] == []


@pytest.mark.requirement("codemode.read-only-stays-as-it-is")
async def test_in_a_read_only_workspace_nothing_is_written(looking: Space) -> None:
    before = looking.tree()
    code = "text('x'.repeat(9000)); return 'x'.repeat(9000)"
    reply = await looking.script(code, max_output_chars=90)
    assert reply["truncated", "path"] is None
    assert codes(reply) == ["VALUE_TOO_LONG"]
    assert looking.tree() == before


# Limits and settings.


@pytest.mark.requirement("codemode.limits-are-told")
async def test_the_limits_of_scripts_are_told(space: Space) -> None:
    limits = (await space.call("workspace_info")).at("execution", "limits")
    for name, most in RunLimits().options().items():
        assert limits[f"codemode_{name}"] == most


@pytest.mark.requirement("codemode.limits-are-settings")
async def test_the_limits_of_scripts_are_settings(tmp_path: Path, root: Path) -> None:
    config = write_config(
        tmp_path / "c.json",
        {"default": {"root": str(root)}},
        codemode={"max_calls": 2, "timeout_ms": 60_000},
    )
    async with over_stdio(config) as session:
        space = Space(session, "default", root)
        info = await space.call("workspace_info")
        assert info["execution", "limits", "codemode_max_calls"] == 2
        reply = await space.script("for (let i = 0; i < 5; i++) await tools.find()")
        assert (reply["status"], reply["error", "kind"]) == ("failed", "limit")
        assert reply["calls", "total"] == 2


@pytest.mark.requirement("codemode.limits-are-settings")
@pytest.mark.parametrize(
    ("limits", "named"),
    [
        ({"no_such_limit": 1}, "codemode.no_such_limit"),
        ({"runs": 0}, "runs"),
        ({"concurrency": -1}, "concurrency"),
        ({"timeout_ms": "5"}, "codemode: takes limits"),
        ({"memory_mib": True}, "codemode: takes limits"),
        ([], "codemode"),
    ],
)
def test_a_limit_that_is_none_is_refused_at_start(
    tmp_path: Path, root: Path, refused_start: RefusedStart, limits: object, named: str
) -> None:
    config = write_config(tmp_path / "c.json", {"default": {"root": str(root)}}, codemode=limits)
    assert named in refused_start("--config", str(config))


@pytest.mark.requirement("codemode.a-limit-harms-nobody")
async def test_a_script_that_spins_harms_nobody(space: Space, second_space: Space) -> None:
    spinning = await space.script("while (true) {}", wait_ms=0)
    for _ in range(20):
        await second_space.call("find")
    ended = await space.session.run("codemode_status", run_id=spinning["run_id"], wait_ms=30_000)
    assert (ended["status"], ended["error", "kind"]) == ("failed", "timeout")
    assert "step_ms" in ended.text("error", "message")


# The end of the gateway.


@pytest.mark.requirement("codemode.shutdown")
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
async def test_a_gateway_with_runs_under_way_ends_at_once_and_cleanly(
    tmp_path: Path, config: Path, root: Path, number: signal.Signals
) -> None:
    mark = f"shutdown-{os.getpid()}-{time.time_ns()}"
    ends: list[Reply] = []
    with serving(tmp_path / "stderr.txt", "--config", str(config)) as server:
        async with over_http(server.url) as session:
            space = Space(session, "default", root)
            await session.client.list_tools()  # the client holds answers to the schemas

            async def wait(code: str) -> None:
                ends.append(await space.script(code))

            async with anyio.create_task_group() as tasks:
                tasks.start_soon(wait, bash(mark))
                tasks.start_soon(wait, "for (;;) await tools.find()")
                await begun(space)
                assert await asyncio.to_thread(server.end, number) == 0
        assert [end["status"] for end in ends] == ["cancelled"] * 2
        assert marked(mark) == []
        assert "Traceback" not in server.said()
        assert "ERROR" not in server.said()


@pytest.mark.requirement("codemode.command-line")
def test_the_command_runs_a_script_against_the_configuration(config: Path, root: Path) -> None:
    script = root / "s.js"
    script.write_text("return {...args, paths: (await tools.find({})).paths}", encoding="utf-8")
    done = run("run", str(script), "--config", str(config), "--arg", "k=v")
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["value"] == {"k": "v", "paths": ["s.js"]}
    script.write_text("throw 1", encoding="utf-8")
    assert run("run", str(script), "--config", str(config)).returncode == 1
