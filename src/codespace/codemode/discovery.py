"""The tools of a sandbox as a script can look them up: search, descriptions, lists (pure)."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from difflib import get_close_matches
from functools import cached_property

from codespace.codemode.declarations import Declaration, Listed, catalogue_text, declare
from codespace.codemode.json_values import Json, as_object
from codespace.codemode.names import identifiers
from codespace.codemode.ranking import Ranking, weighed
from codespace.codemode.references import every_object
from codespace.codemode.shapes import merged, shape_of
from codespace.codemode.tool import Tool, ToolError
from codespace.codemode.typescript import Type

BUDGET_TOKENS = 3_000
SEARCH_LIMIT = 8
SEARCH_MAX = 50
SUMMARY_CHARS = 160
OBSERVED_MAX = 3
"""Results of a tool that promises none are looked at this often."""
OWN = "own"
"""What a script calls the tools that belong to no server."""

_NAME_WEIGHT = 3.0


class Catalogue:
    """Some tools, found by their names and by words.

    Attributes:
        tools: as they were given; a call names a tool by its place here.
        identifiers: the identifier of each tool, by its name, in the same order.
    """

    def __init__(
        self, tools: Sequence[Tool], *, instructions: Mapping[str, str] | None = None
    ) -> None:
        self.tools = tuple(tools)
        self.identifiers = identifiers(tool.name for tool in self.tools)
        if len(self.identifiers) != len(self.tools):
            twice = Counter(tool.name for tool in self.tools).most_common(1)[0][0]
            raise ValueError(f"two tools are named {twice!r}")
        self._instructions = dict(instructions or {})
        self._observed: dict[str, tuple[int, Type]] = {}
        self._told: dict[str, tuple[int, str]] = {}

    def search(self, query: str, *, limit: int = SEARCH_LIMIT, namespace: str = "") -> list[Json]:
        """Return the tools that fit the words of `query` best, each with its declaration."""
        found = [self.tools[index] for index in self._ranking.best(query)]
        if namespace:
            found = [tool for tool in found if _namespace(tool) == namespace]
        return [self._described(tool) for tool in found[:limit]]

    def describe_tool(self, name: str) -> Json:
        """Return all that is known of one tool.

        Raises:
            ToolError: INVALID_ARGUMENT: there is no such tool.
        """
        tool = self._named.get(name)
        if tool is None:
            near = get_close_matches(name, self._named, 3)
            raise _unknown(f"No tool is named {name[:100]!r}.", near)
        return {**self._described(tool), "namespace": _namespace(tool)}

    def describe_namespace(self, name: str) -> Json:
        """Return what one server offers: its instructions and its tools, without declarations.

        Raises:
            ToolError: INVALID_ARGUMENT: there is no such server.
        """
        tools = [tool for tool in self.tools if _namespace(tool) == name]
        if not tools:
            known = sorted({_namespace(tool) for tool in self.tools})
            raise _unknown(f"There is no namespace {name[:100]!r}.", known)
        listed = [{"name": self._ident(tool), "description": summary(tool)} for tool in tools]
        text = self._instructions.get(name)
        return {"name": name, "tools": listed, **({"instructions": text} if text else {})}

    def entries(self) -> list[Json]:
        """Return what `ALL_TOOLS` has of each tool."""
        return [
            {"name": self._ident(tool), "description": summary(tool), "namespace": _namespace(tool)}
            for tool in self.tools
        ]

    def text(self, budget: int = BUDGET_TOKENS) -> str:
        """Return the declarations that fit a description of `budget` tokens."""
        return catalogue_text(
            [Listed(tool.server, self._declare(tool)) for tool in self.tools], budget
        )

    def observe(self, tool: Tool, result: object) -> None:
        """Remember the shape of a result of a tool that has no output schema."""
        count, known = self._observed.get(tool.name, (0, None))
        if tool.output_schema is None and count < OBSERVED_MAX:
            shape = shape_of(result)
            seen = shape if known is None else merged(known, shape)
            self._observed[tool.name] = (count + 1, seen)

    @cached_property
    def _named(self) -> Mapping[str, Tool]:
        by_ident = {self._ident(tool): tool for tool in self.tools}
        return {**by_ident, **{tool.name: tool for tool in self.tools}}

    @cached_property
    def _ranking(self) -> Ranking:
        return Ranking.of([_document(tool) for tool in self.tools])

    def _ident(self, tool: Tool) -> str:
        return self.identifiers[tool.name]

    def _described(self, tool: Tool) -> Json:
        return {
            "name": self._ident(tool),
            "description": tool.description,
            "declaration": self._told_of(tool),
        }

    def _told_of(self, tool: Tool) -> str:
        # A declaration is the same until another result was observed, and may take long to make.
        observed = self._observed.get(tool.name, (0, None))[0]
        count, text = self._told.get(tool.name, (-1, ""))
        if count != observed:
            text = self._declare(tool, commented=False).text
            self._told[tool.name] = (observed, text)
        return text

    def _declare(self, tool: Tool, *, commented: bool = True) -> Declaration:
        observed = self._observed.get(tool.name)
        return declare(
            self._ident(tool),
            description=tool.description if commented else "",
            input_schema=tool.input_schema,
            output_schema=tool.output_schema,
            observed=observed[1] if observed else None,
        )


def summary(tool: Tool) -> str:
    """Return the first line of a tool's description, cut."""
    line = tool.description.strip().partition("\n")[0].strip()
    return line if len(line) <= SUMMARY_CHARS else line[: SUMMARY_CHARS - 1].rstrip() + "…"


def _namespace(tool: Tool) -> str:
    return tool.server or OWN


def _unknown(problem: str, known: Sequence[str]) -> ToolError:
    hint = f" Known: {', '.join(known[:SEARCH_LIMIT])}." if known else ""
    return ToolError(
        "INVALID_ARGUMENT", f"{problem}{hint} searchTools finds tools by words.", {"known": known}
    )


def _document(tool: Tool) -> dict[str, float]:
    parts = [
        (tool.name, _NAME_WEIGHT),
        (tool.search_words, _NAME_WEIGHT),
        (tool.description, 1.0),
    ]
    return weighed([*parts, *((name, 1.0) for name in _parameters(tool.input_schema))])


def _parameters(schema: Json | None) -> Iterator[str]:
    for each in every_object(schema):
        yield from as_object(each.get("properties"))
