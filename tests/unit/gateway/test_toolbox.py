"""The registry of tools."""

import pytest

from codespace.domain.tool import Call, Effect, Params, Result, Tool, define
from codespace.gateway.toolbox import Toolbox


class Nothing(Params):
    """No arguments."""


class Done(Result):
    """Nothing to tell."""


async def do(params: Nothing, call: Call) -> Done:
    """Do it."""
    return Done()


def tool(name: str) -> Tool:
    return define(name, Effect.INSPECT, Nothing, Done, do, title=name)


def test_tools_keep_the_order_in_which_they_were_given() -> None:
    toolbox = Toolbox([tool("b"), tool("a"), tool("c")])
    assert toolbox.names == ("b", "a", "c")
    assert [item.name for item in toolbox] == ["b", "a", "c"]


def test_a_tool_is_found_by_its_whole_name_alone() -> None:
    found = tool("read")
    toolbox = Toolbox([found])
    assert toolbox.get("read") is found
    assert toolbox.get("Read") is None
    assert toolbox.get("rea") is None
    assert toolbox.get("") is None


def test_two_tools_of_one_name_are_refused() -> None:
    with pytest.raises(ValueError, match="two tools are named 'read'"):
        Toolbox([tool("read"), tool("find"), tool("read")])
