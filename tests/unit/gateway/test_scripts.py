"""Runs of scripts in a gateway: how they begin, wait, end, and what comes of values and effects."""

from collections.abc import AsyncGenerator, AsyncIterator, Callable, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field, replace
from itertools import count
from pathlib import Path

import anyio
import pytest

from codespace.codemode import ErrorKind, Outcome, Progress, RunStatus
from codespace.codemode.json_values import DEPTH_MAX
from codespace.codemode.store import MemoryStore
from codespace.domain.errors import CodeSpaceError, ErrorCode
from codespace.domain.ids import RunId, RunKey, WorkspaceId
from codespace.domain.run_limits import RunLimits
from codespace.domain.tool import Call, Effect, Json, Params, Result, Tool, define
from codespace.domain.workspace import Environment, Profile, Workspace
from codespace.gateway import dispatch
from codespace.gateway.dispatch import Dispatcher
from codespace.gateway.script_runs import RunRecord
from codespace.gateway.scripts import QUEUED_FOR_EACH, ScriptOrder, ScriptParts, Scripts
from codespace.gateway.toolbox import Toolbox
from codespace.workspace.directory import register

pytestmark = pytest.mark.anyio

FEW = RunLimits(runs=1, output_chars=400)
PATIENCE_MS = 30_000


class Anything(Params):
    """A workspace and a number."""

    workspace_id: str | None = None
    number: int = 0


class Number(Result):
    """A number."""

    number: int


@dataclass(slots=True)
class World:
    """A few tools and their scripts. `hold` waits for `go_on`, and is told to be begun."""

    root: Path
    workspace: Workspace
    go_on: anyio.Event = field(default_factory=anyio.Event)
    begun: anyio.Event = field(default_factory=anyio.Event)
    store_broken: bool = False
    scripts: Scripts = field(init=False)

    async def look(self, params: Anything, call: Call) -> Number:
        """Look."""
        return Number(number=params.number)

    async def hold(self, params: Anything, call: Call) -> Number:
        """Wait."""
        self.begun.set()
        await self.go_on.wait()
        return Number(number=params.number)

    def tools(self) -> list[Tool]:
        def made(name: str, effect: Effect, handler: Callable[..., object]) -> Tool:
            return define(name, effect, Anything, Number, handler, title=name)  # pyright: ignore[reportArgumentType] -- both are the same kind of handler

        return [
            made("look", Effect.READ, self.look),
            made("change", Effect.WRITE, self.look),
            made("hold", Effect.READ, self.hold),
            made("work", Effect.EXECUTE, self.hold),
        ]

    def store_of(self, workspace_id: WorkspaceId) -> MemoryStore:
        if self.store_broken:
            raise ZeroDivisionError
        return MemoryStore()

    def start(self, code: str, **order: object) -> RunRecord:
        return self.scripts.start(self.workspace, ScriptOrder(code, **order))  # pyright: ignore[reportArgumentType] -- options by name

    async def run(self, code: str, **order: object) -> Outcome:
        return await self.scripts.wait(self.start(code, **order), PATIENCE_MS)

    @property
    def files(self) -> list[Path]:
        return [path for path in self.root.rglob("*") if path.is_file()]


@asynccontextmanager
async def open_world(
    root: Path, limits: RunLimits = FEW, **settings: object
) -> AsyncGenerator[World]:
    given = {"profile": Profile.WORKSPACE_WRITE, **settings}
    workspace = Workspace(WorkspaceId("here"), register(str(root)), **given)  # pyright: ignore[reportArgumentType] -- settings by name
    world, numbers = World(root, workspace), count(1)
    dispatcher = Dispatcher(Toolbox(world.tools()), {workspace.workspace_id: workspace})

    async def call(name: str, arguments: Json, *, owned: bool) -> dispatch.Outcome:
        return await dispatcher.call(name, arguments, owned=owned)

    async with AsyncExitStack() as ending:
        tasks = await ending.enter_async_context(anyio.create_task_group())
        parts = ScriptParts(
            tools=world.tools(),
            call=call,
            store_of=world.store_of,
            tasks=tasks,
            threads=anyio.CapacityLimiter(1),
            mint=lambda prefix: f"{prefix}{next(numbers)}",
            now_ms=lambda: 0,
        )
        world.scripts = Scripts(parts, limits)
        yield world
        await world.scripts.close()


@pytest.fixture
async def world(tmp_path: Path) -> AsyncIterator[World]:
    async with open_world(tmp_path) as world:
        yield world


def codes(outcome: Outcome) -> list[str]:
    return [problem.code for problem in outcome.problems]


# Beginning and ending.


async def test_a_run_is_known_by_its_id_from_its_start_on(world: World) -> None:
    record = world.start("return await tools.look({number: 5})")
    assert world.scripts.get(record.run_id) is record
    outcome = await world.scripts.wait(record, PATIENCE_MS)
    assert (outcome.status, outcome.value) == (RunStatus.COMPLETED, {"number": 5})
    assert outcome.run_id == record.run_id == "run-1"
    with pytest.raises(CodeSpaceError) as caught:
        world.scripts.get(RunId("run-9"))
    assert caught.value.code is ErrorCode.RUN_NOT_FOUND


async def test_a_wait_that_is_over_leaves_the_run_going(world: World) -> None:
    code = "text('in'); await tools.look(); return (await tools.hold({number: 3})).number"
    record = world.start(code)
    await world.begun.wait()
    standing = await world.scripts.wait(record, 0)
    assert (standing.text, standing.engine_ms > 0) == ("in", True)
    assert (standing.status, standing.run_id) == (RunStatus.RUNNING, record.run_id)
    assert (standing.calls.total, standing.calls.ok) == (2, 1)
    world.go_on.set()
    assert (await world.scripts.wait(record, PATIENCE_MS)).value == 3


async def test_who_waits_is_told_of_calls_that_finish(world: World) -> None:
    told: list[tuple[int, int]] = []

    async def report(done: int, known: int) -> None:
        told.append((done, known))
        world.go_on.set()

    record = world.start("await tools.look(); await tools.look(); await tools.hold()")
    await world.scripts.wait(record, PATIENCE_MS, report)
    assert told[0] == (2, 3)
    assert told[-1] == (3, 3)


async def test_a_watch_is_told_of_each_call(world: World) -> None:
    told: list[Progress] = []
    order = ScriptOrder("await tools.look()")
    record = world.scripts.start(world.workspace, order, watch=told.append)
    await world.scripts.wait(record, PATIENCE_MS)
    assert [(each.record.tool, each.finished) for each in told] == [("look", 0), ("look", 1)]


async def test_cancelling_ends_a_run_and_what_it_came_to_stays(world: World) -> None:
    record = world.start("text('before'); await tools.hold()")
    await world.begun.wait()
    outcome = await world.scripts.cancel(record)
    assert (outcome.status, outcome.text) == (RunStatus.CANCELLED, "before")
    assert codes(outcome) == ["CANCELLED"]
    assert await world.scripts.cancel(record) == outcome


async def test_a_run_waits_for_its_turn_and_may_be_cancelled_meanwhile(world: World) -> None:
    first = world.start("await tools.hold()")
    await world.begun.wait()
    second, third = world.start("return 2"), world.start("await tools.change()")
    assert (await world.scripts.wait(second, 0)).status is RunStatus.RUNNING
    third.cancel()
    world.go_on.set()
    ends = [await world.scripts.wait(each, PATIENCE_MS) for each in (first, second, third)]
    assert [end.status.value for end in ends] == ["completed", "completed", "cancelled"]
    assert ends[2].calls.total == 0
    assert ends[2].run_id == third.run_id


async def test_only_so_many_runs_may_wait(world: World) -> None:
    runs = [world.start("await tools.hold()") for _ in range(1 + QUEUED_FOR_EACH)]
    with pytest.raises(CodeSpaceError) as caught:
        world.start("return 1")
    assert caught.value.code is ErrorCode.LIMIT_EXCEEDED
    assert caught.value.details == {"limit": "codemode_runs", "maximum": 1}
    world.go_on.set()
    for each in runs:
        await each.ended.wait()
    assert (await world.run("return 1")).value == 1


async def test_closing_ends_what_runs_and_what_waits_and_takes_no_more(world: World) -> None:
    runs = [world.start("await tools.hold()"), world.start("return 1")]
    await world.begun.wait()
    await world.scripts.close()
    ends = [(await world.scripts.wait(each, 0)).status for each in runs]
    assert ends == [RunStatus.CANCELLED] * 2
    with pytest.raises(CodeSpaceError) as caught:
        world.start("return 1")
    assert caught.value.code is ErrorCode.LIMIT_EXCEEDED
    await world.scripts.close()


async def test_a_bug_of_the_gateway_is_that_runs_end_and_not_the_gateways(
    world: World, caplog: pytest.LogCaptureFixture
) -> None:
    world.store_broken = True
    outcome = await world.run("return 1")
    assert outcome.status is RunStatus.FAILED
    assert outcome.error is not None
    assert outcome.error.kind is ErrorKind.ENGINE
    assert "ZeroDivisionError" in caplog.text
    world.store_broken = False
    assert (await world.run("return 1")).value == 1


# The same request again.


async def test_the_same_key_and_request_are_the_same_run(world: World) -> None:
    key = RunKey("k")
    first = world.start("return Math.random()", run_key=key, args={"a": 1, "b": 2})
    again = world.start("return Math.random()", run_key=key, args={"b": 2, "a": 1})
    assert again is first
    await first.ended.wait()
    assert world.start("return Math.random()", run_key=key, args={"a": 1, "b": 2}) is first
    assert world.start("return Math.random()", args={"a": 1, "b": 2}) is not first


@pytest.mark.parametrize(
    "other", [{"code": "2"}, {"args": {}}, {"timeout_ms": 5}, {"max_output_chars": 5}]
)
async def test_the_same_key_with_another_request_is_a_conflict(
    world: World, other: dict[str, object]
) -> None:
    order = ScriptOrder("1", run_key=RunKey("k"))
    world.scripts.start(world.workspace, order)
    with pytest.raises(CodeSpaceError) as caught:
        world.scripts.start(world.workspace, replace(order, **other))  # pyright: ignore[reportArgumentType] -- fields by name
    assert caught.value.code is ErrorCode.RUN_CONFLICT


# Values that are too much.


@pytest.mark.parametrize(
    ("order", "most"),
    [
        (ScriptOrder("1"), 400),
        (ScriptOrder("1", max_output_chars=5), 5),
        (ScriptOrder("1", max_output_chars=500), 400),
        (ScriptOrder('// @options {"max_output_chars": 7}'), 7),
        (ScriptOrder('// @options {"max_output_chars": 7}', max_output_chars=6), 6),
        (ScriptOrder("// @options nonsense"), 400),
    ],
)
async def test_the_smallest_of_all_limits_holds_for_a_value(order: ScriptOrder, most: int) -> None:
    assert order.shown_chars(400) == most


async def test_a_value_of_exactly_the_limit_is_shown(world: World) -> None:
    outcome = await world.run("return 'x'.repeat(398)")
    assert outcome.value == "x" * 398
    assert outcome.truncated is None


async def test_a_longer_value_is_in_a_file_that_the_envelope_names(world: World) -> None:
    outcome = await world.run("return 'é'.repeat(399)")
    assert outcome.status is RunStatus.COMPLETED
    assert (outcome.value, codes(outcome)) == (None, ["VALUE_TOO_LONG"])
    assert outcome.truncated is not None
    assert (outcome.truncated.chars, outcome.truncated.kept_chars) == (401, 0)
    assert outcome.truncated.path is not None
    assert outcome.truncated.path in outcome.problems[0].message
    kept = (world.root / outcome.truncated.path).read_text(encoding="utf-8")
    assert kept == '"' + "é" * 399 + '"'


async def test_a_value_that_no_client_could_parse_is_in_a_file_too(world: World) -> None:
    code = "let v = 1; for (let i = 0; i < args; i++) v = [v]; return v"
    shown = await world.run(code, args=DEPTH_MAX)
    assert (codes(shown), shown.truncated) == ([], None)
    outcome = await world.run(code, args=DEPTH_MAX + 1)
    assert (outcome.value, codes(outcome)) == (None, ["VALUE_TOO_DEEP"])
    assert outcome.truncated is not None
    assert outcome.truncated.path is not None
    kept = (world.root / outcome.truncated.path).read_text(encoding="utf-8")
    assert kept.count("[") == DEPTH_MAX + 1


async def test_output_that_is_cut_is_in_a_file_as_well(world: World) -> None:
    outcome = await world.run("text('x'.repeat(1000)); return 1")
    assert (outcome.value, codes(outcome)) == (1, [])
    assert outcome.truncated is not None
    assert outcome.truncated.path is not None
    assert (world.root / outcome.truncated.path).read_text(encoding="utf-8") == "x" * 1_000


@pytest.mark.parametrize(
    "settings",
    [{"profile": Profile.READ_ONLY}, {"environment": Environment.LINUX_CONTAINER}],
)
async def test_where_clients_may_not_write_nothing_is_written(
    tmp_path: Path, settings: dict[str, object]
) -> None:
    async with open_world(tmp_path, FEW, **settings) as world:
        outcome = await world.run("text('y'.repeat(1000)); return 'x'.repeat(1000)")
        assert codes(outcome) == ["VALUE_TOO_LONG"]
        assert outcome.truncated is not None
        assert outcome.truncated.path is None
        assert world.files == []


@pytest.mark.parametrize("name", ["codemode", "codemode_status"])
async def test_a_script_that_would_nest_is_told_that_it_cannot(world: World, name: str) -> None:
    outcome = await world.run(f"return await tools.{name}({{code: 'return 1'}})")
    assert outcome.error is not None
    assert f"unknown tool '{name}'" in outcome.error.message
    assert "a script cannot run or look at scripts" in outcome.error.message


async def test_a_name_that_is_no_tool_is_answered_with_a_near_one(world: World) -> None:
    outcome = await world.run("return await tools.lok()")
    assert outcome.error is not None
    assert "did you mean look" in outcome.error.message
    assert "scripts" not in outcome.error.message


async def test_output_and_value_that_are_both_cut_are_both_told(world: World) -> None:
    outcome = await world.run("text('o'.repeat(1000)); return 'v'.repeat(500)")
    assert (outcome.value, codes(outcome)) == (None, ["VALUE_TOO_LONG"])
    cut = outcome.truncated
    assert cut is not None
    assert cut.value is not None
    assert (cut.chars, cut.value.chars, cut.value.kept_chars) == (1_000, 502, 0)
    assert cut.path is not None
    assert cut.value.path is not None
    assert (world.root / cut.path).read_text(encoding="utf-8") == "o" * 1_000
    assert (world.root / cut.value.path).read_text(encoding="utf-8") == f'"{"v" * 500}"'


async def test_many_problems_do_not_hide_that_the_value_was_cut(world: World) -> None:
    code = "for (let i = 0; i < 200; i++) Promise.reject(new Error(i)); return 'v'.repeat(500)"
    problems = (await world.run(code)).to_json()["problems"]
    assert isinstance(problems, list)
    assert problems[0]["code"] == "VALUE_TOO_LONG"
    assert problems[-1]["code"] == "MORE_PROBLEMS"


async def test_a_file_that_cannot_be_written_costs_only_itself(world: World) -> None:
    (world.root / ".codespace").write_text("in the way", encoding="utf-8")
    outcome = await world.run("return 'x'.repeat(1000)")
    assert (outcome.status, codes(outcome)) == (RunStatus.COMPLETED, ["VALUE_TOO_LONG"])
    assert "not kept" in outcome.problems[0].message


# Effects that remain.


def remaining(outcome: Outcome) -> Sequence[str]:
    return [each.message for each in outcome.problems if each.code == "EFFECTS_REMAIN"]


async def test_a_failed_run_says_which_of_its_calls_changed_something(world: World) -> None:
    outcome = await world.run("await tools.look(); await tools.change(); throw new Error('no')")
    (said,) = remaining(outcome)
    assert "change (1)" in said
    assert "look" not in said


async def test_a_call_that_was_ended_half_way_may_have_changed_something(world: World) -> None:
    record = world.start("await tools.work()")
    await world.begun.wait()
    (said,) = remaining(await world.scripts.cancel(record))
    assert "work (1)" in said


async def test_a_run_that_changed_nothing_or_completed_says_nothing_of_it(world: World) -> None:
    assert remaining(await world.run("await tools.look(); throw 1")) == []
    assert remaining(await world.run("await tools.change()")) == []
    refused = await world.run("await tools.change({number: 'x'})")
    assert (refused.status, remaining(refused)) == (RunStatus.FAILED, [])


# For who writes scripts.


async def test_the_declarations_name_every_tool(world: World) -> None:
    text = world.scripts.declarations()
    assert all(f"{tool.name}(" in text for tool in world.tools())


async def test_each_workspace_has_a_store_of_its_own(world: World, tmp_path: Path) -> None:
    other = replace(world.workspace, workspace_id=WorkspaceId("there"))
    await world.run("store('k', 1)")
    order = ScriptOrder("return load('k') ?? null")
    there = await world.scripts.wait(world.scripts.start(other, order), PATIENCE_MS)
    assert ((await world.run(order.code)).value, there.value) == (1, None)


async def test_a_completed_run_tells_of_calls_that_it_cut(world: World) -> None:
    outcome = await world.run("tools.work(); await tools.look(); return 1")
    assert outcome.status is RunStatus.COMPLETED
    assert ["work (1)" in each for each in remaining(outcome)] == [True]
