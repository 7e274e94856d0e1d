"""The tools of a sandbox, prepared once for all of its runs."""

from collections.abc import Mapping, Sequence
from functools import cached_property

from codespace.codemode import protocol
from codespace.codemode.checking import Checker
from codespace.codemode.names import both_names
from codespace.codemode.slips import declared
from codespace.codemode.tool import Tool


class Toolset:
    """Tools by their place, with what a run needs of each.

    Attributes:
        tools: as they were given.
        declared: the names of each tool's arguments; None where there may be others.
    """

    def __init__(
        self, tools: Sequence[Tool], *, instructions: Mapping[str, str] | None = None
    ) -> None:
        self.tools = tuple(tools)
        self._instructions = instructions
        self._identifiers = self.catalogue.identifiers if self.tools else {}
        self.declared = [declared(tool.input_schema) for tool in self.tools]
        self._inputs = [None if tool.judges else _checker(tool.input_schema) for tool in self.tools]
        self._outputs = [_checker(tool.output_schema) for tool in self.tools]

    @cached_property
    def catalogue(self):
        """What a script can look up."""
        from codespace.codemode.discovery import Catalogue  # noqa: PLC0415 -- a script without tools never needs it, and its import takes longer than a run

        return Catalogue(self.tools, instructions=self._instructions)

    @cached_property
    def records(self) -> tuple[bytes, bytes]:
        """The records that tell a VM of the tools."""
        entries = self.catalogue.entries() if self.tools else []
        return protocol.tools(both_names(self._identifiers)), protocol.catalogue(entries)

    def input_checker(self, index: int) -> Checker | None:
        """Return what judges the arguments of the tool at `index`."""
        return self._inputs[index]

    def output_checker(self, index: int) -> Checker | None:
        """Return what judges the results of the tool at `index`."""
        return self._outputs[index]


def _checker(schema: object) -> Checker | None:
    return None if schema is None else Checker(schema)
