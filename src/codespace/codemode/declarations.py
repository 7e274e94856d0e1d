"""Tools → TypeScript declarations, and the catalogue's text within a budget of tokens (pure)."""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from codespace.codemode.json_values import Json
from codespace.codemode.schema_types import SchemaReader
from codespace.codemode.typescript import (
    NEVER,
    UNKNOWN,
    Record,
    Type,
    comment,
    is_optional,
    method,
    write,
)

HEAD = "declare const tools: {\n"
FOOT = "};\n"

CHARS_PER_TOKEN = 4
"""An estimate: declarations are mostly English words and punctuation."""

CHARS_MAX = 24_000
"""A declaration that is longer shows no result, and if need be no arguments."""


@dataclass(frozen=True, slots=True)
class Declaration:
    """One tool for a script's author.

    Attributes:
        aliases: declarations of the types that the signature names.
        signature: the tool's line, or lines, inside `declare const tools: {…}`.
    """

    aliases: tuple[str, ...]
    signature: str

    @property
    def text(self) -> str:
        """The whole declaration, which stands by itself."""
        return together([self])

    @property
    def chars(self) -> int:
        """How many characters it adds to a list of declarations."""
        return len(self.signature) + sum(map(len, self.aliases))

    @property
    def cost(self) -> int:
        """About how many tokens it adds to a list of declarations."""
        return tokens("".join([*self.aliases, self.signature]))


def declare(
    ident: str,
    *,
    description: str = "",
    input_schema: Json | None = None,
    output_schema: Json | None = None,
    observed: Type | None = None,
) -> Declaration:
    """Declare the tool that a script finds as `tools.<ident>`. Never fails.

    `observed` is the type of earlier results, shown as such when there is no output schema.
    """
    whole = _declare(ident, description, input_schema, output_schema, observed)
    if whole.chars <= CHARS_MAX:
        return whole
    half = _declare(ident, description, input_schema, None, None)
    if half.chars <= CHARS_MAX:
        return half
    return _declare(ident, description, None, None, None)


def _declare(
    ident: str,
    description: str,
    input_schema: Json | None,
    output_schema: Json | None,
    observed: Type | None,
) -> Declaration:
    reader = SchemaReader(ident)
    arguments = reader.read(True if input_schema is None else input_schema)
    shape = reader.aliases.get(write(arguments), arguments)
    result = _result(reader, output_schema, observed)
    signature = f"{method(ident)}({_parameters(arguments, shape)}): Promise<{result}>;"
    return Declaration(
        tuple(f"type {name} = {write(kind)};\n" for name, kind in reader.aliases.items()),
        f"{comment(description, 2)}  {signature}\n",
    )


def together(declarations: Iterable[Declaration]) -> str:
    """Return several declarations as one text."""
    several = list(declarations)
    aliases = [alias for each in several for alias in each.aliases]
    return "".join([*aliases, HEAD, *(each.signature for each in several), FOOT])


def tokens(text: str) -> int:
    """Return about how many tokens `text` costs a model."""
    return -(-len(text.encode("utf-8", "replace")) // CHARS_PER_TOKEN)


@dataclass(frozen=True, slots=True)
class Listed:
    """A tool's place in the catalogue: the server it is of (empty: ours) and its declaration."""

    namespace: str
    declaration: Declaration


def catalogue_text(listed: Sequence[Listed], budget: int) -> str:
    """Return the declarations that fit `budget` tokens, then what else there is and how to look.

    Own tools are always there; of the servers' tools the shortest, so that most fit.
    """
    costs = [each.declaration.cost for each in listed]
    shown = {index for index, each in enumerate(listed) if not each.namespace}
    left = budget - sum(costs[index] for index in shown)
    for index in sorted(range(len(listed)), key=lambda index: (costs[index], index)):
        if index not in shown and costs[index] <= left:
            left -= costs[index]
            shown.add(index)
    hidden = Counter(each.namespace for index, each in enumerate(listed) if index not in shown)
    return together(listed[index].declaration for index in sorted(shown)) + _how_to_find(hidden)


def _how_to_find(hidden: Counter[str]) -> str:
    if not hidden:
        return ""
    servers = ", ".join(f"{name} ({count})" for name, count in sorted(hidden.items()))
    return (
        f"// Not shown: tools of {servers}.\n"
        '// await searchTools("words", {namespace?, limit?}): [{name, description, declaration}]\n'
        "// await describeNamespace(name): all that one server offers.\n"
    )


def _parameters(arguments: Type, shape: Type) -> str:
    if shape in (Record(()), Record((), NEVER)):
        return ""
    if shape == UNKNOWN:
        return "args?: Record<string, unknown>"
    return f"args{'?' if is_optional(shape) else ''}: {write(arguments, 2)}"


def _result(reader: SchemaReader, schema: Json | None, observed: Type | None) -> str:
    if schema is not None:
        return write(reader.read(schema), 2)
    if observed is not None:
        return f"/* observed */ {write(observed, 2)}"
    return write(UNKNOWN)
