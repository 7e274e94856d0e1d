"""The registry of tools. Every consumer takes its list from here; nothing else names a tool."""

from collections.abc import Iterable, Iterator

from codespace.domain.tool import Tool


class Toolbox:
    """Tools by name, in the order they were given. A duplicate name is an error."""

    def __init__(self, tools: Iterable[Tool]) -> None:
        self._tools: dict[str, Tool] = {}
        for tool in tools:
            if tool.name in self._tools:
                raise ValueError(f"two tools are named {tool.name!r}")
            self._tools[tool.name] = tool

    def __iter__(self) -> Iterator[Tool]:
        return iter(self._tools.values())

    def get(self, name: str) -> Tool | None:
        """Return the tool, or `None` for a name that nobody registered."""
        return self._tools.get(name)

    @property
    def names(self) -> tuple[str, ...]:
        """The names, in order."""
        return tuple(self._tools)
