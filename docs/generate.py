"""Writes the generated parts of docs/ from the code: the tool reference, the settings, the limits.

`python docs/generate.py` writes; `--check` exits with 1 when a page is not what it would write.
"""

import sys
from collections.abc import Mapping
from dataclasses import fields
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import cast

import anyio
from pydantic import TypeAdapter

from codespace.bootstrap import open_gateway
from codespace.domain.limits import Limits
from codespace.domain.run_limits import RunLimits
from codespace.domain.tool import Tool
from codespace.settings import PREFIX, Settings, WorkspaceSettings, load

DOCS = Path(__file__).resolve().parent
BEGIN, END = "<!-- generated: {} -->", "<!-- end of generated -->"
HEAD = ["| name | type | meaning |", "| --- | --- | --- |"]
INTRODUCTION = """Generated from the code by `just docs`. Every tool answers with structured
content, and with the same JSON as text up to 256 KiB. An error is `isError: true` with
`{code, message, details?, operation_id?, approval_id?}`; unknown arguments are ignored."""
Schema = Mapping[str, object]


def main(arguments: list[str]) -> int:
    """Write or check the pages; return the exit code."""
    pages = {
        DOCS / "tools.md": render_tools(anyio.run(list_tools)),
        DOCS / "configuration.md": render_configuration(DOCS / "configuration.md"),
    }
    stale = [page for page, text in pages.items() if not is_current(page, text)]
    if "--check" in arguments:
        for page in stale:
            print(f"docs/{page.name} is stale; run `just docs`", file=sys.stderr)
        return 1 if stale else 0
    for page, text in pages.items():
        page.write_text(text, encoding="utf-8")
    return 0


def is_current(page: Path, text: str) -> bool:
    """Say whether a page reads `text`."""
    return page.exists() and page.read_text(encoding="utf-8") == text


async def list_tools() -> list[Tool]:
    """Return the tools of a gateway over an empty directory."""
    with TemporaryDirectory() as root:
        async with open_gateway(load(path=root, environ={"PATH": "/usr/bin:/bin"})) as gateway:
            return list(gateway.toolbox)


def render_tools(tools: list[Tool]) -> str:
    """Return the tool reference."""
    parts = [
        "# Tools",
        INTRODUCTION,
        "\n".join(f"- [`{tool.name}`](#{tool.name}): {tool.title.lower()}" for tool in tools),
        *(render_tool(tool) for tool in tools),
    ]
    return "\n\n".join(parts) + "\n"


def render_tool(tool: Tool) -> str:
    """Return one tool's section."""
    definitions = cast("Mapping[str, Schema]", tool.output_schema["$defs"])
    choices = cast("list[Mapping[str, str]]", tool.output_schema["anyOf"])
    name = choices[0]["$ref"].rpartition("/")[2]
    hints = f"Effect: `{tool.effect.value}`" + ("; idempotent." if tool.idempotent else ".")
    nested = [
        f"`{part}`: {first_sentence(schema)}\n\n{table(schema)}"
        for part, schema in definitions.items()
        if part not in (name, "ToolError")
    ]
    return "\n\n".join(
        [
            f"## `{tool.name}`",
            hints,
            fenced(tool.description),
            "Arguments:\n\n" + table(tool.input_schema, result=False),
            "Result:\n\n" + table(definitions[name]),
            *nested,
        ]
    )


def first_sentence(schema: Schema) -> str:
    """Return what a model is, in one line."""
    return str(schema.get("description", "")).splitlines()[0]


def fenced(description: str) -> str:
    """Return a description with the script or the patch in it set apart."""
    prose, declared, _ = description.partition("\n\ndeclare const tools")
    if declared:
        head, _, example = prose.partition("\n\nExample: ")
        rest = "Then it declares the tools above in TypeScript."
        return f"{head}\n\n```js\n{example}\n```\n\n{rest}"
    begin, end = "*** Begin Patch", "*** End Patch"
    if begin not in description:
        return description
    head, _, rest = description.partition(begin)
    body, _, tail = rest.partition(end)
    return f"{head.rstrip()}\n\n```text\n{begin}{body}{end}\n```\n\n{tail.strip()}"


def table(schema: Schema, *, result: bool = True) -> str:
    """Return the properties of an object schema as a table.

    A result always has its fields with a default; an argument with one may be left out.
    """
    properties = cast("Mapping[str, Schema]", schema.get("properties", {}))
    required = cast("list[str]", schema.get("required", []))
    rows = list(HEAD)
    for name, field in properties.items():
        default = field.get("default")
        note = "" if name in required or default is None or result else f" Default: `{default!r}`."
        optional = "" if name in required or (result and default is not None) else "?"
        meaning = " ".join(str(field.get("description", "")).split())
        rows.append(f"| `{name}`{optional} | {kind(field)} | {meaning}{note} |")
    return "\n".join(rows) if rows != HEAD else "none"


def kind(field: Schema) -> str:
    """Return a type in a few words."""
    if "anyOf" in field:
        choices = cast("list[Schema]", field["anyOf"])
        return " or ".join(kind(choice) for choice in choices if choice.get("type") != "null")
    if "enum" in field:
        return ", ".join(f"`{item}`" for item in cast("list[object]", field["enum"]))
    if "const" in field:
        return f"`{str(field['const']).lower()}`"
    if "$ref" in field:
        return str(field["$ref"]).rpartition("/")[2]
    if field.get("type") == "array":
        return f"array of {kind(cast('Schema', field['items']))}" if "items" in field else "array"
    bounds = [
        f"{word} {field[key]}"
        for key, word in (("minimum", "from"), ("maximum", "to"))
        if key in field
    ]
    return " ".join([str(field.get("type", "any")), *bounds])


def render_configuration(page: Path) -> str:
    """Return the configuration page with its generated tables anew."""
    text = page.read_text(encoding="utf-8")
    text = replaced(
        text, "workspace settings", settings_table(WorkspaceSettings, environment=False)
    )
    text = replaced(text, "settings", settings_table(Settings, environment=True))
    text = replaced(text, "limits of scripts", run_limits_table())
    return replaced(text, "limits", limits_table())


def replaced(text: str, name: str, body: str) -> str:
    """Return `text` with what stands between the marks of `name` replaced."""
    begin = BEGIN.format(name)
    head, _, rest = text.partition(begin)
    _, _, tail = rest.partition(END)
    return f"{head}{begin}\n\n{body}\n\n{END}{tail}"


def settings_table(model: type[Settings] | type[WorkspaceSettings], *, environment: bool) -> str:
    """Return a settings model as a table."""
    only_in_files = ("workspaces", "process_environment", "codemode")
    flags = dict.fromkeys(only_in_files, "") | {"http_token": "`--http-token-file`"}
    head = "| key | default | meaning |" + (" environment | flag |" if environment else "")
    rows = [head, "| --- | --- | --- |" + (" --- | --- |" if environment else "")]
    for name, field in model.model_fields.items():
        default = (
            "required"
            if field.is_required()
            else repr(field.get_default(call_default_factory=True))
        )
        default = repr(str(field.default)) if "<" in default else default
        default = "{}" if name == "codemode" else default
        meaning = " ".join((field.description or "").split())
        row = f"| `{name}` | `{default}` | {meaning} |"
        if environment:
            variable = "" if name in only_in_files else f"`{PREFIX}{name.upper()}`"
            flag = flags.get(name, f"`--{name.replace('_', '-')}`")
            row += f" {variable} | {flag} |"
        rows.append(row)
    return "\n".join(rows)


def run_limits_table() -> str:
    """Return the limits of scripts as a table."""
    told = TypeAdapter(RunLimits).json_schema()["properties"]
    rows = ["| limit | default | meaning |", "| --- | --- | --- |"]
    for field in fields(RunLimits):
        meaning = " ".join(str(told[field.name].get("description", "")).split())
        rows.append(f"| `{field.name}` | {field.default:,} | {meaning} |")
    return "\n".join(rows)


def limits_table() -> str:
    """Return the limits as a table."""
    rows = ["| limit | value |", "| --- | --- |"]
    rows += [f"| `{field.name}` | {field.default:,} |" for field in fields(Limits)]
    return "\n".join(rows)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
