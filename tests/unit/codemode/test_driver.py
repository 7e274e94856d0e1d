"""One script under way: its limits, its end from outside, and its whole history."""

import asyncio
from collections.abc import Sequence
from typing import cast

import anyio
import pytest

from codespace.codemode import ErrorKind, RunStatus, Sandbox, Tool
from codespace.codemode.discovery import Catalogue
from codespace.codemode.machines import default_cache, machine
from codespace.codemode.protocol import Question
from codespace.codemode.questions import answer
from codespace.codemode.vm import Entry, replay
from doubles.loop_lag import watched
from doubles.script_tools import ECHO, NAP, Json

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


@pytest.mark.anyio
async def test_questions_of_a_run_that_is_over_are_not_answered(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    asked: list[Question] = []

    def counted(catalogue: Catalogue, question: Question, arguments: Sequence[object]) -> object:
        asked.append(question)
        return answer(catalogue, question, arguments)

    monkeypatch.setattr("codespace.codemode.questions.answer", counted)
    many = "for (let i = 0; i < 100; i++) searchTools('nap');"
    async with Sandbox([NAP], engine_ms=60) as sandbox:
        over = await sandbox.run(f"{many} while (true) {{}}")
        assert (over.status, asked) == (RunStatus.FAILED, [])
    async with Sandbox([NAP]) as sandbox:
        await sandbox.run(f"{many} await searchTools('nap')")
        assert len(asked) == 101


@pytest.mark.anyio
async def test_a_search_over_large_schemas_lets_the_event_loop_work() -> None:
    words = {"type": "string", "enum": [f"word{number}" for number in range(50)]}
    part = {"type": "object", "properties": {f"part{n}": words for n in range(15)}}
    schema = {"type": "object", "properties": {f"group{n}": part for n in range(15)}}
    tools = [Tool(f"tool{n}", ECHO.fn, input_schema=schema) for n in range(3)]
    code = "return (await searchTools('tool')).length"
    async with Sandbox(tools) as sandbox, watched() as lag:
        outcome = await sandbox.run(code)

    assert outcome.value == 3
    assert lag.naps > 10
