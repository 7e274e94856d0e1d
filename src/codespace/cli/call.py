"""`codespace call` and `codespace tools`: one generic command for every tool."""

import json
import sys
from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from typing import Annotated, cast

import anyio
from cyclopts import Parameter

from codespace.adapters.client import Connection
from codespace.bootstrap import Gateway, open_gateway
from codespace.cli.flags import (
    CommandFlags,
    Directory,
    Elsewhere,
    Flags,
    goes_elsewhere,
    load_settings,
)
from codespace.cli.given_text import json_text_of, text_of
from codespace.cli.remote import talk, workspace_ids
from codespace.codemode.declarations import declare
from codespace.domain.errors import CodeSpaceError
from codespace.domain.ids import WorkspaceId
from codespace.domain.near import meant
from codespace.domain.tool import Json, Tool
from codespace.gateway.script_tools import script_tool
from codespace.settings import SettingsError

SHOWN_CHARS = 60
_WANTED = {
    "integer": "a whole number",
    "number": "a number",
    "boolean": "true or false",
    "array": 'a JSON list, such as ["ls", "-l"]',
    "object": 'a JSON object, such as {"name": "text"}',
}


def call(
    tool: str,
    *arguments: Annotated[str, Parameter(allow_leading_hyphen=False)],
    json_text: Annotated[
        str | None,
        Parameter(
            name="--json",
            help="All arguments as one JSON object; - is stdin, @FILE a file.",
            allow_leading_hyphen=True,
        ),
    ] = None,
    path: Directory = None,
    elsewhere: Elsewhere | None = None,
    flags: Flags | None = None,
    commands: CommandFlags | None = None,
) -> int:
    """Call one tool and print its answer as JSON.

    Arguments are `key=value`; a value for something other than text is JSON, and `key=@FILE`
    takes the text of a file (`@-`: of stdin). Without --url a gateway lives for this call alone,
    and ends the processes that it started. Exit code 1 when the answer is an error.
    """
    there = goes_elsewhere(elsewhere, path, flags, commands)
    if there is not None:
        return talk(
            there,
            partial(_call_remote, tool=tool, arguments=arguments, json_text=json_text),
        )
    loaded = load_settings(path, flags, commands)

    async def local() -> int:
        async with open_gateway(loaded, transports=()) as gateway:
            return await _call_local(gateway, tool, arguments, json_text)

    return anyio.run(local)


def tools(
    name: Annotated[str | None, Parameter(help="Only this one: all that is known of it.")] = None,
    /,
    *,
    path: Directory = None,
    json_output: Annotated[bool, Parameter(name="--json", negative=())] = False,
    flags: Flags | None = None,
) -> int:
    """List the tools: names and what they do; all of one that is named; or it all as JSON."""
    loaded = load_settings(path, flags)

    async def listing() -> list[Tool]:
        async with open_gateway(loaded, transports=()) as gateway:
            return list(gateway.toolbox)

    listed = anyio.run(listing)
    if name is None:
        _print_all(listed, as_json=json_output)
        return 0
    named = {tool.name: tool for tool in listed}
    if name not in named:
        raise _no_tool(name, named)
    if json_output:
        return _print(_described(named[name]), is_error=False)
    print(_page(named[name]))
    return 0


def _print_all(listed: Sequence[Tool], *, as_json: bool) -> None:
    if as_json:
        print(json.dumps([_described(tool) for tool in listed], indent=2, ensure_ascii=False))
        return
    for tool in listed:
        print(f"{tool.name:18} {tool.effect.value:8} {tool.description.splitlines()[0]}")


def _page(tool: Tool) -> str:
    seen = script_tool(tool, WorkspaceId(""))
    declaration = declare(
        tool.name, description="", input_schema=seen.input_schema, output_schema=seen.output_schema
    )
    return f"{tool.name} ({tool.effect.value})\n\n{tool.description.strip()}\n\n{declaration.text}"


def _described(tool: Tool) -> Mapping[str, object]:
    return {
        "name": tool.name,
        "effect": tool.effect.value,
        "description": tool.description,
        "input_schema": tool.input_schema,
        "output_schema": tool.output_schema,
    }


async def _call_local(
    gateway: Gateway, tool: str, arguments: tuple[str, ...], json_text: str | None
) -> int:
    found = gateway.toolbox.get(tool)
    if found is None:
        raise _no_tool(tool, gateway.toolbox.names)
    given = _arguments(found.input_schema, arguments, json_text)
    if _lacks_workspace(found.input_schema, given):
        _choose_workspace(given, gateway.workspaces)
    try:
        return _print(await gateway.call(tool, given), is_error=False)
    except CodeSpaceError as error:
        return _print(error.body(), is_error=True)


async def _call_remote(
    connection: Connection, *, tool: str, arguments: tuple[str, ...], json_text: str | None
) -> int:
    schemas = await connection.input_schemas()
    if tool not in schemas:
        raise _no_tool(tool, schemas)
    given = _arguments(schemas[tool], arguments, json_text)
    if _lacks_workspace(schemas[tool], given):
        _choose_workspace(given, await workspace_ids(connection, schemas))
    answer = await connection.call(tool, given)
    return _print(answer.body, is_error=answer.is_error)


def _lacks_workspace(schema: Json, given: Json) -> bool:
    required = cast("list[str]", schema.get("required", []))
    return "workspace_id" in required and "workspace_id" not in given


def _choose_workspace(given: dict[str, object], known: Iterable[str]) -> None:
    ids = sorted(known)
    if len(ids) == 1:
        given["workspace_id"] = ids[0]
    elif ids:
        print(f"codespace: workspace_id takes one of: {', '.join(ids)}", file=sys.stderr)


def _no_tool(name: str, known: Iterable[str]) -> SettingsError:
    names = list(known)
    return SettingsError(
        f"no tool is named {name!r}{meant(name, names)}; there are {', '.join(names)}"
    )


def _print(body: Json, *, is_error: bool) -> int:
    print(json.dumps(dict(body), indent=2, ensure_ascii=False))
    return 1 if is_error else 0


def _arguments(
    schema: Json, arguments: tuple[str, ...], json_text: str | None
) -> dict[str, object]:
    given: dict[str, object] = {}
    if json_text is not None:
        parsed = _parse("--json", json_text_of("--json", json_text))
        if not isinstance(parsed, dict):
            raise SettingsError("--json takes an object")
        given.update(cast("dict[str, object]", parsed))
    for argument in arguments:
        key, equals, text = argument.partition("=")
        if not key or not equals:
            raise SettingsError(f"{argument!r} is not key=value")
        _require_no_slip(schema, key)
        given[key] = _value(schema, key, text)
    return given


def _require_no_slip(schema: Json, key: str) -> None:
    # A tool ignores what it does not know; a preview whose `check_only` has a slip would write.
    known = _properties(schema)
    if key not in known and (question := meant(key, known)):
        raise SettingsError(f"there is no argument {key!r}{question}")


def _value(schema: Json, key: str, text: str) -> object:
    text = text_of(key, text)
    kinds = _kinds(schema, key)
    return text if "string" in kinds else _parse(key, text, kinds)


def _properties(schema: Json) -> Mapping[str, Mapping[str, object]]:
    return cast("Mapping[str, Mapping[str, object]]", schema.get("properties", {}))


def _kinds(schema: Json, key: str) -> list[str]:
    field = _properties(schema).get(key, {"type": "string"})
    choices = cast("list[Mapping[str, object]]", field.get("anyOf", [field]))
    return [str(choice.get("type")) for choice in choices]


def _parse(key: str, text: str, kinds: Sequence[str] = ()) -> object:
    try:
        return cast("object", json.loads(text))
    except ValueError:
        wanted = next((_WANTED[kind] for kind in kinds if kind in _WANTED), "JSON")
        raise SettingsError(f"{key}: takes {wanted}, not {text[:SHOWN_CHARS]!r}") from None
