"""What a run comes to: its envelope, its cancellation, its output and its store."""

import asyncio

import anyio
import pytest

from codespace.codemode import CallState, ErrorKind, Outcome, RunStatus, Sandbox, Tool
from doubles.script_tools import NAP


@pytest.mark.anyio
async def test_a_failed_run_says_which_calls_were_made(sandbox: Sandbox) -> None:
    outcome = await sandbox.run("await tools.echo({a: 1}); text('before'); throw new Error('no')")

    assert outcome.status is RunStatus.FAILED
    assert outcome.text == "before"
    assert [(each.tool, each.state) for each in outcome.records] == [("echo", CallState.OK)]


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
async def test_a_run_is_executed_once(sandbox: Sandbox) -> None:
    run = await sandbox.prepare("return await tools.echo({a: 1})")

    assert (await run.execute()).value == {"a": 1}
    with pytest.raises(RuntimeError, match="once"):
        await run.execute()


@pytest.mark.anyio
async def test_a_run_is_not_executed_a_second_time_beside_the_first(sandbox: Sandbox) -> None:
    run = await sandbox.prepare("await tools.nap({ms: 5}); return 1")

    ends = await asyncio.gather(run.execute(), run.execute(), return_exceptions=True)

    assert sorted(type(each).__name__ for each in ends) == ["Outcome", "RuntimeError"]


@pytest.mark.anyio
@pytest.mark.parametrize("limit", ["option", "script"])
async def test_a_run_under_way_shows_what_it_has_printed_within_its_limit(limit: str) -> None:
    seen: list[Outcome] = []

    async def look(arguments: object) -> object:
        seen.append(run.so_far())
        return None

    options = '// @options {"max_output_chars": 400}\n' if limit == "script" else ""
    code = (
        "text('step 1'); image({type: 'image', data: 'AA==', mimeType: 'image/png'});"
        "await tools.look(); text('y'.repeat(1000)); await tools.look()"
    )
    async with Sandbox([Tool("look", look)]) as sandbox:
        run = await sandbox.prepare(
            options + code, max_output_chars=400 if limit == "option" else None, run_id="run-1"
        )
        before = run.so_far()
        ended = await run.execute()

    assert before == Outcome(RunStatus.RUNNING, run_id="run-1")
    first, second = seen
    assert (first.status, first.run_id) == (RunStatus.RUNNING, "run-1")
    assert [item.to_json()["type"] for item in first.output] == ["text", "image"]
    assert (first.text, first.truncated) == ("step 1", None)
    assert 0 < first.engine_ms <= second.engine_ms <= ended.engine_ms
    assert second.output == ended.output
    assert second.truncated == ended.truncated
    assert second.truncated is not None


@pytest.mark.anyio
async def test_a_run_has_the_smaller_of_all_limits_of_time(sandbox: Sandbox) -> None:
    code = '// @options {"timeout_ms": 50}\nawait tools.nap({ms: 9e6})'

    outcome = await sandbox.run(code, timeout=60)

    assert outcome.error is not None
    assert "took 50 ms" in outcome.error.message
    assert outcome.error.line == 2


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


@pytest.mark.anyio
async def test_the_store_holds_so_many_keys() -> None:
    async with Sandbox(store_keys=3) as sandbox:
        filled = await sandbox.run("for (const key of 'abc') store(key, 1)")
        assert filled.status is RunStatus.COMPLETED
        exchanged = await sandbox.run("store('a'); store('d', 1)")
        assert exchanged.status is RunStatus.COMPLETED
        over = await sandbox.run("store('e', 1)")
        assert over.error is not None
        assert (over.error.kind, "store_keys" in over.error.message) == (ErrorKind.LIMIT, True)
        assert (await sandbox.run("return load('e') ?? null")).value is None


@pytest.mark.anyio
async def test_images_without_room_are_told_of() -> None:
    async with Sandbox() as sandbox:
        block = "{type: 'image', data: 'AA==', mimeType: 'image/png'}"
        outcome = await sandbox.run(f"for (let i = 0; i < 60; i++) image({block})")
    assert len(outcome.output) == 50
    assert [(each.code, each.message[:2]) for each in outcome.problems] == [
        ("IMAGES_LEFT_OUT", "10")
    ]


@pytest.mark.anyio
async def test_a_flood_of_questions_is_refused_and_can_be_ended() -> None:
    async with Sandbox([NAP], max_calls=5) as sandbox:
        code = "for (let i = 0; i < 6; i++) await searchTools('nap')"
        refused = await sandbox.run(code)
        assert refused.error is not None
        assert "may ask 5 times" in refused.error.message
    async with Sandbox([NAP]) as sandbox:
        code = "for (let i = 0; i < 60_000; i++) searchTools('read file patch'); return 1"
        with anyio.fail_after(30):
            outcome = await sandbox.run(code, timeout=0.5)
    assert outcome.error is not None
    assert "may ask 5000 times" in outcome.error.message


@pytest.mark.anyio
@pytest.mark.parametrize(
    ("code", "returned"),
    [
        *[(code, True) for code in ("return null", "return 0", "exit(null)", "text(1); return []")],
        *[(code, False) for code in ("const x = 5; x * 2", "return undefined", "exit()", "null.x")],
    ],
)
async def test_null_is_told_from_nothing(sandbox: Sandbox, code: str, *, returned: bool) -> None:
    outcome = await sandbox.run(code)
    assert outcome.returned is returned
    assert outcome.to_json()["returned"] is returned
    if outcome.error is None:
        assert ("nothing was returned" in outcome.reading()) is not returned
