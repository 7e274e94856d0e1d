"""The tools of `codemode`: their arguments, their envelope, and what it says to a reader."""

import json
import re
from collections.abc import AsyncGenerator, AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import cast

import pytest

from binding import check_binding
from codespace.bootstrap import Gateway, open_gateway
from codespace.codemode.json_values import DEPTH_MAX
from codespace.domain.tool import Call, Effect, Json, define
from codespace.gateway.dispatch import Outcome
from codespace.gateway.tools.codemode import (
    CodemodeParams,
    RunParams,
    RunResult,
    StatusParams,
)
from codespace.settings import load
from schemas import fits

FIELDS = {
    *("run_id", "status", "value", "returned", "output", "calls", "problems", "waiting", "error"),
    *("truncated", "store", "wall_ms", "engine_ms"),
}
NAMES = ("codemode", "codemode_status", "codemode_cancel")
CONFIRMING = ("approval_create", "approval_resolve", "operation_resume")
"""The client's and its user's: no script decides, or makes what was decided."""
NOT_IN_SCRIPTS = (*NAMES, *CONFIRMING, "work_open", "work_finish")


@pytest.mark.parametrize("params", [CodemodeParams, RunParams, StatusParams])
def test_the_schema_and_the_binding_say_the_same(params: type[RunParams]) -> None:
    async def never(params: RunParams, call: Call) -> RunResult:
        raise NotImplementedError

    check_binding(define("tool", Effect.SCRIPT, params, RunResult, never, title="t"))


@asynccontextmanager
async def opened(tmp_path: Path, *names: str) -> AsyncGenerator[Gateway]:
    workspaces: dict[str, object] = {}
    for name in names or ("only",):
        root = tmp_path / name
        root.mkdir()
        (root / "name.txt").write_text(name, encoding="utf-8")
        workspaces[name] = {"root": str(root), "profile": "workspace-write"}
    loaded = load(flags={"workspaces": workspaces}, environ={"PATH": "/usr/bin:/bin"})
    async with open_gateway(loaded) as gateway:
        yield gateway


@pytest.fixture
async def gateway(tmp_path: Path) -> AsyncIterator[Gateway]:
    async with opened(tmp_path) as gateway:
        yield gateway


async def ask(gateway: Gateway, name: str, **arguments: object) -> Outcome:
    """Call a tool; its answer fits its schema, whatever it is."""
    outcome = await gateway.dispatcher.call(name, arguments)
    tool = gateway.toolbox.get(name)
    assert tool is not None
    assert fits(tool.output_schema, outcome.body)
    assert outcome.is_error is ("code" in outcome.body)
    return outcome


async def body(gateway: Gateway, name: str, **arguments: object) -> Json:
    return (await ask(gateway, name, **arguments)).body


@pytest.mark.anyio
async def test_the_envelope_has_every_field_also_those_without_a_value(gateway: Gateway) -> None:
    answer = dict(await body(gateway, "codemode", code="return args.n + 1", args={"n": 1}))
    assert set(answer) == FIELDS
    assert re.fullmatch(r"run-[\w-]{22}", str(answer["run_id"]))
    for name in ("run_id", "wall_ms", "engine_ms"):
        del answer[name]
    assert answer == {
        "status": "completed",
        "value": 2,
        "returned": True,
        "output": [],
        "calls": {"total": 0, "ok": 0, "failed": 0, "cancelled": 0, "unknown": 0},
        "problems": [],
        "waiting": None,
        "error": None,
        "truncated": None,
        "store": [],
    }


@pytest.mark.anyio
async def test_a_failure_is_a_result_with_its_place(gateway: Gateway) -> None:
    outcome = await ask(gateway, "codemode", code="text('a');\nnull.x")
    error = cast("Json", outcome.body["error"])
    assert not outcome.is_error
    assert (outcome.body["status"], error["kind"], error["line"]) == ("failed", "script", 2)
    assert outcome.shown is not None
    assert [block["type"] for block in outcome.shown] == ["text", "text"]
    assert "TypeError" in str(outcome.shown[1]["text"])


@pytest.mark.anyio
async def test_a_run_goes_on_after_its_wait_and_is_looked_at_and_cancelled(
    gateway: Gateway,
) -> None:
    code = "await tools.bash({command: 'sleep 600'})"
    first = await body(gateway, "codemode", code=code, wait_ms=0)
    assert first["status"] == "running"
    run = {"run_id": first["run_id"]}
    assert (await body(gateway, "codemode_status", **run))["status"] == "running"
    ended = await body(gateway, "codemode_cancel", **run)
    assert ended["status"] == "cancelled"
    for name in ("codemode_status", "codemode_cancel"):
        assert await body(gateway, name, **run) == ended


@pytest.mark.anyio
@pytest.mark.parametrize("name", ["codemode_status", "codemode_cancel"])
async def test_an_unknown_run_is_refused(gateway: Gateway, name: str) -> None:
    assert (await body(gateway, name, run_id="run-none"))["code"] == "RUN_NOT_FOUND"


@pytest.mark.anyio
async def test_of_several_workspaces_one_has_to_be_named(tmp_path: Path) -> None:
    code = "return (await tools.read({path: 'name.txt'})).content"
    async with opened(tmp_path, "one", "two") as gateway:
        refused = await body(gateway, "codemode", code=code)
        assert refused["code"] == "INVALID_ARGUMENT"
        assert cast("Json", refused["details"])["path"] == "workspace_id"
        assert (await body(gateway, "codemode", code=code, workspace_id="two"))["value"] == "two"
        missing = await body(gateway, "codemode", code=code, workspace_id="three")
        assert missing["code"] == "WORKSPACE_NOT_FOUND"
        named = code.replace("{path", "{workspace_id: 'one', path")
        assert (await body(gateway, "codemode", code=named, workspace_id="two"))["value"] == "one"


@pytest.mark.anyio
@pytest.mark.parametrize("args", [float("nan"), [float("inf")], {"a": {"b": float("-inf")}}])
async def test_args_are_json(gateway: Gateway, args: object) -> None:
    answer = await body(gateway, "codemode", code="return 1", args=args)
    assert answer["code"] == "INVALID_ARGUMENT"
    assert cast("Json", answer["details"])["path"] == "args"


@pytest.mark.anyio
@pytest.mark.parametrize("levels", [DEPTH_MAX + 1, 300, 900, 5_000])
async def test_args_are_not_nested_without_end(gateway: Gateway, levels: int) -> None:
    args: object = 1
    for _ in range(levels):
        args = [args]
    answer = await body(gateway, "codemode", code="return 1", args=args)
    assert (answer["code"], cast("Json", answer["details"])["path"]) == (
        "INVALID_ARGUMENT",
        "args",
    )


@pytest.mark.anyio
async def test_a_script_calls_every_tool_but_itself_and_those_of_confirmations(
    gateway: Gateway,
) -> None:
    named = await body(gateway, "codemode", code="return ALL_TOOLS.map(tool => tool.name)")
    assert named["value"] == [name for name in gateway.toolbox.names if name not in NOT_IN_SCRIPTS]
    for name in NAMES:
        answer = await body(gateway, "codemode", code=f"await tools.{name}({{code: ''}})")
        assert answer["status"] == "failed"


@pytest.mark.anyio
async def test_the_description_declares_the_tools_and_stays_small(gateway: Gateway) -> None:
    tool = gateway.toolbox.get("codemode")
    assert tool is not None
    assert len(tool.description) < 12_000
    own = [name for name in gateway.toolbox.names if name not in NOT_IN_SCRIPTS]
    assert [name for name in own if f"{name}(" not in tool.description] == []
    example = tool.description.partition("Example: ")[2].partition("\n\n")[0]
    answer = await body(gateway, "codemode", code=example)
    assert (answer["status"], answer["value"]) == ("completed", [])


@pytest.mark.anyio
async def test_the_example_sees_more_files_than_find_lists_by_default_and_tells_of_a_cut(
    gateway: Gateway, tmp_path: Path
) -> None:
    tool = gateway.toolbox.get("codemode")
    assert tool is not None
    example = tool.description.partition("Example: ")[2].partition("\n\n")[0]
    for number in range(1_100):
        (tmp_path / "only" / f"{number}.py").write_text("NOTE", encoding="utf-8")
    whole = await body(gateway, "codemode", code=f"{example[: example.rindex('.map(')]}.length")
    assert (whole["value"], whole["output"]) == (1_100, [])
    cut = await body(gateway, "codemode", code=example.replace("limit: 10000", "limit: 2"))
    assert "not all files" in str(cut["output"])


@pytest.mark.anyio
async def test_hints_and_policy_follow_from_the_effects(gateway: Gateway) -> None:
    effects: Mapping[str, Effect] = {tool.name: tool.effect for tool in gateway.toolbox}
    assert [effects[name] for name in NAMES] == [Effect.SCRIPT, Effect.INSPECT, Effect.SCRIPT]
    idempotent = [tool.idempotent for tool in gateway.toolbox if tool.name in NAMES]
    assert idempotent == [False, True, True]


@pytest.mark.anyio
async def test_an_image_reaches_the_reader_as_an_image(gateway: Gateway) -> None:
    code = "image({type: 'text', data: 'AA==', mimeType: 'image/png'}); return 1"
    outcome = await ask(gateway, "codemode", code=code)
    image = {"type": "image", "data": "AA==", "mimeType": "image/png"}
    assert outcome.shown == [image, {"type": "text", "text": "1"}]
    assert json.loads(json.dumps(outcome.body["output"])) == [image]
