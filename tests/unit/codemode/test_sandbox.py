"""What an author of a harness relies on: misuse is refused, runs share what they should."""

import asyncio
import subprocess
import sys
from pathlib import Path
from typing import cast

import anyio
import pytest

from codespace.codemode import MemoryStore, RunStatus, Sandbox, Tool
from codespace.codemode.outcome import ErrorKind
from codespace.codemode.sandbox import RunOptions
from codespace.domain.run_limits import LimitOptions
from doubles.script_tools import ECHO, NAP, Json


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


@pytest.mark.anyio
async def test_names_that_nobody_knows_are_misuse(sandbox: Sandbox) -> None:
    with pytest.raises(TypeError, match="did you mean 'timeout_ms'"):
        Sandbox(**cast("LimitOptions", {"timout_ms": 1}))
    with pytest.raises(TypeError, match="did you mean 'timeout'"):
        await sandbox.run("return 1", **cast("RunOptions", {"timeout_ms": 1}))


@pytest.mark.anyio
@pytest.mark.parametrize(
    ("option", "value"),
    [
        *[("timeout", value) for value in ("1", True, [1])],
        *[("max_output_chars", value) for value in (1.5, "1")],
        *[(name, "x") for name in ("seed", "started_ms", "progress", "dispatch", "on_step")],
        ("run_id", 5),
    ],
)
async def test_an_option_of_another_kind_is_misuse(
    sandbox: Sandbox, option: str, value: object
) -> None:
    options = cast("RunOptions", {option: value})
    with pytest.raises(TypeError, match=f"the option {option} must be .*, not "):
        await sandbox.run("return 1", **options)


@pytest.mark.anyio
async def test_what_is_no_script_and_no_tool_is_misuse(sandbox: Sandbox) -> None:
    with pytest.raises(TypeError, match="the script must be text, not bytes"):
        await sandbox.run(cast("str", b"return 1"))
    with pytest.raises(ValueError, match="above zero"):
        await sandbox.run("return 1", timeout=float("nan"))
    for tools in ([ECHO.fn], ECHO, ["echo"]):
        with pytest.raises(TypeError, match="tools must be a list of Tool values, not "):
            Sandbox(cast("list[Tool]", tools))


@pytest.mark.anyio
async def test_a_tool_may_run_another_script() -> None:
    async with Sandbox([ECHO]) as inner:

        async def nested(arguments: Json) -> object:
            return (await inner.run("return args.n + 1", args=arguments)).value

        async with Sandbox([Tool("nested", nested)]) as outer:
            assert (await outer.run("return await tools.nested({n: 1})")).value == 2


@pytest.mark.anyio
async def test_closing_the_sandbox_cancels_what_runs() -> None:
    sandbox = Sandbox([NAP])
    task = asyncio.create_task(sandbox.run("await tools.nap({ms: 9e6})"))
    await asyncio.sleep(0.05)
    sandbox.close()

    with anyio.fail_after(10):
        assert (await task).status is RunStatus.CANCELLED


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


def test_the_declarations_stand_ready_for_a_prompt() -> None:
    text = Sandbox([ECHO]).declarations()

    assert "echo(args?: Record<string, unknown>): Promise<unknown>;" in text


@pytest.mark.anyio
async def test_machine_code_is_kept_where_it_was_asked_to_be(tmp_path: Path) -> None:
    async with Sandbox(cache=tmp_path / "code") as sandbox:
        await sandbox.run("return 1")

    assert list((tmp_path / "code").iterdir())


FIRST_RUN = """
import asyncio, sys
from codespace.codemode import Sandbox

async def first():
    async with Sandbox() as sandbox:
        return (await sandbox.run("return 1 + 2")).value

dear = {"anyio", "pydantic", "jsonschema", "tempfile", "secrets", "codespace.domain.limits"}
only_with_tools = {"codespace.codemode.discovery", "codespace.codemode.typescript"}
print(asyncio.run(first()), *((dear | only_with_tools) & set(sys.modules)))
"""


def test_a_first_run_imports_nothing_that_costs_more_than_itself() -> None:
    command = [sys.executable, "-c", FIRST_RUN]
    ended = subprocess.run(command, capture_output=True, text=True, timeout=50, check=True)
    assert ended.stdout.split() == ["3"]


FAILING_TOOL = """
import asyncio
from codespace.codemode import Sandbox, Tool

async def broken(arguments):
    raise LookupError("a secret")

async def first():
    async with Sandbox([Tool("broken", broken)]) as sandbox:
        return await sandbox.run("await tools.broken()")

print(asyncio.run(first()).status)
"""


def test_a_failing_tool_writes_nothing_where_nobody_asked_for_a_log() -> None:
    command = [sys.executable, "-c", FAILING_TOOL]
    ended = subprocess.run(command, capture_output=True, text=True, timeout=50, check=True)
    assert (ended.stdout, ended.stderr) == ("failed\n", "")


@pytest.mark.anyio
async def test_a_call_whose_task_had_not_begun_when_its_run_ended_is_never_made() -> None:
    made: list[object] = []

    async def note(arguments: object) -> None:
        made.append(arguments)

    async with Sandbox([Tool("note", note)]) as sandbox:
        run = await sandbox.prepare(
            "await tools.note({})",
            progress=lambda _: run.cancel(),
        )
        outcome = await run.execute()
        made_by_then = list(made)
        for _ in range(10):
            await asyncio.sleep(0)

    assert outcome.status is RunStatus.CANCELLED
    assert made == made_by_then


@pytest.mark.anyio
async def test_a_run_that_waits_for_its_turn_is_cancelled_by_the_end_of_the_sandbox() -> None:
    begun = asyncio.Event()

    async def wait(arguments: object) -> None:
        begun.set()
        await asyncio.Event().wait()

    sandbox = Sandbox([Tool("wait", wait)], runs=1)
    runs = [asyncio.create_task(sandbox.run("await tools.wait(); return 1")) for _ in range(3)]
    await begun.wait()
    sandbox.close()

    assert {(await run).status for run in runs} == {RunStatus.CANCELLED}


def test_a_sandbox_outlives_an_event_loop_in_which_runs_had_to_wait() -> None:
    sandbox = Sandbox([NAP], runs=1)

    async def burst() -> list[RunStatus]:
        runs = [sandbox.run("await tools.nap({ms: 1}); return 1") for _ in range(3)]
        return [each.status for each in await asyncio.gather(*runs)]

    assert [asyncio.run(burst()) for _ in range(2)] == [[RunStatus.COMPLETED] * 3] * 2


@pytest.mark.anyio
async def test_what_was_stored_under_a_higher_limit_can_be_read_and_shrunk() -> None:
    store = MemoryStore()
    async with Sandbox(store=store) as sandbox:
        await sandbox.run("store('a', 'x'.repeat(5000)); store('b', 'y'.repeat(5000))")

    async with Sandbox(store=store, store_total_chars=6_000) as sandbox:
        read = await sandbox.run("return load('a').length")
        grown = await sandbox.run("store('c', 1)")
        shrunk = await sandbox.run("store('a', undefined); return load('b').length")

    assert (read.value, shrunk.value) == (5_000, 5_000)
    assert grown.error is not None
    assert "store_total_chars" in grown.error.message
    assert list(await store.read()) == ["b"]


@pytest.mark.anyio
async def test_args_without_room_in_the_memory_break_its_limit_by_name() -> None:
    rows = [{"number": number, "text": str(number)} for number in range(60_000)]
    async with Sandbox(memory_mib=8) as sandbox:
        outcome = await sandbox.run("return 1", args=rows)

    assert outcome.error is not None
    assert (outcome.error.kind, "memory_mib" in outcome.error.message) == (ErrorKind.LIMIT, True)
