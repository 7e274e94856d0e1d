"""What every tool's arguments must hold: binding and the published schema say the same."""

import json
import math

from hypothesis import given, settings
from hypothesis import strategies as st

from codespace.domain.errors import CodeSpaceError, ErrorCode
from codespace.domain.tool import Tool
from schemas import fits, values

SECRET = "hunter2-hunter2"
JUNK = st.sampled_from(
    [
        *(None, True, False, 0, 1, -1, 1.0, -1.0, 1.5, 2**53, 2**63, 2**70, 1e18, 1e300),
        *(math.nan, math.inf, -math.inf, "", "1", "true", SECRET, SECRET * 1_000),
        *([], [SECRET], [1, SECRET], [[SECRET]], {}, {SECRET: 1}, {"a": SECRET}, {"a": None}),
    ]
)


def check_binding(tool: Tool) -> None:
    """Try arguments that fit the schema, then the same with one of them replaced by junk."""

    @settings(max_examples=60)
    @given(valid_arguments(tool), st.sampled_from(sorted(_properties(tool))), JUNK)
    def check(arguments: dict[str, object], name: str, junk: object) -> None:
        tool.bind({**arguments, "approved": True, "user_id": SECRET})
        mixed = {**arguments, name: junk}
        if fits(tool.input_schema, mixed):
            tool.bind(mixed)
        else:
            check_refusal(tool, mixed, name)

    check()


def check_refusal(tool: Tool, arguments: dict[str, object], name: str) -> CodeSpaceError:
    """Return the refusal of `arguments`; it names the place and repeats no value."""
    try:
        tool.bind(arguments)
    except CodeSpaceError as error:
        refusal = error
    else:
        raise AssertionError(f"{tool.name} took {name} = {arguments[name]!r}")
    assert refusal.code is ErrorCode.INVALID_ARGUMENT
    assert str(refusal.details["path"]).split(".")[0] == name
    # The keys of a mapping are places; only values are withheld.
    told = json.dumps(refusal.body()).replace(f"{name}.{SECRET}", name)
    assert SECRET not in told
    return refusal


def valid_arguments(tool: Tool) -> st.SearchStrategy[dict[str, object]]:
    """Return arguments that fit the tool's published schema."""
    drawn = values(tool.input_schema)
    return drawn.filter(lambda made: isinstance(made, dict)).map(_as_arguments)


def _as_arguments(made: object) -> dict[str, object]:
    assert isinstance(made, dict)
    return {str(key): value for key, value in made.items()}  # pyright: ignore[reportUnknownVariableType, reportUnknownArgumentType] -- drawn from a schema with text keys


def _properties(tool: Tool) -> list[str]:
    properties = tool.input_schema["properties"]
    assert isinstance(properties, dict)
    return [str(name) for name in properties]  # pyright: ignore[reportUnknownVariableType, reportUnknownArgumentType] -- the keys of a JSON object
