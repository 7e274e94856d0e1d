"""What a script may call: any async Python callable with a name, and how it says no."""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import KW_ONLY, dataclass
from typing import NamedTuple

from codespace.codemode.awaited import may_be_awaited
from codespace.codemode.json_values import Json
from codespace.codemode.misuse import require, require_schema
from codespace.codemode.names import namespace_of
from codespace.domain.effect import Effect

Arguments = dict[str, object]
"""The JSON object that a script called a tool with. The tool may change it."""


class ToolError(Exception):
    """A call was refused or failed; the script's promise rejects with the same three values.

    Attributes:
        code: what kind of refusal, for a script to branch on.
        message: one plain sentence that says what to do next.
        details: a JSON value that helps to mend the call, or None.
    """

    def __init__(self, code: str, message: str, details: object = None) -> None:
        # A caught exception is at times given for its text.
        self.code, self.message = str(code), str(message)
        super().__init__(f"{self.code}: {self.message}")
        self.details = details


@dataclass(frozen=True, slots=True)
class Tool:
    """One tool.

    Attributes:
        name: any text; a script finds it as `tools["name"]` and under an identifier made of it.
        fn: gets the arguments, returns a JSON value; raises `ToolError` to refuse.
        description: for whoever writes the script.
        input_schema: JSON Schema of the arguments; a call that does not fit is not made.
        output_schema: JSON Schema of the result; one that does not fit is delivered and noted.
        effect: what a call can change.
        serialize: calls with the same key run one after another; None: beside any others. A
            function is given the arguments.
        completes: a call that has begun is never cancelled: the end of a run waits for it.
        namespace: the server that it belongs to; None: told by a name like `mcp__server__tool`.
        judges: `fn` refuses arguments that do not fit; the schema only tells of them.
        search_words: what else a search finds it by; nobody is shown them.

    Raises:
        TypeError: `fn` is no async function, or another value is not what it should be.
        ValueError: a type in a schema of a tool of no server is none; what servers say of their
            own tools is taken as it is, and such a schema checks nothing.
    """

    name: str
    fn: Callable[[Arguments], Awaitable[object]]
    _: KW_ONLY
    description: str = ""
    input_schema: Json | None = None
    output_schema: Json | None = None
    effect: Effect = Effect.WRITE
    serialize: str | Callable[[Json], str | None] | None = None
    completes: bool = False
    namespace: str | None = None
    judges: bool = False
    search_words: str = ""

    def __post_init__(self) -> None:
        require(self.name, str, what="the name of a tool must be text")
        require(self.description, str, what=f"the description of {self.name!r} must be text")
        require(self.effect, Effect, what=f"the effect of {self.name!r} must be an Effect")
        if not may_be_awaited(self.fn):
            raise TypeError(
                f"the function of the tool {self.name!r} must be async; one that blocks belongs"
                " into `asyncio.to_thread`, inside an async function"
            )
        for part in () if self.server else ("input_schema", "output_schema"):
            if (schema := getattr(self, part)) is not None:
                require_schema(schema, what=f"the {part} of {self.name!r}")

    @property
    def server(self) -> str:
        """The server that the tool belongs to; empty for an own one."""
        return namespace_of(self.name) if self.namespace is None else self.namespace

    def serial_key(self, arguments: Json) -> str | None:
        """Return the key of a call with these arguments."""
        if callable(self.serialize):
            return self.serialize(arguments)
        return self.serialize


class Invocation(NamedTuple):
    """One call that is about to run.

    Attributes:
        call_no: its place in the run, from 1 in the order of the script's calls.
        tool: what is called.
        arguments: they fit the tool's input schema.
        options: the second argument that the script gave the call, an object; else empty.
        line: where the script wrote the call; 0 when there is no such place.
    """

    call_no: int
    tool: Tool
    arguments: Arguments
    options: Mapping[str, object]
    line: int


Dispatch = Callable[[Invocation], Awaitable[object]]
"""The one way in which every call of a run goes out."""


def call_directly(invocation: Invocation) -> Awaitable[object]:
    """Call the tool's own function: the dispatch of a sandbox without a gateway."""
    return invocation.tool.fn(invocation.arguments)
