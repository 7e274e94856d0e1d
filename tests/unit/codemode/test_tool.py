from collections.abc import Awaitable, Callable
from typing import cast

import pytest

from codespace.codemode.tool import Invocation, Tool, ToolError, call_directly
from codespace.domain.effect import Effect


async def _echo(arguments: object) -> object:
    return arguments


CONSTANT: Callable[[object], object] = lambda arguments: arguments  # noqa: E731 -- what is tested


def test_a_tool_that_says_nothing_may_write_and_belongs_to_nobody() -> None:
    tool = Tool("read", _echo)

    assert tool.effect is Effect.WRITE
    assert tool.server == ""
    assert tool.serial_key({}) is None


def test_a_tool_belongs_to_the_server_of_its_name_unless_it_says_otherwise() -> None:
    assert Tool("mcp__hub__list", _echo).server == "hub"
    assert Tool("mcp__hub__list", _echo, namespace="").server == ""


def test_a_key_may_depend_on_the_arguments() -> None:
    tool = Tool("write", _echo, serialize=lambda arguments: str(arguments.get("to")))

    assert tool.serial_key({"to": "a"}) == "a"
    assert Tool("write", _echo, serialize="all").serial_key({}) == "all"


def test_an_error_says_its_code_and_its_sentence() -> None:
    error = ToolError("BUSY", "Try later.", {"after": 3})

    assert str(error) == "BUSY: Try later."
    assert error.details == {"after": 3}


@pytest.mark.anyio
async def test_a_direct_call_is_the_tools_own_function() -> None:
    call = Invocation(1, Tool("echo", _echo), {"a": 1}, {}, 3)

    assert await call_directly(call) == {"a": 1}


def test_a_blocking_function_is_no_tool() -> None:
    def blocking(arguments: object) -> object:
        return arguments

    with pytest.raises(TypeError, match=r"tool 'read' must be async.*asyncio.to_thread"):
        Tool("read", cast("Callable[[object], Awaitable[object]]", blocking))


def test_an_error_takes_another_exception_for_its_sentence() -> None:
    error = ToolError("LOST", cast("str", OSError("no link")))

    assert (error.message, str(error)) == ("no link", "LOST: no link")


@pytest.mark.parametrize(
    ("wrong", "error", "said"),
    [
        ({"name": 5}, TypeError, "the name of a tool must be text, not int"),
        ({"description": None}, TypeError, "the description of 'x' must be text"),
        ({"effect": "read"}, TypeError, "the effect of 'x' must be an Effect, not str: 'read'"),
        ({"input_schema": {"type": "nope"}}, ValueError, "the input_schema of 'x' has the type"),
        ({"output_schema": ["object"]}, TypeError, "the output_schema of 'x' must be a JSON"),
        ({"fn": CONSTANT}, TypeError, "must be async"),
    ],
)
def test_a_tool_that_could_not_work_is_refused(
    wrong: dict[str, object], error: type[Exception], said: str
) -> None:
    given = {"name": "x", "fn": _echo, **wrong}
    with pytest.raises(error, match=said):
        cast("Callable[..., Tool]", Tool)(**given)


def test_what_a_server_says_of_its_tools_is_taken_as_it_is() -> None:
    Tool("mcp__hub__list", _echo, input_schema={"type": "nope"})
    Tool("list", _echo, namespace="hub", output_schema={"type": "nope"})
