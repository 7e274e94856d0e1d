"""The one path of every call: what runs, what is refused before it runs, what is logged."""

import json
import logging
import re
import threading
from dataclasses import dataclass, field, replace

import anyio
import anyio.lowlevel
import pytest

from codespace.domain.errors import CodeSpaceError, ErrorCode
from codespace.domain.ids import WorkspaceId
from codespace.domain.tool import BoundCall, Call, Effect, Json, Params, Result, define
from codespace.domain.workspace import Approvals, Profile, Root, Workspace
from codespace.gateway.dispatch import (
    Admitted,
    Dispatcher,
    Hold,
    Outcome,
    UnknownToolError,
    workspace_not_found,
)
from codespace.gateway.toolbox import Toolbox

pytestmark = pytest.mark.anyio

SECRET = "hunter2-hunter2"
WRITABLE = Workspace(WorkspaceId("writable"), Root("/w", 1, 2), Profile.WORKSPACE_WRITE)
READ_ONLY = Workspace(WorkspaceId("read-only"), Root("/r", 1, 3))


class Anything(Params):
    """A workspace, perhaps, and a text."""

    workspace_id: str | None = None
    text: str = ""


class Said(Result):
    """What was said."""

    text: str


@dataclass(slots=True)
class World:
    """A dispatcher over one tool of each effect. `calls` has what reached a handler."""

    calls: list[Call] = field(default_factory=list[Call])
    failure: BaseException | None = None

    async def say(self, params: Anything, call: Call) -> Said:
        """Say it."""
        self.calls.append(call)
        if self.failure is not None:
            raise self.failure
        return Said(text=params.text)

    async def call(self, name: str, **arguments: object) -> Outcome:
        toolbox = Toolbox(
            define(effect.value, effect, Anything, Said, self.say, title=effect.value)
            for effect in Effect
        )
        known = {item.workspace_id: item for item in (WRITABLE, READ_ONLY)}
        return await Dispatcher(toolbox, known).call(name, arguments)


@pytest.fixture
def world() -> World:
    return World()


def code_of(outcome: Outcome) -> object:
    assert outcome.is_error
    return outcome.body["code"]


async def test_a_call_that_is_permitted_runs_with_its_workspace(world: World) -> None:
    outcome = await world.call("write", workspace_id="writable", text="hi")
    assert outcome == Outcome({"text": "hi"}, is_error=False)
    assert world.calls == [Call(WRITABLE)]


async def test_a_call_that_names_no_workspace_runs_without_one(world: World) -> None:
    assert not (await world.call("execute", text="hi")).is_error
    assert world.calls == [Call()]


async def test_what_the_caller_is_reaches_the_handler(world: World) -> None:
    async def report(done: int, known: int) -> None:
        raise NotImplementedError

    only = define("read", Effect.READ, Anything, Said, world.say, title="read")
    dispatcher = Dispatcher(Toolbox([only]), {WRITABLE.workspace_id: WRITABLE})
    given = {"workspace_id": "writable"}
    await dispatcher.call("read", given, report=report, owned=True)
    assert world.calls == [Call(WRITABLE, report, owned=True)]


async def test_a_tool_may_show_its_result_in_another_way_and_never_its_refusal(
    world: World,
) -> None:
    def show(body: Json) -> list[Json]:
        return [{"type": "text", "text": f"said {body['text']}"}]

    only = define("read", Effect.READ, Anything, Said, world.say, title="read", show=show)
    dispatcher = Dispatcher(Toolbox([only]), {})
    outcome = await dispatcher.call("read", {"text": "hi"})
    assert outcome.shown == [{"type": "text", "text": "said hi"}]
    assert outcome.body == {"text": "hi"}
    world.failure = CodeSpaceError(ErrorCode.TIMEOUT, "Late.")
    assert (await dispatcher.call("read", {"text": "hi"})).shown is None


async def held(admitted: Admitted) -> CodeSpaceError:
    """Keep nothing, and say what was to be kept."""
    given = dict(admitted.bound.given())
    return CodeSpaceError(ErrorCode.APPROVAL_REQUIRED, "Held.", details=given, approval_id="appr-1")


@dataclass(slots=True)
class Confirming(World):
    """A tool whose calls wait, unless its text is `harmless`; `recorded` is what is known of it."""

    recorded: Said | None = None
    order: list[str] = field(default_factory=list[str])

    async def known(self, params: Anything, call: Call) -> Said | None:
        self.order.append("known")
        return self.recorded

    def dispatcher(self, *, hold: Hold | None = held, confirm: bool = True) -> Dispatcher:
        approvals = Approvals.CONFIRM if confirm else Approvals.OFF
        places = [replace(place, approvals=approvals) for place in (WRITABLE, READ_ONLY)]
        tool = define(
            "write",
            Effect.WRITE,
            Anything,
            Said,
            self.say,
            title="write",
            mutates=lambda params: params.text != "harmless",
            known=self.known,
        )
        return Dispatcher(
            Toolbox([tool]), {place.workspace_id: place for place in places}, hold=hold
        )


WRITE = {"workspace_id": "writable", "text": "hi", "approved": True}


async def test_a_call_that_has_to_be_confirmed_is_held_with_its_valid_arguments() -> None:
    world = Confirming()
    outcome = await world.dispatcher().call("write", WRITE)
    assert outcome.body == {
        "code": "APPROVAL_REQUIRED",
        "message": "Held.",
        "details": {"workspace_id": "writable", "text": "hi"},
        "approval_id": "appr-1",
    }
    assert (world.calls, world.order) == ([], ["known"])


async def test_arguments_then_policy_then_what_is_recorded_come_before_a_hold() -> None:
    world = Confirming()
    dispatcher = world.dispatcher()
    for given, code in (
        ({"workspace_id": 1}, "INVALID_ARGUMENT"),
        ({"workspace_id": "none"}, "WORKSPACE_NOT_FOUND"),
        ({"workspace_id": "read-only"}, "UNAUTHORIZED"),
    ):
        assert code_of(await dispatcher.call("write", given)) == code
    assert world.order == []
    world.recorded = Said(text="before")
    assert await dispatcher.call("write", WRITE) == Outcome({"text": "before"}, is_error=False)
    assert world.calls == []


async def test_a_call_that_need_not_wait_is_not_asked_for_what_is_recorded() -> None:
    world = Confirming()
    assert not (await world.dispatcher().call("write", {**WRITE, "text": "harmless"})).is_error
    assert not (await world.dispatcher(confirm=False).call("write", WRITE)).is_error
    assert world.order == []


async def test_a_confirmed_call_runs_under_the_policy_of_now() -> None:
    world = Confirming()
    assert not (await world.dispatcher().confirmed("write", WRITE)).is_error
    refused = await world.dispatcher().confirmed("write", {"workspace_id": "read-only"})
    assert code_of(refused) == "UNAUTHORIZED"
    assert len(world.calls) == 1


async def test_where_nobody_keeps_calls_one_that_has_to_be_confirmed_is_not_made() -> None:
    world = Confirming()
    assert code_of(await world.dispatcher(hold=None).call("write", WRITE)) == "INTERNAL"
    assert world.calls == []


async def test_large_arguments_do_not_hold_up_the_event_loop(world: World) -> None:
    said = define("say", Effect.INSPECT, Anything, Said, world.say, title="say")
    let_go, seen = threading.Event(), list[bool]()

    def bind(arguments: Json) -> BoundCall:
        seen.append(let_go.wait(10))
        return said.bind(arguments)

    dispatcher = Dispatcher(Toolbox([replace(said, bind=bind)]), {})
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(dispatcher.call, "say", {"text": "hi", "more": [0] * 10_000})
        await anyio.lowlevel.checkpoint()
        let_go.set()

    assert seen == [True]


async def test_large_arguments_are_judged_like_small_ones(world: World) -> None:
    outcome = await world.call("inspect", more=[0] * 10_000, text="\ud800")

    assert code_of(outcome) == "INVALID_ARGUMENT"
    assert outcome.body["details"] == {
        "path": "text",
        "problems": [
            {
                "path": "text",
                "problem": "Text should be valid Unicode, without lone surrogates",
            }
        ],
    }


async def test_an_unknown_tool_is_the_callers_to_answer(world: World) -> None:
    with pytest.raises(UnknownToolError):
        await world.call("no_such_tool")


async def test_arguments_are_judged_before_the_workspace(world: World) -> None:
    outcome = await world.call("write", workspace_id="nowhere", text=1)
    assert code_of(outcome) == "INVALID_ARGUMENT"


async def test_an_unknown_workspace_is_refused_before_anything_runs(world: World) -> None:
    outcome = await world.call("read", workspace_id="nowhere")
    assert code_of(outcome) == "WORKSPACE_NOT_FOUND"
    assert "'nowhere'" in str(outcome.body["message"])
    assert world.calls == []


@pytest.mark.parametrize("name", ["", "READ-ONLY", "read-only ", "../read-only", "/r"])
async def test_a_workspace_is_known_by_its_exact_name_alone(world: World, name: str) -> None:
    assert code_of(await world.call("read", workspace_id=name)) == "WORKSPACE_NOT_FOUND"


@pytest.mark.parametrize(
    ("effect", "reached"),
    [("inspect", [READ_ONLY]), ("read", [READ_ONLY]), ("write", []), ("execute", [])],
)
async def test_policy_is_asked_before_anything_runs(
    world: World, effect: str, reached: list[Workspace]
) -> None:
    outcome = await world.call(effect, workspace_id="read-only")
    assert [call.workspace for call in world.calls] == reached
    assert outcome.body.get("code") == (None if reached else "UNAUTHORIZED")
    assert outcome.is_error is (not reached)


async def test_claims_of_the_client_grant_nothing(world: World) -> None:
    outcome = await world.call(
        "write",
        workspace_id="read-only",
        approved=True,
        profile="workspace-write",
        environment_id="host",
        network=True,
    )
    assert code_of(outcome) == "UNAUTHORIZED"


async def test_a_refusal_is_an_outcome(world: World) -> None:
    world.failure = CodeSpaceError(ErrorCode.FILE_NOT_FOUND, "No file.", details={"path": "a"})
    outcome = await world.call("read", workspace_id="writable")
    assert outcome.body == {
        "code": "FILE_NOT_FOUND",
        "message": "No file.",
        "details": {"path": "a"},
    }


@pytest.mark.parametrize(
    "bug", [ValueError(SECRET), KeyError(SECRET), ExceptionGroup(SECRET, [OSError(SECRET)])]
)
@pytest.mark.requirement("code.internal")
async def test_a_bug_is_answered_with_a_reference_that_the_log_repeats(
    world: World, bug: Exception, caplog: pytest.LogCaptureFixture
) -> None:
    world.failure = bug
    outcome = await world.call("read", workspace_id="writable", text=SECRET)
    assert code_of(outcome) == "INTERNAL"
    assert SECRET not in json.dumps(dict(outcome.body))
    reference = re.search(r"reference ([0-9a-f]{12})\.", str(outcome.body["message"]))
    assert reference is not None
    errors = [record for record in caplog.records if record.levelno == logging.ERROR]
    assert [record.getMessage() for record in errors] == [
        f"call failed tool=read reference={reference[1]}"
    ]
    assert errors[0].exc_info is not None


async def test_two_bugs_have_two_references(world: World) -> None:
    world.failure = ValueError()
    first, second = [(await world.call("read")).body["message"] for _ in range(2)]
    assert first != second


async def test_a_caller_that_leaves_is_not_a_bug(
    world: World, caplog: pytest.LogCaptureFixture
) -> None:
    world.failure = anyio.get_cancelled_exc_class()()
    with pytest.raises(anyio.get_cancelled_exc_class()):
        await world.call("read")
    assert caplog.records == []


async def test_a_call_is_one_line_of_log_without_its_arguments(
    world: World, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, "codespace")
    await world.call("read", workspace_id="writable", text=SECRET)
    await world.call("write", workspace_id="read-only", text=SECRET)
    lines = [record.getMessage() for record in caplog.records]
    assert [line.rpartition(" ms=")[0] for line in lines] == [
        "call tool=read outcome=ok",
        "call tool=write outcome=UNAUTHORIZED",
    ]
    assert SECRET not in caplog.text


async def test_a_result_that_has_a_code_of_its_own_is_logged_as_good(
    caplog: pytest.LogCaptureFixture,
) -> None:
    class Coded(Result):
        code: str = "1234"

    async def handler(params: Anything, call: Call) -> Coded:
        return Coded()

    caplog.set_level(logging.INFO, "codespace")
    tool = define("coded", Effect.INSPECT, Anything, Coded, handler, title="Coded")
    await Dispatcher(Toolbox([tool]), {}).call("coded", {})
    assert "outcome=ok" in caplog.text


async def test_quiet_logging_writes_no_line_a_call(
    world: World, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.WARNING, "codespace")
    await world.call("read", text="x")
    assert caplog.records == []


def test_a_long_workspace_id_is_cut_in_the_error() -> None:
    assert len(workspace_not_found(WorkspaceId("x" * 10_000)).message) < 500
