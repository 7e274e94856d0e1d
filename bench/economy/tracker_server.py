"""An MCP server of issues, items and a classifier: the SDK's low-level server over made-up data.

    python tracker_server.py '{"issues": 100, "items": 1000}'

Equal settings give equal data. What it answers is structured content, and its JSON as text.
"""

import json
import random
import sys
from collections.abc import Callable, Mapping

import anyio
import mcp_types as types
from mcp.server import Server, ServerRequestContext
from mcp.server.stdio import stdio_server

Context = ServerRequestContext[object, object]
Json = Mapping[str, object]
PAGE = 50
LABELS = {
    "bug": ("crash", "traceback", "wrong", "broken", "regression"),
    "feature": ("support", "option", "would", "add", "allow"),
    "security": ("token", "leak", "injection", "password", "escape"),
    "question": ("how", "where", "why", "documentation", "example"),
}
FILLER = (
    *("the", "a", "of", "in", "when", "after", "before", "with", "without", "server", "client"),
    *("page", "table", "row", "user", "file", "build", "version", "import", "export", "list"),
    *("value", "time", "run", "job", "queue", "request", "response", "worker", "cache"),
)
UNCLEAR = 0.2
"""Issues that may be of two kinds: the classifier is not sure of them."""
REGIONS = ("north", "south", "east", "west")


class Tracker:
    """The data, and a function for each tool."""

    def __init__(self, *, issues: int, items: int) -> None:
        made = random.Random(7)
        self._issues = [_issue(number, made) for number in range(1, issues + 1)]
        self._items = [_item(number, made) for number in range(1, items + 1)]
        self._labels: dict[str, str] = {}

    def list_issues(self, page: int) -> Json:
        """Return a page of issues without their bodies; pages count from 1."""
        start = (page - 1) * PAGE
        found = [
            {key: issue[key] for key in ("number", "title", "author", "comments")}
            for issue in self._issues[start : start + PAGE]
        ]
        return {"issues": found, "more": start + PAGE < len(self._issues)}

    def get_issue(self, number: int) -> Json:
        """Return one issue in full."""
        return self._issues[number - 1]

    def classify(self, text: str) -> Json:
        """Judge a text: its label, and how sure that is."""
        words = text.lower().split()
        counts = {label: sum(map(words.count, marks)) for label, marks in LABELS.items()}
        total = sum(counts.values()) or 1
        label = max(counts, key=lambda each: (counts[each], each))
        odds = {each: round(count / total, 3) for each, count in counts.items()}
        return {"label": label, "confidence": odds[label], "probabilities": odds}

    def label_issue(self, number: int, label: str) -> Json:
        """Put a label on an issue."""
        self._labels[str(number)] = label
        return {"number": number, "labels": [label], "updated": True}

    def labels(self) -> Json:
        """Return all labels that were put on."""
        return {"labels": self._labels}

    def list_items(self, cursor: str = "") -> Json:
        """Return a page of items, and the cursor of the next; it is empty after the last."""
        start = int(cursor.removeprefix("after-") or 0) if cursor else 0
        end = start + PAGE
        following = f"after-{end}" if end < len(self._items) else ""
        return {"items": self._items[start:end], "next_cursor": following}


def _words(made: random.Random, count: int, marks: tuple[str, ...]) -> str:
    words = [made.choice(marks if made.random() < 0.12 else FILLER) for _ in range(count)]
    return " ".join(words)


def _issue(number: int, made: random.Random) -> dict[str, object]:
    marks = LABELS[made.choice(list(LABELS))]
    if made.random() < UNCLEAR:
        marks += LABELS[made.choice(list(LABELS))]
    return {
        "number": number,
        "title": _words(made, 8, marks),
        "author": f"user-{made.randrange(40)}",
        "state": "open",
        "created_at": f"2026-03-{made.randrange(1, 29):02}T10:00:00Z",
        "comments": made.randrange(12),
        "reactions": {"+1": made.randrange(30), "-1": made.randrange(3)},
        "body": _words(made, 220, marks),
    }


def _item(number: int, made: random.Random) -> dict[str, object]:
    return {
        "id": f"item-{number:05}",
        "name": _words(made, 4, FILLER[:6]),
        "region": made.choice(REGIONS),
        "active": made.random() < 0.6,
        "amount": made.randrange(1, 5000),
        "owner": {"id": made.randrange(50), "team": f"team-{made.randrange(9)}"},
        "tags": made.sample(FILLER, 3),
        "updated_at": f"2026-02-{made.randrange(1, 29):02}T08:00:00Z",
    }


NUMBER: Json = {"type": "integer", "minimum": 1}
TEXT: Json = {"type": "string"}
PARAMETERS: Mapping[str, Json] = {
    "list_issues": {"page": NUMBER},
    "get_issue": {"number": NUMBER},
    "classify": {"text": TEXT},
    "label_issue": {"number": NUMBER, "label": TEXT},
    "labels": {},
    "list_items": {"cursor": TEXT},
}
OPTIONAL = {"cursor"}


def schema(tool: str) -> dict[str, object]:
    """Return the input schema of a tool."""
    fields = PARAMETERS[tool]
    required = [name for name in fields if name not in OPTIONAL]
    return {"type": "object", "properties": dict(fields), "required": required}


def build(tracker: Tracker) -> Server:
    """Return the server of a tracker."""
    functions: dict[str, Callable[..., Json]] = {
        name: getattr(tracker, name) for name in PARAMETERS
    }

    async def list_tools(
        _context: Context, _params: types.PaginatedRequestParams | None
    ) -> types.ListToolsResult:
        tools = [
            types.Tool(name=name, description=function.__doc__, input_schema=schema(name))
            for name, function in functions.items()
        ]
        return types.ListToolsResult(tools=tools)

    async def call_tool(
        _context: Context, params: types.CallToolRequestParams
    ) -> types.CallToolResult:
        body = dict(functions[params.name](**(params.arguments or {})))
        text = json.dumps(body, ensure_ascii=False, separators=(",", ":"))
        content = types.TextContent(type="text", text=text)
        return types.CallToolResult(content=[content], structured_content=body)

    return Server("tracker", on_list_tools=list_tools, on_call_tool=call_tool)


async def serve(settings: Mapping[str, int]) -> None:
    """Serve one client on stdin and stdout."""
    server = build(Tracker(issues=settings["issues"], items=settings["items"]))
    async with stdio_server() as (read, write):
        await server.run(read, write, server.create_initialization_options())


if __name__ == "__main__":
    anyio.run(serve, json.loads(sys.argv[1]))
