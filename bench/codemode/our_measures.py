"""The measures of our own engine, over tools with schemas."""

import asyncio
from collections.abc import Mapping
from typing import cast

import meter

from codespace.codemode import Sandbox, Tool
from codespace.codemode.vm import Entry

Arguments = dict[str, object]
OBJECT = {"type": "object"}
A = {**OBJECT, "properties": {"a": {"type": "integer"}}, "required": ["a"]}
QUERY = {
    **OBJECT,
    "properties": {
        "query": {"type": "string"},
        "filters": OBJECT,
        "limit": {"type": "integer", "minimum": 1},
    },
    "required": ["query"],
}
ITEM = {
    **OBJECT,
    "properties": {
        "id": {"type": "integer"},
        "title": {"type": "string"},
        "tags": {"type": "array", "items": {"type": "string"}},
    },
    "required": ["id", "title"],
}
PAGE = {
    **OBJECT,
    "properties": {"items": {"type": "array", "items": ITEM}},
    "required": ["items"],
}
RECURSION = (
    "let d = 0; const f = () => { d++; f() }; try { f() } catch (e) { return e.name + ' at ' + d }"
)
ROW = {
    **OBJECT,
    "properties": {"id": {"type": "integer"}, "name": {"type": "string"}},
    "required": ["id"],
}
MEMORY_MIB = 256
"""The 100,000 objects need more than the default of 64."""


class Tools:
    """The tools that the scripts call."""

    def __init__(self, result: object) -> None:
        self.waiting: list[object] = []
        self._result, self._rows, self._text = result, meter.rows(), meter.text()

    def tools(self) -> list[Tool]:
        """Return them with schemas of their arguments and of their results."""
        return [
            Tool("tool", self.tool, input_schema=A, output_schema=A),
            Tool("real", self.real, input_schema=QUERY, output_schema=PAGE),
            Tool("mb", self.mb, input_schema=OBJECT, output_schema={"type": "string"}),
            Tool("objs", self.objs, input_schema=OBJECT, output_schema=_array_of(ROW)),
            Tool("never", self.never, input_schema=OBJECT),
        ]

    async def tool(self, arguments: Arguments) -> object:
        return {"a": arguments["a"]}

    async def real(self, arguments: Arguments) -> object:
        return self._result

    async def mb(self, arguments: Arguments) -> object:
        return self._text

    async def objs(self, arguments: Arguments) -> object:
        return self._rows

    async def never(self, arguments: Arguments) -> object:
        self.waiting.append(arguments)
        await asyncio.Event().wait()
        return None


def _array_of(schema: object) -> Mapping[str, object]:
    return {"type": "array", "items": schema}


async def measure() -> None:
    """Print all measures."""
    given = meter.given()
    # An argument of ours is always an object; scripts from elsewhere may pass a bare number.
    scripts = {
        name: text.replace("tools.tool(i)", "tools.tool({a: i})")
        for name, text in given.items()
        if isinstance(text, str)
    }
    made = Tools(given["result"])

    async with Sandbox(made.tools(), runs=meter.SUSPENDED, memory_mib=MEMORY_MIB) as sandbox:

        async def run(script: str, timeout: float = meter.LIMIT_SECONDS) -> object:
            journal: list[Entry] = []
            outcome = await sandbox.run(script, timeout=timeout, on_step=journal.append)
            if outcome.error is not None:
                raise RuntimeError(f"{outcome.error.kind}: {outcome.error.message}")
            return cast("object", outcome.value)

        async def short(script: str) -> object:
            return await run(script, meter.SPIN_SECONDS)

        await run("return 1+2")
        # First: what earlier scripts leave warm would make those that wait look smaller.
        await meter.suspended(lambda: run("await tools.never({})"), made.waiting)
        await meter.timed(run, scripts, "return 1+2")
        await meter.spun(short, "while (true) {}")
        await meter.told("recursion", run, scripts.get("rec", RECURSION))
        await meter.told("deadlock", run, "await new Promise(() => {})")


RECURSION = (
    "let d = 0; const f = () => { d++; f() }; try { f() } catch (e) { return e.name + ' at ' + d }"
)
