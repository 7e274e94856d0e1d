"""The tools of tests/cases/codemode, by their kind: small, deterministic, and they count."""

import asyncio
import json
import time
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import cast

from codespace.codemode import Tool, ToolError

Json = dict[str, object]


@dataclass(frozen=True, slots=True)
class Arrival:
    """What was true when a call arrived."""

    number: int
    active: int


Answer = Callable[[Json, Arrival], Awaitable[object]]


@dataclass(slots=True)
class Counts:
    """What the calls of one tool, or of one group of tools, came to."""

    calls: int = 0
    active: int = 0
    max_active: int = 0
    seen: list[Json] = field(default_factory=list[Json])

    def arrive(self, arguments: Json) -> Arrival:
        self.calls += 1
        self.active += 1
        self.max_active = max(self.max_active, self.active)
        self.seen = [*self.seen, dict(arguments)][-5:]
        return Arrival(self.calls, self.active)


def tools_of(case: Mapping[str, object]) -> list[Tool]:
    """Return the tools that a case describes."""
    specs = cast("dict[str, Json]", case.get("tools", {}))
    counts: dict[str, Counts] = {}
    return [_tool(name, spec, counts) for name, spec in specs.items()]


def _tool(name: str, spec: Json, counts: dict[str, Counts]) -> Tool:
    own = counts.setdefault(str(spec.get("group", name)), Counts())
    answer = _KINDS[str(spec["kind"])](spec, own, counts)

    async def call(arguments: Json) -> object:
        arrival = own.arrive(arguments)
        try:
            return await _answered(spec, answer, arguments, arrival)
        finally:
            own.active -= 1

    return Tool(
        name,
        call,
        description=str(spec.get("description", "")),
        input_schema=cast("Json", spec.get("input_schema", {"type": "object"})),
        output_schema=cast("Json | None", spec.get("output_schema")),
    )


async def _answered(spec: Json, answer: Answer, arguments: Json, arrival: Arrival) -> object:
    if "delay_ms" in spec:
        await asyncio.sleep(cast("float", spec["delay_ms"]) / 1000)
    fail_if = cast("Json | None", spec.get("fail_if"))
    if fail_if and arguments.get(str(fail_if["arg"])) in cast("list[object]", fail_if["in"]):
        raise _error(fail_if)
    return await answer(arguments, arrival)


def _error(spec: Mapping[str, object]) -> ToolError:
    return ToolError(str(spec["code"]), str(spec["message"]), spec.get("details"))


def issue(index: int) -> Json:
    """Return one of the issues that the cases share."""
    number = 1000 + index
    return {
        "number": number,
        "title": f"Issue {number}",
        "state": "closed" if index % 3 == 0 else "open",
        "author": f"user{index % 7}",
        "comments": index * 37 % 101,
        "labels": [["bug", "docs", "perf"][index % 3]],
        "body": f"Body of issue {number}. " * 12,
    }


def mcp(spec: Mapping[str, object]) -> Json:
    """Return a CallToolResult."""
    text = spec["text"] if "text" in spec else json.dumps(spec.get("structured"))
    result: Json = {
        "content": [{"type": "text", "text": text}],
        "isError": bool(spec.get("is_error", False)),
    }
    if "structured" in spec:
        result["structuredContent"] = spec["structured"]
    return result


def _plain(make: Callable[[Json, Json], object]) -> Callable[..., Answer]:
    def kind(spec: Json, own: Counts, counts: Mapping[str, Counts]) -> Answer:
        async def answer(arguments: Json, arrival: Arrival) -> object:
            return make(spec, arguments)

        return answer

    return kind


def _fail(spec: Json, own: Counts, counts: Mapping[str, Counts]) -> Answer:
    async def answer(arguments: Json, arrival: Arrival) -> object:
        times = cast("int | None", spec.get("times"))
        if times is None or arrival.number <= times:
            raise _error(spec)
        return {"ok": True, "attempt": arrival.number}

    return answer


def _sleep(spec: Json, own: Counts, counts: Mapping[str, Counts]) -> Answer:
    async def answer(arguments: Json, arrival: Arrival) -> object:
        ms = cast("float", arguments.get("ms", spec.get("ms", 0)))
        await asyncio.sleep(ms / 1000)
        return {"slept": ms}

    return answer


def _counter(spec: Json, own: Counts, counts: Mapping[str, Counts]) -> Answer:
    async def answer(arguments: Json, arrival: Arrival) -> object:
        return {
            "n": arrival.number,
            "active": arrival.active,
            "max_active": own.max_active,
        }

    return answer


def _peek(spec: Json, own: Counts, counts: dict[str, Counts]) -> Answer:
    async def answer(arguments: Json, arrival: Arrival) -> object:
        of = counts.setdefault(str(spec["of"]), Counts())
        return {
            "calls": of.calls,
            "active": of.active,
            "max_active": of.max_active,
            "seen": of.seen,
        }

    return answer


def _raise(spec: Json, arguments: Json) -> object:
    raise RuntimeError(str(spec["message"]))


def _big(spec: Json, arguments: Json) -> object:
    if "chars" in spec:
        return "x" * cast("int", spec["chars"])
    return [
        {"id": i, "name": f"item {i}", "group": i % 10, "price": i * 3 % 1000}
        for i in range(cast("int", spec["objects"]))
    ]


def _table(spec: Json, arguments: Json) -> object:
    rows = cast("dict[str, Json]", spec["rows"])
    default = cast("Json", spec.get("default", {"value": None}))
    row = rows.get(str(arguments.get(str(spec["arg"]))), default)
    if "fail" in row:
        raise _error(cast("Json", row["fail"]))
    return mcp(cast("Json", row["mcp"])) if "mcp" in row else row["value"]


def _issues(spec: Json, arguments: Json) -> object:
    found = [issue(index) for index in range(cast("int", spec["count"]))]
    if "state" in arguments:
        found = [each for each in found if each["state"] == arguments["state"]]
    if "page_size" not in spec:
        return found[: cast("int | None", arguments.get("limit"))]
    size, page = cast("int", spec["page_size"]), cast("int", arguments.get("page", 1))
    more = len(found) > page * size
    return {"items": found[(page - 1) * size : page * size], "next": page + 1 if more else None}


def _classify(spec: Json, arguments: Json) -> object:
    number = cast("int", arguments["number"])
    label = ["bug", "feature", "question", "praise"][number * 7 % 4]
    return {"number": number, "label": label, "score": number * 7919 % 1000 / 1000}


_KINDS: dict[str, Callable[[Json, Counts, dict[str, Counts]], Answer]] = {
    "echo": _plain(lambda _, arguments: arguments),
    "add": _plain(
        lambda _, arguments: {"sum": cast("int", arguments["a"]) + cast("int", arguments["b"])}
    ),
    "value": _plain(lambda spec, _: spec["value"]),
    "fail": _fail,
    "raise": _plain(_raise),
    "sleep": _sleep,
    "counter": _counter,
    "peek": _peek,
    "big": _plain(_big),
    "mcp": _plain(lambda spec, _: mcp(spec)),
    "table": _plain(_table),
    "issues": _plain(_issues),
    "classify": _plain(_classify),
    "clock": _plain(lambda _spec, _arguments: {"ms": time.time() * 1000}),
    "float": _plain(lambda spec, _: {"v": float(str(spec["text"]))}),
}
