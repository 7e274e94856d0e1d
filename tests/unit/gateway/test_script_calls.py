"""A script's calls: what is filled in, which lease is waited for, and how a refusal arrives."""

from dataclasses import dataclass, field

import anyio
import pytest

from codespace.codemode import Tool, ToolError
from codespace.codemode.tool import Arguments, Invocation
from codespace.domain.errors import CodeSpaceError, ErrorCode
from codespace.domain.ids import IntentId, RunId, WorkId, WorkspaceId
from codespace.domain.tool import Json
from codespace.gateway.dispatch import Outcome
from codespace.gateway.script_calls import ScriptCalls

pytestmark = pytest.mark.anyio

DONE = Outcome({"ok": True}, is_error=False)


def busy(holder: str) -> Outcome:
    error = CodeSpaceError(
        ErrorCode.WORKSPACE_BUSY,
        "Busy.",
        details={"holder": {"kind": "process", "id": holder}},
    )
    return Outcome(error.body(), is_error=True)


@dataclass(slots=True)
class Line:
    """The one path of every call, with arranged answers; the last of them stays."""

    answers: list[Outcome]
    asked: list[tuple[str, Json, bool]] = field(default_factory=list[tuple[str, Json, bool]])

    async def __call__(self, name: str, arguments: Json, *, owned: bool) -> Outcome:
        self.asked.append((name, arguments, owned))
        return self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]


async def unused(arguments: Arguments) -> object:
    raise NotImplementedError


def invocation(*takes: str, call_no: int = 1, **arguments: object) -> Invocation:
    schema: Json = {"properties": dict.fromkeys(takes, True)}
    return Invocation(call_no, Tool("t", unused, input_schema=schema), arguments, {}, 1)


def starting() -> Invocation:
    """Return a call that takes the lease, as those that start a process do."""
    return Invocation(1, Tool("start", unused, serialize="lease"), {}, {}, 1)


def calls(line: Line, *, busy_wait_ms: int = 0) -> ScriptCalls:
    return ScriptCalls(line, RunId("run-1"), WorkspaceId("here"), busy_wait_ms)


async def test_a_call_goes_out_as_the_scripts_own_and_its_result_comes_back() -> None:
    line = Line([DONE])
    assert await calls(line)(invocation("path", path="a")) == {"ok": True}
    assert line.asked == [("t", {"path": "a"}, True)]


async def test_a_call_without_a_workspace_is_one_in_the_runs_own() -> None:
    line = Line([DONE])
    await calls(line)(invocation("workspace_id", "path"))
    await calls(line)(invocation("workspace_id", "path", workspace_id=None))
    assert [arguments for _, arguments, _ in line.asked] == [{"workspace_id": "here"}] * 2


async def test_a_tool_that_takes_a_workspace_alone_can_be_asked_about_all() -> None:
    line = Line([DONE])
    await calls(line)(invocation("workspace_id"))
    await calls(line)(invocation("workspace_id", workspace_id=None))
    assert [arguments for _, arguments, _ in line.asked] == [{}, {"workspace_id": None}]


async def test_a_workspace_that_is_named_stays_and_a_tool_without_one_gets_none() -> None:
    line = Line([DONE])
    await calls(line)(invocation("workspace_id", workspace_id="there"))
    await calls(line)(invocation("process_id", process_id="p"))
    assert [arguments for _, arguments, _ in line.asked] == [
        {"workspace_id": "there"},
        {"process_id": "p"},
    ]


async def test_a_patch_has_a_key_of_its_call_unless_the_script_gave_one() -> None:
    line = Line([DONE])
    made = calls(line)
    await made(invocation("patch", call_no=7, patch="x"))
    await made(invocation("patch", call_no=8, patch="x", operation_key="mine"))
    keys = [arguments["operation_key"] for _, arguments, _ in line.asked]
    assert keys == ["run-1:7", "mine"]


async def test_the_scripts_arguments_are_left_as_they_are() -> None:
    call = invocation("workspace_id", "patch", patch="x")
    await calls(Line([DONE]))(call)
    assert call.arguments == {"patch": "x"}


async def test_a_refusal_is_an_error_with_all_that_it_says() -> None:
    error = CodeSpaceError(ErrorCode.INVALID_PATCH, "No.", details={"line": 3}, operation_id="op-1")
    with pytest.raises(ToolError) as caught:
        await calls(Line([Outcome(error.body(), is_error=True)]))(invocation())
    assert (caught.value.code, caught.value.message) == ("INVALID_PATCH", "No.")
    assert caught.value.details == {"line": 3, "operation_id": "op-1"}


async def test_a_refusal_without_details_has_none() -> None:
    body = CodeSpaceError(ErrorCode.TIMEOUT, "Late.").body()
    with pytest.raises(ToolError) as caught:
        await calls(Line([Outcome(body, is_error=True)]))(invocation())
    assert caught.value.details is None


async def test_a_workspace_that_is_soon_free_is_waited_for() -> None:
    line = Line([busy("proc-x"), busy("proc-y"), DONE])
    with anyio.fail_after(20):
        result = await calls(line, busy_wait_ms=10_000)(invocation("patch", patch="x"))
    assert result == {"ok": True}
    assert line.asked[0] == line.asked[2]


async def test_a_workspace_that_others_keep_busy_is_refused_in_the_end() -> None:
    line = Line([busy("proc-x")])
    with anyio.fail_after(20), pytest.raises(ToolError) as caught:
        await calls(line, busy_wait_ms=30)(invocation())
    assert caught.value.code == "WORKSPACE_BUSY"
    assert caught.value.details == {"holder": {"kind": "process", "id": "proc-x"}}
    assert len(line.asked) > 1


async def test_a_process_of_the_run_itself_is_waited_for_without_end() -> None:
    mine = Outcome({"process_id": "proc-mine"}, is_error=False)
    line = Line([mine, *[busy("proc-mine")] * 5, DONE])
    made = calls(line, busy_wait_ms=1)
    await made(starting())
    with anyio.fail_after(20):
        assert await made(invocation()) == {"ok": True}
    assert len(line.asked) == 7


async def test_a_process_that_a_call_only_asked_about_is_somebody_elses() -> None:
    seen = Outcome({"process_id": "proc-theirs"}, is_error=False)
    made = calls(Line([seen, busy("proc-theirs")]), busy_wait_ms=1)
    await made(invocation())
    with anyio.fail_after(20), pytest.raises(ToolError, match="WORKSPACE_BUSY"):
        await made(invocation())


async def test_a_call_that_waits_ends_when_it_is_cancelled_and_says_that_it_did_nothing() -> None:
    line = Line([busy("proc-x")])
    with anyio.fail_after(20), pytest.raises(ToolError, match="WORKSPACE_BUSY"):
        with anyio.move_on_after(0.05):
            await calls(line, busy_wait_ms=9_000_000)(invocation())


async def test_a_call_is_part_of_the_runs_work_where_the_tool_takes_one() -> None:
    line = Line([DONE])
    mine = ScriptCalls(line, RunId("run-1"), WorkspaceId("here"), 0, WorkId("work-1"))
    await mine(invocation("work_id"))
    await mine(invocation("work_id", work_id="work-2"))
    await mine(invocation("work_id", work_id=None))
    await mine(invocation())
    asked = [arguments for _, arguments, _ in line.asked]
    own, other = {"work_id": "work-1"}, {"work_id": "work-2"}
    assert asked == [own, other, own, {}]


async def test_what_was_claimed_and_not_completed_is_handed_back_once() -> None:
    def took(intent_id: str) -> Outcome:
        return Outcome({"item": {"intent_id": intent_id}}, is_error=False)

    done = Outcome({"intent_id": "int-1"}, is_error=False)
    nothing = Outcome({"item": None}, is_error=False)
    run = calls(Line([took("int-1"), took("int-2"), nothing, done]))
    claim, complete = (
        Invocation(1, Tool(name, unused), {}, {}, 1)
        for name in ("steer_claim_next", "steer_complete")
    )
    for each in (claim, claim, claim, complete):
        await run(each)
    back = list[IntentId]()

    async def hand_back(intent_id: IntentId) -> None:
        back.append(intent_id)

    await run.hand_back(hand_back)
    await run.hand_back(hand_back)
    assert back == ["int-2"]
