"""What an author of a harness relies on: calls, ends, limits, cancellation, store, journal."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import cast

import anyio
import pytest

from codespace.codemode import (
    CallState,
    ErrorKind,
    Invocation,
    MemoryStore,
    Outcome,
    Progress,
    RunStatus,
    Sandbox,
    Tool,
    ToolError,
)
from codespace.codemode.machines import default_cache, machine
from codespace.codemode.vm import Entry, replay

Json = dict[str, object]


async def echo(arguments: Json) -> object:
    return arguments


async def nap(arguments: Json) -> object:
    await asyncio.sleep(cast("float", arguments["ms"]) / 1000)
    return arguments["ms"]


ECHO, NAP = Tool("echo", echo), Tool("nap", nap)


@pytest.fixture
async def sandbox() -> AsyncIterator[Sandbox]:
    async with Sandbox([ECHO, NAP]) as made:
        yield made


def _codes(outcome: Outcome) -> list[str]:
    return [each.code for each in outcome.problems]


# ---- what the API refuses


@pytest.mark.anyio
async def test_a_closed_sandbox_takes_no_more_runs() -> None:
    async with Sandbox() as sandbox:
        assert (await sandbox.run("return 1")).value == 1

    with pytest.raises(RuntimeError, match="closed"):
        await sandbox.run("return 1")


@pytest.mark.anyio
@pytest.mark.parametrize("args", [{1, 2}, float("nan"), {"a": object()}])
async def test_args_that_are_no_json_are_misuse(sandbox: Sandbox, args: object) -> None:
    with pytest.raises(ValueError, match="args must be a JSON value"):
        await sandbox.run("return 1", args=args)


@pytest.mark.anyio
async def test_numbers_out_of_range_are_misuse(sandbox: Sandbox) -> None:
    with pytest.raises(ValueError, match="above zero"):
        await sandbox.run("return 1", timeout=0)
    with pytest.raises(ValueError, match="runs must be"):
        Sandbox(runs=0)


# ---- calls


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
async def test_a_tool_may_run_another_script() -> None:
    async with Sandbox([ECHO]) as inner:

        async def nested(arguments: Json) -> object:
            return (await inner.run("return args.n + 1", args=arguments)).value

        async with Sandbox([Tool("nested", nested)]) as outer:
            assert (await outer.run("return await tools.nested({n: 1})")).value == 2


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


# ---- the end of a run


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
    assert _codes(outcome) == ["UNKNOWN_OUTCOME"]


@pytest.mark.anyio
async def test_a_failed_run_says_which_calls_were_made(sandbox: Sandbox) -> None:
    outcome = await sandbox.run("await tools.echo({a: 1}); text('before'); throw new Error('no')")

    assert outcome.status is RunStatus.FAILED
    assert outcome.text == "before"
    assert [(each.tool, each.state) for each in outcome.records] == [("echo", CallState.OK)]


# ---- cancellation


@pytest.mark.anyio
@pytest.mark.parametrize("then", ["await tools.nap({ms: 9e6})", "while (true) {}"])
async def test_a_run_that_is_cancelled_says_so_and_keeps_its_output(
    sandbox: Sandbox, then: str
) -> None:
    run = await sandbox.prepare(f"text('in'); {then}")

    with anyio.fail_after(10):
        task = asyncio.create_task(run.execute())
        await asyncio.sleep(0.05)
        run.cancel()
        outcome = await task

    assert outcome.status is RunStatus.CANCELLED
    assert outcome.error is None
    assert outcome.text == "in"


@pytest.mark.anyio
async def test_a_run_cancelled_before_it_began_does_nothing(sandbox: Sandbox) -> None:
    run = await sandbox.prepare("text('in')")
    run.cancel()

    assert await run.execute() == Outcome(RunStatus.CANCELLED)


@pytest.mark.anyio
async def test_closing_the_sandbox_cancels_what_runs() -> None:
    sandbox = Sandbox([NAP])
    task = asyncio.create_task(sandbox.run("await tools.nap({ms: 9e6})"))
    await asyncio.sleep(0.05)
    sandbox.close()

    with anyio.fail_after(10):
        assert (await task).status is RunStatus.CANCELLED


@pytest.mark.anyio
@pytest.mark.parametrize("code", ["await tools.hold()", "await tools.echo(); while (true) {}"])
async def test_whoever_is_cancelled_while_waiting_takes_the_calls_along(code: str) -> None:
    gone = asyncio.Event()
    begun = asyncio.Event()

    async def hold(arguments: Json) -> object:
        begun.set()
        try:
            await asyncio.sleep(9_000)
        finally:
            gone.set()

    async def mark(arguments: Json) -> object:
        begun.set()
        gone.set()
        return None

    async with Sandbox([Tool("hold", hold), Tool("echo", mark)], step_ms=2_000) as sandbox:
        with anyio.move_on_after(10) as scope:
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(sandbox.run, code)
                await begun.wait()
                await asyncio.sleep(0.02)
                tasks.cancel_scope.cancel()

    assert not scope.cancelled_caught
    assert gone.is_set()


# ---- limits, each with its own words


X200 = "'x'.repeat(200)"
BROKEN = [
    ({"step_ms": 60}, "while (true) {}", "step_ms"),
    (
        {"engine_ms": 60},
        "for (;;) { await tools.echo(); for (let i = 0; i++ < 1e5; ); }",
        "engine_ms",
    ),
    ({"timeout_ms": 60}, "await tools.nap({ms: 9e6})", "timeout_ms"),
    ({"max_calls": 2}, "for (;;) await tools.echo()", "2 calls"),
    ({"code_bytes": 40}, "return 1 //" + "x" * 40, "code_bytes"),
    ({"code_bytes": 40}, "return 1 //" + "é" * 18, "code_bytes"),
    ({"memory_mib": 8}, "const a = []; for (;;) a.push(new Array(1e5).fill(1))", "memory"),
    ({"written_bytes": 5_000}, "for (;;) text('x'.repeat(100))", "5000"),
    ({"argument_bytes": 100}, f"await tools.echo({{a: {X200}}})", "100"),
    ({"result_bytes": 100}, f"return {X200}", "100"),
    ({"store_value_chars": 100}, f"store('k', {X200})", "100"),
    ({"store_total_chars": 100}, "for (let i = 0; ; i++) store('k' + i, 'x'.repeat(50))", "100"),
]


@pytest.mark.anyio
@pytest.mark.parametrize(("limits", "code", "words"), BROKEN)
async def test_a_limit_is_named_when_it_is_broken(
    limits: dict[str, int], code: str, words: str
) -> None:
    async with Sandbox([ECHO, NAP], **limits) as sandbox:  # pyright: ignore[reportArgumentType] -- a table of them
        outcome = await sandbox.run(code)

    assert outcome.error is not None
    time = words in ("step_ms", "engine_ms", "timeout_ms")
    assert outcome.error.kind is (ErrorKind.TIMEOUT if time else ErrorKind.LIMIT)
    assert words in outcome.error.message


@pytest.mark.anyio
async def test_a_run_has_the_smaller_of_all_limits_of_time(sandbox: Sandbox) -> None:
    code = '// @options {"timeout_ms": 50}\nawait tools.nap({ms: 9e6})'

    outcome = await sandbox.run(code, timeout=60)

    assert outcome.error is not None
    assert "took 50 ms" in outcome.error.message
    assert outcome.error.line == 2


@pytest.mark.anyio
async def test_a_result_without_room_in_the_memory_is_a_rejection() -> None:
    async def big(arguments: Json) -> object:
        return "x" * 12_000_000

    async with Sandbox([Tool("big", big), ECHO], memory_mib=16) as sandbox:
        outcome = await sandbox.run(
            "const seen = await Promise.allSettled([tools.big(), tools.echo({a: 1})]);"
            "return seen.map(each => each.value ?? each.reason.code ?? each.reason.name)"
        )

    assert outcome.status is RunStatus.COMPLETED
    assert outcome.value == ["LIMIT_EXCEEDED", {"a": 1}]


@pytest.mark.anyio
async def test_no_more_runs_than_allowed_go_on_at_once() -> None:
    inside = 0
    most = 0

    async def enter(arguments: Json) -> object:
        nonlocal inside, most
        inside += 1
        most = max(most, inside)
        await asyncio.sleep(0.01)
        inside -= 1
        return None

    async with Sandbox([Tool("enter", enter)], runs=2) as sandbox:
        await asyncio.gather(*(sandbox.run("await tools.enter()") for _ in range(6)))

    assert most == 2


# ---- output


@pytest.mark.anyio
async def test_the_whole_of_a_cut_output_is_kept_where_the_envelope_says() -> None:
    kept: list[str] = []

    async def save(text: str) -> str:
        kept.append(text)
        return "/outputs/1.txt"

    async with Sandbox(save_output=save) as sandbox:
        code = "text('START' + 'x'.repeat(5000) + 'END')"
        outcome = await sandbox.run(code, max_output_chars=500)
        await sandbox.run("text('short')")

    assert kept == ["START" + "x" * 5000 + "END"]
    assert outcome.truncated is not None
    assert (outcome.truncated.chars, outcome.truncated.path) == (5008, "/outputs/1.txt")
    assert "/outputs/1.txt" in outcome.text
    assert len(outcome.text) <= 500


# ---- store


@pytest.mark.anyio
async def test_a_store_may_be_given_and_outlives_its_sandbox() -> None:
    store = MemoryStore()
    async with Sandbox(store=store) as sandbox:
        outcome = await sandbox.run(
            "store('n', [12345678901234567890n]); store('gone', 1); store('gone', undefined)"
        )
    async with Sandbox(store=store) as sandbox:
        again = await sandbox.run("return load('n')")

    assert "n" in outcome.store
    assert again.value == [12345678901234567890]
    assert again.store == ()


@pytest.mark.anyio
async def test_two_runs_together_may_be_too_much_for_the_store() -> None:
    async with Sandbox([NAP], store_total_chars=100) as sandbox:
        code = "store(args.key, 'x'.repeat(60)); await tools.nap({ms: 20})"
        outcomes = await asyncio.gather(*(sandbox.run(code, args={"key": key}) for key in "ab"))

    assert sorted(each.status.value for each in outcomes) == ["completed", "failed"]
    failed = next(each for each in outcomes if each.status is RunStatus.FAILED)
    assert failed.error is not None
    assert failed.error.kind is ErrorKind.LIMIT
    assert failed.store == ()


# ---- the same again


SCRIPT = """
const [a, b] = await Promise.all([tools.nap({ms: 8}), tools.nap({ms: 2})]);
const named = (ms, name) => tools.nap({ms}).then(() => name);
const winner = await Promise.race([named(20, "slow"), named(1, "fast")]);
const bad = await tools.nap({}).catch(e => e.code);
const hits = await searchTools("nap");
console.log(Math.random(), Date.now(), winner, bad, hits.length);
return [a, b, new Date().toISOString(), [3, 1, 2].sort(() => Math.random() - 0.5)]
"""


@pytest.mark.anyio
async def test_the_inputs_of_the_engine_are_the_whole_history_of_a_run(sandbox: Sandbox) -> None:
    journal: list[Entry] = []
    outcome = await sandbox.run(SCRIPT, seed=7, started_ms=1.7e12, on_step=journal.append)
    hashes = {replay(machine(default_cache()), journal).memory_hash() for _ in range(2)}

    assert outcome.status is RunStatus.COMPLETED
    assert len(journal) > 3
    assert len(hashes) == 1
    assert replay(machine(default_cache()), journal).status.name == "DONE"


@pytest.mark.anyio
async def test_seed_and_start_decide_what_chance_and_the_clock_say(sandbox: Sandbox) -> None:
    code = "return [Math.random(), Date.now()]"

    first = await sandbox.run(code, seed=7, started_ms=1.7e12)
    again = await sandbox.run(code, seed=7, started_ms=1.7e12)
    other = await sandbox.run(code, seed=8, started_ms=1.7e12)

    assert first.value == again.value
    assert cast("list[float]", first.value)[1] == 1.7e12
    assert cast("list[float]", first.value)[0] != cast("list[float]", other.value)[0]


def test_the_declarations_stand_ready_for_a_prompt() -> None:
    text = Sandbox([ECHO]).declarations()

    assert "echo(args?: Record<string, unknown>): Promise<unknown>;" in text


@pytest.mark.anyio
async def test_machine_code_is_kept_where_it_was_asked_to_be(tmp_path: Path) -> None:
    async with Sandbox(cache=tmp_path / "code") as sandbox:
        await sandbox.run("return 1")

    assert list((tmp_path / "code").iterdir())
