"""The toolbox as an MCP server: what clients are told of tools, and how outcomes travel."""

import json
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from typing import cast

import anyio
import mcp_types as types
import pytest
from hypothesis import given
from hypothesis import strategies as st
from mcp import Client
from mcp.shared.exceptions import MCPError

from codespace.adapters import mcp_server
from codespace.adapters.in_flight import InFlight
from codespace.domain.errors import CodeSpaceError, ErrorCode
from codespace.domain.limits import Limits
from codespace.domain.tool import Call, Effect, Params, Result, Tool, define
from codespace.gateway.dispatch import Dispatcher, Outcome
from codespace.gateway.toolbox import Toolbox

LIMIT = 256 * 1024


class Text(Params):
    """A text."""

    text: str = ""
    """What to say."""


class Said(Result):
    """What was said."""

    text: str


async def say(params: Text, call: Call) -> Said:
    """Say it."""
    if params.text == "refuse":
        raise CodeSpaceError(ErrorCode.TIMEOUT, "Too slow.", details={"written": 1})
    return Said(text=params.text)


def tool(effect: Effect = Effect.READ, *, idempotent: bool = False) -> Tool:
    return define("say", effect, Text, Said, say, title="Say it", idempotent=idempotent)


def only_text(answer: types.CallToolResult) -> str:
    (item,) = answer.content
    assert isinstance(item, types.TextContent)
    return item.text


def of_size(size: int, character: str = "x") -> dict[str, object]:
    """Return a body whose compact JSON has this many bytes."""
    room = size - len('{"text":""}')
    wide = len(character.encode())
    return {"text": character * (room // wide) + "x" * (room % wide)}


# Results.


def test_a_result_is_an_object_and_the_same_object_as_text() -> None:
    body = {"text": "é\n", "n": 1, "none": None, "list": [True, 0.5]}
    answer = mcp_server.result(Outcome(body, is_error=False), LIMIT)
    assert answer.structured_content == body
    assert json.loads(only_text(answer)) == body
    assert not answer.is_error


def test_an_error_is_a_result_that_says_so() -> None:
    body = CodeSpaceError(ErrorCode.TIMEOUT, "Wait.").body()
    answer = mcp_server.result(Outcome(body, is_error=True), LIMIT)
    assert answer.is_error
    assert json.loads(only_text(answer)) == answer.structured_content == body


@pytest.mark.parametrize("character", ["x", "é", "€", "😀"])
@pytest.mark.parametrize(("size", "summarised"), [(-1, 0), (0, 0), (1, 1), (3, 1)])
def test_text_above_the_limit_is_one_line_and_nothing_is_sent_twice(
    character: str, size: int, summarised: int
) -> None:
    body = of_size(LIMIT + size, character)
    answer = mcp_server.result(Outcome(body, is_error=False), LIMIT)
    text = only_text(answer)
    assert answer.structured_content == body
    if summarised:
        assert str(LIMIT + size) in text
        assert "\n" not in text
        assert len(text) < 100
    else:
        assert len(text.encode()) == LIMIT + size
        assert json.loads(text) == body


@given(text=st.text(max_size=30), limit=st.integers(11, 100))
def test_the_text_is_the_json_or_a_summary_by_its_bytes_alone(text: str, limit: int) -> None:
    body: dict[str, object] = {"text": text}
    whole = json.dumps(body, ensure_ascii=False, separators=(",", ":"))
    sent = only_text(mcp_server.result(Outcome(body, is_error=False), limit))
    assert (sent == whole) is (len(whole.encode()) <= limit)


def test_what_a_tool_shows_takes_the_place_of_the_json() -> None:
    shown = [
        {"type": "text", "text": "read me"},
        {"type": "image", "data": "AA==", "mimeType": "image/png"},
    ]
    answer = mcp_server.result(Outcome({"text": "x"}, is_error=False, shown=shown), LIMIT)
    assert answer.structured_content == {"text": "x"}
    assert [item.model_dump(by_alias=True, exclude_none=True) for item in answer.content] == shown
    assert not answer.is_error


# Descriptions.


def test_steering_changes_something_and_destroys_nothing() -> None:
    hints = mcp_server.wire_tool(tool(Effect.STEER, idempotent=False)).annotations
    assert hints is not None
    assert (hints.read_only_hint, hints.destructive_hint, hints.open_world_hint) == (
        False,
        False,
        False,
    )


@pytest.mark.parametrize(
    ("effect", "reads", "reaches_out"),
    [
        (Effect.INSPECT, 1, 0),
        (Effect.READ, 1, 0),
        (Effect.WRITE, 0, 0),
        (Effect.EXECUTE, 0, 1),
        (Effect.SCRIPT, 0, 1),
    ],
)
@pytest.mark.parametrize("idempotent", [True, False])
def test_all_four_hints_follow_from_the_effect(
    effect: Effect, reads: int, reaches_out: int, *, idempotent: bool
) -> None:
    hints = mcp_server.wire_tool(tool(effect, idempotent=idempotent)).annotations
    assert hints is not None
    assert hints.read_only_hint is bool(reads)
    assert hints.destructive_hint is not bool(reads)
    assert hints.open_world_hint is bool(reaches_out)
    assert hints.idempotent_hint is idempotent


def test_a_tool_is_described_as_it_was_defined() -> None:
    defined = tool()
    wire = mcp_server.wire_tool(defined)
    assert (wire.name, wire.title, wire.description) == ("say", "Say it", "Say it.")
    assert wire.input_schema == defined.input_schema
    assert wire.output_schema == defined.output_schema


# The server, by the SDK's own client.


@asynccontextmanager
async def connected(in_flight: InFlight, mode: str) -> AsyncGenerator[Client]:
    server = mcp_server.build(
        Dispatcher(Toolbox([tool()]), {}), version="1.2.3", limits=Limits(), in_flight=in_flight
    )
    async with Client(server, mode=mode, cache=None) as client:  # pyright: ignore[reportArgumentType] -- a revision's name is a literal there
        yield client


MODES = pytest.mark.parametrize("mode", ["legacy", "2026-07-28"])


@pytest.mark.anyio
async def test_a_client_is_told_when_a_script_is_better_than_calls() -> None:
    async with connected(InFlight(), "legacy") as client:
        told = client.instructions or ""
    assert "workspace_info first" in told
    assert "For more than a few calls, write one codemode script." in told


@pytest.mark.anyio
@MODES
async def test_the_tools_are_listed(mode: str) -> None:
    async with connected(InFlight(), mode) as client:
        listed = (await client.list_tools()).tools
    assert [item.name for item in listed] == ["say"]
    properties = cast("Mapping[str, Mapping[str, object]]", listed[0].input_schema["properties"])
    assert properties["text"]["description"] == "What to say."


@pytest.mark.anyio
@MODES
async def test_a_call_is_answered_with_its_result(mode: str) -> None:
    async with connected(InFlight(), mode) as client:
        answer = await client.call_tool("say", {"text": "hé"})
    assert answer.structured_content == {"text": "hé"}
    assert json.loads(only_text(answer)) == {"text": "hé"}


@pytest.mark.anyio
@MODES
async def test_a_call_without_arguments_is_a_call_with_none(mode: str) -> None:
    async with connected(InFlight(), mode) as client:
        answer = await client.call_tool("say")
    assert answer.structured_content == {"text": ""}


@pytest.mark.anyio
@MODES
async def test_a_refusal_is_a_tool_result_and_no_protocol_error(mode: str) -> None:
    async with connected(InFlight(), mode) as client:
        answer = await client.call_tool("say", {"text": "refuse"})
    assert answer.is_error
    assert answer.structured_content == {
        "code": "TIMEOUT",
        "message": "Too slow.",
        "details": {"written": 1},
    }


@pytest.mark.anyio
@MODES
async def test_an_unknown_tool_is_a_protocol_error_that_repeats_nothing(mode: str) -> None:
    async with connected(InFlight(), mode) as client:
        with pytest.raises(MCPError) as caught:
            await client.call_tool("hunter2", {})
    assert caught.value.error.code == -32602
    assert "hunter2" not in caught.value.error.message


@pytest.mark.anyio
@MODES
async def test_a_gateway_that_shuts_down_takes_no_more_calls(mode: str) -> None:
    in_flight = InFlight()
    async with connected(in_flight, mode) as client:
        in_flight.close()
        with pytest.raises(MCPError) as caught:
            await client.call_tool("say", {"text": "x"})
    assert caught.value.error.code == mcp_server.SHUTTING_DOWN


@pytest.mark.anyio
async def test_a_call_counts_as_in_flight_until_it_is_answered() -> None:
    in_flight, running, goes_on = InFlight(), anyio.Event(), anyio.Event()

    async def slow(params: Text, call: Call) -> Said:
        """Wait."""
        running.set()
        await goes_on.wait()
        return Said(text="done")

    slowly = define("slow", Effect.READ, Text, Said, slow, title="Slow")
    server = mcp_server.build(
        Dispatcher(Toolbox([slowly]), {}), version="1", limits=Limits(), in_flight=in_flight
    )
    async with Client(server, mode="legacy", cache=None) as client:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(client.call_tool, "slow")
            await running.wait()
            assert not await in_flight.drained(0)
            goes_on.set()
        assert await in_flight.drained(5)


@pytest.mark.anyio
@MODES
async def test_progress_reaches_a_client_that_asked_for_it_and_nobody_else(mode: str) -> None:
    async def slow(params: Text, call: Call) -> Said:
        """Report."""
        assert call.report is not None
        await call.report(1, 3)
        await call.report(2, 3)
        return Said(text="done")

    slowly = define("slow", Effect.READ, Text, Said, slow, title="Slow")
    server = mcp_server.build(
        Dispatcher(Toolbox([slowly]), {}), version="1", limits=Limits(), in_flight=InFlight()
    )
    told: list[tuple[float, float | None]] = []

    async def note(progress: float, total: float | None, message: str | None) -> None:
        told.append((progress, total))

    async with Client(server, mode=mode, cache=None) as client:  # pyright: ignore[reportArgumentType] -- a revision's name is a literal there
        await client.call_tool("slow", {})
        assert told == []
        answer = await client.call_tool("slow", {}, progress_callback=note)
    assert told == [(1, 3), (2, 3)]
    assert answer.structured_content == {"text": "done"}
