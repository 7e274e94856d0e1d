"""The gateway's tools as scripts see them, and as the description of `codemode` has them."""

import json
from collections.abc import AsyncIterator, Mapping
from pathlib import Path
from typing import cast

import pytest

from codespace.bootstrap import open_gateway
from codespace.codemode.discovery import Catalogue
from codespace.domain.ids import WorkspaceId
from codespace.domain.tool import Effect, Json, Tool
from codespace.gateway.script_outcomes import OF_SCRIPTS
from codespace.gateway.script_tools import BRIEF_CHARS, brief, script_tool
from codespace.settings import load
from schemas import fits

pytestmark = pytest.mark.anyio

HERE = WorkspaceId("here")
Tools = Mapping[str, Tool]


@pytest.fixture
async def tools(tmp_path: Path) -> AsyncIterator[Tools]:
    loaded = load(path=str(tmp_path), environ={"PATH": "/usr/bin:/bin"})
    async with open_gateway(loaded) as gateway:
        yield {tool.name: tool for tool in gateway.toolbox}


def required(schema: Json | None) -> list[str]:
    assert schema is not None
    return cast("list[str]", schema.get("required", []))


async def test_the_workspace_and_the_work_may_be_left_out_and_nothing_else(tools: Tools) -> None:
    for tool in tools.values():
        needed = required(script_tool(tool, HERE).input_schema)
        own = [n for n in required(tool.input_schema) if n not in ("workspace_id", "work_id")]
        assert needed == own
    assert fits(script_tool(tools["read"], HERE).input_schema or {}, {"path": "a"})
    assert not fits(script_tool(tools["read"], HERE).input_schema or {}, {})


async def test_a_tool_keeps_its_name_description_and_effect(tools: Tools) -> None:
    for tool in tools.values():
        made = script_tool(tool, HERE)
        assert (made.name, made.description) == (tool.name, tool.description)
        assert made.effect is tool.effect


async def test_what_resolves_is_a_result_and_never_an_error(tools: Tools, tmp_path: Path) -> None:
    error: Json = {"code": "TIMEOUT", "message": "Late."}
    found: Json = {"paths": ["a"], "truncated": False}
    for tool, result in ((tools["find"], found), (tools["read"], {"code": "x"})):
        schema = script_tool(tool, HERE).output_schema or {}
        assert "ToolError" not in cast("Json", schema["$defs"])
        assert not fits(schema, error)
        assert fits(schema, result) is (result is found)


async def test_calls_that_take_the_lease_of_a_workspace_queue_up_behind_each_other(
    tools: Tools,
) -> None:
    leased = {
        name: script_tool(tool, HERE).serial_key({})
        for name, tool in tools.items()
        if script_tool(tool, HERE).serialize is not None
    }
    assert leased == dict.fromkeys(("apply_patch", "exec_command", "bash"), "here")
    bash = script_tool(tools["bash"], HERE)
    assert bash.serial_key({"workspace_id": "there"}) == "there"
    assert bash.serial_key({"workspace_id": None}) == "here"


async def test_only_a_patch_is_completed_once_it_has_begun(tools: Tools) -> None:
    completing = [name for name, tool in tools.items() if script_tool(tool, HERE).completes]
    assert completing == ["apply_patch"]
    assert tools["apply_patch"].effect is Effect.WRITE


async def test_a_tool_is_called_by_the_runs_dispatch_alone(tools: Tools) -> None:
    with pytest.raises(RuntimeError, match="dispatch"):
        await script_tool(tools["read"], HERE).fn({})


def without_coordination(schema: Json | None) -> Json:
    """Return the parts of a result's schema that have nothing to do with works."""
    parts = cast("Mapping[str, Mapping[str, Json]]", (schema or {})["$defs"])
    extra = ("work_id", "coordination")
    return {
        name: {key: field for key, field in part.get("properties", {}).items() if key not in extra}
        for name, part in parts.items()
        if name != "Coordination"
    }


async def test_in_brief_a_tool_has_one_paragraph_and_no_large_schema(tools: Tools) -> None:
    for tool in tools.values():
        short = brief(tool)
        assert tool.description.startswith(short.description)
        assert "\n\n" not in short.description
        whole = script_tool(tool, WorkspaceId("")).output_schema
        if short.output_schema is not None:
            assert without_coordination(short.output_schema) == without_coordination(whole)
            assert "coordination" not in json.dumps(short.output_schema)
    assert brief(tools["read"]).output_schema is not None
    assert brief(tools["workspace_info"]).output_schema is None
    assert len(str(script_tool(tools["workspace_info"], HERE).output_schema)) > BRIEF_CHARS


async def test_a_result_that_always_has_a_field_is_declared_to_have_it(tools: Tools) -> None:
    text = Catalogue([brief(tools["bash"])]).text()
    assert "full_output_path?: string" in text
    assert "truncated: boolean" in text
    assert "workspace_id?: string" in text


@pytest.mark.parametrize(
    ("first", "queries"),
    [
        (
            ("apply_patch",),
            [
                *("change a file", "edit file", "modify a file", "write a file", "update a file"),
                *("create file", "delete a file", "remove file", "rename a file", "move a file"),
                *("replace text in a file", "add a line", "insert text", "save a file", "fix code"),
            ],
        ),
        (
            ("bash", "exec_command"),
            ["run a command", "run the tests", "test", "execute a program", "build"],
        ),
        (("bash",), ["shell", "run a command"]),
        (("exec_command",), ["start a server"]),
        (("read",), ["open a file", "show a file", "read file"]),
        (("find",), ["list files", "list directory"]),
        (("grep",), ["search text", "search for a pattern in files"]),
        (("terminate_process",), ["stop a process", "kill a process"]),
        (("write_stdin",), ["send input"]),
    ],
)
async def test_a_search_in_everyday_words_finds_the_tool_for_it(
    tools: Tools, first: tuple[str, ...], queries: list[str]
) -> None:
    callable_ones = [tool for name, tool in tools.items() if name not in OF_SCRIPTS]
    catalogue = Catalogue([script_tool(tool, HERE) for tool in callable_ones])
    for query in queries:
        found = [str(each["name"]) for each in catalogue.search(query, limit=len(first))]
        assert set(found) == set(first), query


async def test_words_for_a_search_are_shown_to_nobody(tools: Tools) -> None:
    words = tools["apply_patch"].search_words
    assert words
    catalogue = Catalogue([script_tool(tools["apply_patch"], HERE)])
    for shown in (catalogue.text(), catalogue.describe_tool("apply_patch"), catalogue.entries()):
        assert words not in str(shown)
