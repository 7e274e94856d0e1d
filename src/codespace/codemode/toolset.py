"""The tools of a sandbox, prepared once for all of its runs."""

from collections.abc import Mapping, Sequence
from functools import cached_property

from codespace.codemode import protocol
from codespace.codemode.checking import Checker
from codespace.codemode.discovery import Catalogue
from codespace.codemode.names import both_names
from codespace.codemode.tool import Tool


class Toolset:
    """Tools by their place, with what a run needs of each.

    Attributes:
        tools: as they were given.
        catalogue: what a script can look up.
    """

    def __init__(
        self, tools: Sequence[Tool], *, instructions: Mapping[str, str] | None = None
    ) -> None:
        self.catalogue = Catalogue(tools, instructions=instructions)
        self.tools = self.catalogue.tools
        self._inputs = [_checker(tool.input_schema) for tool in self.tools]
        self._outputs = [_checker(tool.output_schema) for tool in self.tools]

    @cached_property
    def records(self) -> tuple[bytes, bytes]:
        """The records that tell a VM of the tools."""
        names = both_names(self.catalogue.identifiers)
        return protocol.tools(names), protocol.catalogue(self.catalogue.entries())

    def input_checker(self, index: int) -> Checker | None:
        """Return what judges the arguments of the tool at `index`."""
        return self._inputs[index]

    def output_checker(self, index: int) -> Checker | None:
        """Return what judges the results of the tool at `index`."""
        return self._outputs[index]


def _checker(schema: object) -> Checker | None:
    return None if schema is None else Checker(schema)
