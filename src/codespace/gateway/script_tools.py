"""A tool of the gateway as a script sees it: the same one, with the run's workspace and work."""

import json
from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from typing import cast

from codespace.codemode.tool import Arguments
from codespace.codemode.tool import Tool as ScriptTool
from codespace.domain.coordination import ARGUMENT, FIELD
from codespace.domain.effect import Effect
from codespace.domain.ids import WorkspaceId
from codespace.domain.tool import Json, Tool

OF_THE_RUN = ("workspace_id", ARGUMENT)
"""Arguments that a run fills in where its script leaves them out."""

BRIEF_CHARS = 4_000
"""A result whose schema is larger has to be asked for with `describeTool`."""


def script_tool(tool: Tool, workspace_id: WorkspaceId) -> ScriptTool:
    """Return the tool for scripts of one workspace. Its calls go out by the run's dispatch."""
    return ScriptTool(
        tool.name,
        _by_dispatch,
        description=tool.description,
        input_schema=_with_defaults(tool.input_schema),
        output_schema=_result_only(tool.output_schema),
        effect=tool.effect,
        serialize=partial(_leased, workspace_id) if tool.takes_lease else None,
        completes=tool.takes_lease and tool.effect is Effect.WRITE,
        judges=True,  # by the gateway, as any client's call is
        search_words=tool.search_words,
    )


def brief(tool: Tool) -> ScriptTool:
    """Return the tool as the description of `codemode` has it: a client knows the rest already.

    What a run's work adds to each tool is said once, in the description itself.
    """
    whole = script_tool(tool, WorkspaceId(""))
    result = whole.output_schema
    return replace(
        whole,
        description=tool.description.partition("\n\n")[0],
        input_schema=_untold(_without(whole.input_schema or {}, ARGUMENT), "workspace_id"),
        output_schema=None
        if result is None or len(json.dumps(result)) > BRIEF_CHARS
        else _without_coordination(result),
    )


async def _by_dispatch(arguments: Arguments) -> object:
    raise RuntimeError("a script's calls of the gateway's tools go out by the run's dispatch")


def _leased(default: WorkspaceId, arguments: Json) -> str:
    given = arguments.get("workspace_id")
    return given if isinstance(given, str) else default


def _with_defaults(schema: Json) -> Json:
    required = cast("list[str]", schema.get("required", []))
    return {**schema, "required": [name for name in required if name not in OF_THE_RUN]}


def _without(schema: Json, name: str) -> Json:
    properties = cast("Json", schema.get("properties", {}))
    return {**schema, "properties": {key: properties[key] for key in properties if key != name}}


def _untold(schema: Json, name: str) -> Json:
    properties = cast("Mapping[str, Json]", schema["properties"])
    if name not in properties:
        return schema
    bare = {key: value for key, value in properties[name].items() if key != "description"}
    return {**schema, "properties": {**properties, name: bare}}


def _without_coordination(result: Json) -> Json:
    definitions = cast("Mapping[str, Json]", result["$defs"])
    kept = {
        name: _without(value, FIELD) for name, value in definitions.items() if "properties" in value
    }
    return {**result, "$defs": {**definitions, **kept}} if kept else result


def _result_only(schema: Json) -> Json:
    # A refusal rejects the promise: what resolves is always a result.
    choices = cast("list[Json]", schema["anyOf"])
    definitions = cast("Mapping[str, Json]", schema["$defs"])
    kept = {name: _terse(value) for name, value in definitions.items() if name != "ToolError"}
    return {**choices[0], "$defs": kept}


def _terse(schema: Json) -> Json:
    """Return the schema of one of our results in the fewest words that tell its shape.

    A field with a default is always there in a result, though the schema cannot say so.
    """
    fields = cast("Mapping[str, Json]", schema.get("properties", {}))
    always = [name for name, field in fields.items() if field.get("default") is not None]
    required = cast("list[str]", schema.get("required", []))
    return {
        **{key: value for key, value in schema.items() if key != "description"},
        "properties": {
            name: {key: value for key, value in field.items() if key != "default"}
            for name, field in fields.items()
        },
        "required": [*required, *always],
    }
