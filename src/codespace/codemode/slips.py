"""Names of arguments that a tool does not declare: told of, and never a reason to refuse a call."""

from collections.abc import Iterable, Mapping, Sequence
from itertools import islice

from codespace.codemode.json_values import Json, as_object
from codespace.codemode.misfit import PART_CHARS, Misfit, place
from codespace.codemode.outcome import CallRecord, CallState, RunProblem
from codespace.codemode.tool import Tool

NAMES_MAX = 5
"""Of one call, this many names are told."""
KNOWN_MAX = 12
LOOKED_AT_MAX = 200
"""Names among which the one that was meant is looked for."""
TOLD_MAX = 20
"""So many slips of a run are told one by one; a slip that a loop repeats is one."""

_OPENING = frozenset(
    {
        "$dynamicRef",
        "$recursiveRef",
        "$ref",
        "allOf",
        "anyOf",
        "dependencies",
        "dependentSchemas",
        "else",
        "if",
        "oneOf",
        "patternProperties",
        "propertyNames",
        "then",
    }
)
"""Keywords that can bring in arguments beside `properties`."""


def declared(schema: Json | None) -> frozenset[str] | None:
    """Return the names of all arguments of a tool; None where its schema may let in others."""
    given = as_object(schema)
    names = as_object(given.get("properties"))
    closed = all(
        given.get(keyword, False) is False
        for keyword in ("additionalProperties", "unevaluatedProperties")
    )
    return frozenset(names) if names and closed and _OPENING.isdisjoint(given) else None


_Where = tuple[str, int, tuple[str, ...]]


class Slips:
    """The slips of one run."""

    def __init__(self) -> None:
        self._tools: dict[_Where, Tool] = {}
        self._calls: dict[_Where, list[int]] = {}
        self._rest: list[int] = []

    def note(self, call_no: int, line: int, tool: Tool, arguments: Json) -> None:
        """Remember a call whose arguments are not all declared."""
        known = _properties(tool)
        unknown = (name[:PART_CHARS] for name in arguments if name not in known)
        where = tool.name, line, tuple(islice(unknown, NAMES_MAX))
        if where in self._tools or len(self._tools) < TOLD_MAX:
            self._tools[where] = tool
            self._calls.setdefault(where, []).append(call_no)
        else:
            self._rest.append(call_no)

    def problems(self, records: Sequence[CallRecord]) -> Sequence[RunProblem]:
        """Return a problem for each slip of calls that were not refused: those are told already."""
        told: list[RunProblem] = []
        for where, tool in self._tools.items():
            made = _made(self._calls[where], records)
            if made:
                message = _message(tool, where[2], len(made) - 1)
                told.append(RunProblem("UNKNOWN_ARGUMENT", message, made[0], tool.name, where[1]))
        rest = len(_made(self._rest, records))
        if rest:
            message = f"{rest} more calls had arguments that their tools do not declare."
            told.append(RunProblem("UNKNOWN_ARGUMENT", message))
        return told


def _made(calls: Sequence[int], records: Sequence[CallRecord]) -> Sequence[int]:
    return [number for number in calls if records[number - 1].state is not CallState.FAILED]


def mistaken(misfits: Sequence[Misfit], arguments: Json, tool: Tool) -> list[Misfit]:
    """Add to a name that is missing the one that was probably given in its place."""
    known = _properties(tool)
    unmeant = [name for name in islice(arguments, LOOKED_AT_MAX) if name not in known]
    return [_mistaken(each, unmeant) if unmeant else each for each in misfits]


def _mistaken(misfit: Misfit, unmeant: Sequence[str]) -> Misfit:
    if misfit.problem != "is required" or "." in misfit.path:
        return misfit
    found = _near(misfit.path, unmeant) or (unmeant if len(unmeant) == 1 else ())
    if not found:
        return misfit
    return misfit._replace(problem=f"{misfit.problem}; {_quoted(found[0])} is no argument of it")


def _properties(tool: Tool) -> Json:
    return as_object(as_object(tool.input_schema).get("properties"))


def _message(tool: Tool, names: Sequence[str], more: int) -> str:
    known = _properties(tool)
    said = ", ".join(_quoted(name) + _meant(name, known) for name in names)
    again = f" {more} more calls at this line were like it." if more else ""
    return (
        f"{tool.name} declares no argument {said}, and the call was made all the same."
        f" It takes {_listed(known)}.{again}"
    )


def _meant(name: str, known: Iterable[str]) -> str:
    found = _near(name, known)
    return f" (did you mean {_quoted(found[0])}?)" if found else ""


def _listed(known: Mapping[str, object]) -> str:
    rest = len(known) - KNOWN_MAX
    names = ", ".join(place([name]) for name in islice(known, KNOWN_MAX))
    return f"{names} and {rest} more" if rest > 0 else names


def _quoted(name: str) -> str:
    return f"'{place([name])}'"


def _near(name: str, known: Iterable[str]) -> Sequence[str]:
    from codespace.domain.near import near  # noqa: PLC0415 -- its import takes as long as a run

    return near(name, islice(known, LOOKED_AT_MAX))
