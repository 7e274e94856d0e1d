"""Calls of a script: in which order they run, what is told of them, how they end."""

import asyncio
from typing import cast

import pytest

from codespace.codemode import (
    CallState,
    Invocation,
    Outcome,
    Progress,
    RunStatus,
    Sandbox,
    Tool,
    ToolError,
)
from doubles.script_tools import ECHO, NAP, Json, echo


class _OwnError(BaseException):
    pass


def _codes(outcome: Outcome) -> list[str]:
    return [each.code for each in outcome.problems]


@pytest.mark.anyio
async def test_calls_of_one_key_run_one_after_another_beside_all_others() -> None:
    inside: list[str] = []
    most: dict[str, int] = {}

    def watched(name: str) -> Tool:
        async def call(arguments: Json) -> object:
            inside.append(name)
            most[name] = max(most.get(name, 0), inside.count(name))
            most["all"] = max(most.get("all", 0), len(inside))
            await asyncio.sleep(0.01)
            inside.remove(name)
            return arguments["i"]

        return Tool(name, call, serialize="app" if name == "write" else None)

    async with Sandbox([watched("write"), watched("read")]) as sandbox:
        outcome = await sandbox.run(
            "const call = i => i < 3 ? tools.write({i}) : tools.read({i});"
            "return await Promise.all([0, 1, 2, 3, 4, 5].map(call))"
        )

    assert outcome.value == [0, 1, 2, 3, 4, 5]
    assert most == {"write": 1, "read": 3, "all": 4}


@pytest.mark.anyio
async def test_a_dispatch_sees_every_call_with_its_place_and_its_options() -> None:
    seen: list[Invocation] = []

    async def dispatch(invocation: Invocation) -> object:
        seen.append(invocation)
        return len(seen)

    async with Sandbox([Tool("a-b", echo)]) as sandbox:
        outcome = await sandbox.run(
            'await tools.a_b({x: 1});\nreturn await tools["a-b"]({x: 2}, {onAmbiguous: "throw"})',
            dispatch=dispatch,
        )

    assert outcome.value == 2
    assert [(each.call_no, each.tool.name) for each in seen] == [(1, "a-b"), (2, "a-b")]
    assert [each.line for each in seen] == [1, 2]
    assert [each.arguments for each in seen] == [{"x": 1}, {"x": 2}]
    assert [dict(each.options) for each in seen] == [{}, {"onAmbiguous": "throw"}]


@pytest.mark.anyio
async def test_records_and_progress_tell_of_every_call() -> None:
    told: list[Progress] = []

    async def fail(arguments: Json) -> object:
        raise ToolError("BUSY", "Try later.")

    async with Sandbox([ECHO, Tool("fail", fail)]) as sandbox:
        outcome = await sandbox.run(
            "await tools.echo();\nawait tools.fail().catch(e => e)", progress=told.append
        )

    assert [(each.call_no, each.tool, each.line) for each in outcome.records] == [
        (1, "echo", 1),
        (2, "fail", 2),
    ]
    assert [(each.state, each.code) for each in outcome.records] == [
        (CallState.OK, ""),
        (CallState.FAILED, "BUSY"),
    ]
    assert [(each.finished, each.record.state) for each in told] == [
        (0, CallState.RUNNING),
        (1, CallState.OK),
        (1, CallState.RUNNING),
        (2, CallState.FAILED),
    ]


@pytest.mark.anyio
async def test_a_listener_that_fails_harms_no_run(sandbox: Sandbox) -> None:
    def fail(progress: Progress) -> None:
        raise RuntimeError("no")

    assert (await sandbox.run("return await tools.echo({a: 1})", progress=fail)).value == {"a": 1}


@pytest.mark.anyio
async def test_a_tools_bug_is_an_error_that_tells_the_script_no_secret() -> None:
    async def broken(arguments: Json) -> object:
        raise RuntimeError("password=hunter2")

    async with Sandbox([Tool("broken", broken)]) as sandbox:
        outcome = await sandbox.run(
            "try { await tools.broken() } catch (e) { return [e.code, e.message] }"
        )

    code, message = cast("list[str]", outcome.value)
    assert code == "INTERNAL"
    assert "hunter2" not in message
    assert "RuntimeError" in message


@pytest.mark.parametrize("error", [_OwnError("x"), BaseExceptionGroup("x", [_OwnError("y")])])
@pytest.mark.anyio
async def test_whatever_a_tool_raises_the_script_hears_of_it(error: BaseException) -> None:
    async def fails(arguments: object) -> object:
        raise error

    async with Sandbox([Tool("fails", fails)]) as sandbox:
        caught = "try { await tools.fails({}) } catch (error) { return error.code }"
        outcome = await sandbox.run(caught, timeout=10)

    assert (outcome.value, outcome.calls.failed) == ("INTERNAL", 1)


@pytest.mark.anyio
async def test_details_that_are_no_json_are_left_out() -> None:
    async def fail(arguments: Json) -> object:
        raise ToolError("BUSY", "Try later.", {"when": object()})

    async with Sandbox([Tool("fail", fail)]) as sandbox:
        outcome = await sandbox.run(
            "try { await tools.fail() } catch (e) { return [e.code, e.details] }"
        )

    assert outcome.value == ["BUSY", None]


@pytest.mark.anyio
async def test_a_tool_that_is_cancelled_from_elsewhere_is_a_failed_call() -> None:
    async def give_up(arguments: Json) -> object:
        raise asyncio.CancelledError

    async with Sandbox([Tool("give_up", give_up), ECHO]) as sandbox:
        outcome = await sandbox.run(
            "const code = await tools.give_up().catch(e => e.code);"
            "return [code, await tools.echo({a: 1})]"
        )

    assert outcome.value == ["CANCELLED", {"a": 1}]


@pytest.mark.anyio
@pytest.mark.parametrize("how", ["sequential", "parallel"])
async def test_many_calls_that_answer_at_once_all_arrive(sandbox: Sandbox, how: str) -> None:
    script = {
        "sequential": "for (let i = 0; i < 3000; i++) sum += (await tools.echo({i})).i",
        "parallel": "const calls = Array.from({length: 3000}, (_, i) => tools.echo({i}));"
        "for (const r of await Promise.all(calls)) sum += r.i",
    }[how]

    outcome = await sandbox.run(f"let sum = 0; {script}; return sum")

    assert outcome.value == 2999 * 1500
    assert outcome.calls.ok == 3000


@pytest.mark.anyio
async def test_a_call_that_completes_what_it_began_is_waited_for_and_listed() -> None:
    begun, done = asyncio.Event(), asyncio.Event()

    async def patch(arguments: Json) -> object:
        begun.set()
        await asyncio.sleep(0.05)
        done.set()
        return "applied"

    async def wait(arguments: Json) -> object:
        await begun.wait()
        return None

    async with Sandbox([Tool("patch", patch, completes=True), Tool("wait", wait), NAP]) as sandbox:
        outcome = await sandbox.run(
            "tools.patch(); tools.nap({ms: 9e6}); await tools.wait(); return 1"
        )

    assert done.is_set()
    assert [(each.tool, each.code) for each in outcome.problems] == [
        ("patch", "NOT_AWAITED"),
        ("nap", "CANCELLED"),
    ]
    assert outcome.calls.ok == 2


@pytest.mark.anyio
async def test_a_queued_call_never_begins_after_the_end() -> None:
    calls: list[object] = []

    async def note(arguments: Json) -> object:
        calls.append(arguments["i"])
        return None

    async with Sandbox([Tool("note", note)], concurrency=1) as sandbox:
        outcome = await sandbox.run(
            "await tools.note({i: 0}); for (const i of [1, 2]) tools.note({i}); return 1"
        )

    assert calls == [0]
    assert outcome.calls.cancelled == 2
    assert _codes(outcome) == ["CANCELLED", "CANCELLED"]


@pytest.mark.anyio
async def test_a_call_that_does_not_end_when_cancelled_has_an_unknown_outcome(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("codespace.codemode.calls.GRACE_SECONDS", 0.05)
    leave = asyncio.Event()

    async def stubborn(arguments: Json) -> object:
        while not leave.is_set():
            try:
                await leave.wait()
            except asyncio.CancelledError:
                continue
        return None

    async with Sandbox([Tool("stubborn", stubborn), NAP]) as sandbox:
        outcome = await sandbox.run("tools.stubborn(); await tools.nap({ms: 5}); return 1")
    leave.set()

    assert outcome.status is RunStatus.COMPLETED
    assert outcome.calls.unknown == 1
    assert _codes(outcome) == ["UNKNOWN_OUTCOME", "EFFECTS_REMAIN"]
