"""JSON Schema → TypeScript types (pure). Whatever it cannot tell is `unknown`; it never fails."""

from collections import Counter
from collections.abc import Callable, Iterator

from codespace.codemode.json_values import Json, as_list, as_object, as_object_or_none, as_several
from codespace.codemode.literals import constant, enumeration
from codespace.codemode.names import identifier
from codespace.codemode.references import References, every_object, reference_of
from codespace.codemode.schema_notes import note
from codespace.codemode.typescript import (
    NEVER,
    NULL,
    UNKNOWN,
    Array,
    Atom,
    Field,
    Record,
    Tuple,
    Type,
    bare_words,
    both,
    choice,
    without,
    write,
)

SCHEMAS_MAX = 3_000
"""Subschemas of one schema that are read; the rest is `unknown`."""
DEPTH_MAX = 24
ALIAS_CHARS_MIN = 60
"""A type that is used twice gets a name of its own from this length on."""

_WORDS = {
    "string": Atom("string"),
    "number": Atom("number"),
    "integer": Atom("number"),
    "boolean": Atom("boolean"),
    "null": NULL,
}

_OBJECT_KEYWORDS = ("properties", "additionalProperties", "patternProperties", "required")
_ARRAY_KEYWORDS = ("items", "prefixItems")


class SchemaReader:
    """Reads the schemas of one tool.

    Attributes:
        aliases: the named types that the types read so far refer to.
    """

    def __init__(self, prefix: str) -> None:
        self.aliases: dict[str, Type] = {}
        self._prefix = prefix
        self._document = _Document(None)

    def read(self, schema: object) -> Type:
        """Return the type of the whole document `schema`."""
        self._document = _Document(schema)
        return self._target(schema, "Root")

    def _target(self, schema: object, name: str) -> Type:
        # What a reference leads to: read once, named when it refers to itself or is used again.
        document, key = self._document, id(schema)
        if as_object_or_none(schema) is None:
            return self._schema(schema)
        if key in document.known:
            return document.known[key]
        if key in document.open:
            if document.open[key] == document.guards:
                return UNKNOWN  # it refers to itself and to nothing else
            return document.known.setdefault(key, Atom(self._new_name(name)))
        document.open[key] = document.guards
        found = self._schema(schema)
        del document.open[key]
        named = document.known.get(key)
        if named is None and self._deserves_name(schema, found):
            named = Atom(self._new_name(name))
        if isinstance(named, Atom):
            self.aliases[named.text] = self._straight(named.text, found)
        document.known[key] = named or found
        return document.known[key]

    def _straight(self, name: str, found: Type) -> Type:
        # No alias may be itself, also by way of others, without an object or an array between.
        circular = {word for word in bare_words(found) if self._leads_to(name, word)}
        return without(found, circular) if circular else found

    def _leads_to(self, name: str, word: str) -> bool:
        seen, waiting = set[str](), [word]
        while waiting:
            here = waiting.pop()
            if here == name:
                return True
            if here in self.aliases and here not in seen:
                seen.add(here)
                waiting.extend(bare_words(self.aliases[here]))
        return False

    def _deserves_name(self, schema: object, found: Type) -> bool:
        return self._document.uses(schema) > 1 and len(write(found)) >= ALIAS_CHARS_MIN

    def _new_name(self, name: str) -> str:
        wanted = f"{self._prefix}_{identifier(name)}"
        taken = self._document.names | set(self.aliases)
        count = 1
        text = wanted
        while text in taken:
            count += 1
            text = f"{wanted}_{count}"
        self._document.names.add(text)
        return text

    def _schema(self, schema: object) -> Type:
        document = self._document
        document.read += 1
        if schema is False:
            return NEVER
        given = as_object_or_none(schema)
        if given is None:
            return UNKNOWN
        if document.read > SCHEMAS_MAX or document.depth >= DEPTH_MAX:
            return UNKNOWN
        document.depth += 1
        found = both(self._parts(given))
        document.depth -= 1
        return choice([found, NULL]) if given.get("nullable") is True else found

    def _parts(self, schema: Json) -> Iterator[Type]:
        reference = reference_of(schema)
        if reference is not None:
            name = str(reference).rstrip("#/").rsplit("/", 1)[-1].rsplit("#", 1)[-1]
            yield self._target(self._document.references.find(reference), name or "Root")
        if "const" in schema:
            yield constant(schema["const"])
        elif as_list(schema.get("enum")):
            yield enumeration(as_list(schema["enum"]))
        else:
            yield self._typed(schema)
        for each in as_list(schema.get("allOf")):
            yield self._schema(each)
        for keyword in ("anyOf", "oneOf"):
            if as_list(schema.get(keyword)):
                yield choice([self._schema(each) for each in as_list(schema[keyword])])

    def _typed(self, schema: Json) -> Type:
        kind = schema.get("type", _implied_type(schema))
        words = as_several(kind)
        return choice([self._word(word, schema) for word in words])

    def _word(self, word: object, schema: Json) -> Type:
        if word == "object":
            return self._guarded(self._object, schema)
        if word == "array":
            return self._guarded(self._array, schema)
        return _WORDS.get(word, UNKNOWN) if isinstance(word, str) else UNKNOWN

    def _guarded(self, reader: Callable[[Json], Type], schema: Json) -> Type:
        # A named type may refer to itself from inside an object or an array, not beside itself.
        self._document.guards += 1
        found = reader(schema)
        self._document.guards -= 1
        return found

    def _object(self, schema: Json) -> Type:
        required = [name for name in as_list(schema.get("required")) if isinstance(name, str)]
        properties = as_object(schema.get("properties"))
        fields = [
            Field(name, self._schema(each), name in required, note(each))
            for name, each in properties.items()
        ]
        missing = [name for name in dict.fromkeys(required) if name not in properties]
        fields += [Field(name, UNKNOWN, required=True) for name in missing]
        return Record(tuple(fields), self._others(schema))

    def _others(self, schema: Json) -> Type | None:
        # What a property that `properties` does not name may be; None: nothing is said.
        patterns = as_object(schema.get("patternProperties")).values()
        found = [self._schema(each) for each in patterns]
        rest = schema.get("additionalProperties")
        if rest is not None and rest is not False:
            found.append(self._schema(rest))
        if found:
            return choice(found)
        if schema.get("properties") or schema.get("required"):
            return None
        if rest is False:
            return NEVER
        return None if "properties" in schema else UNKNOWN

    def _array(self, schema: Json) -> Type:
        items = schema.get("items")
        leading = as_list(schema.get("prefixItems")) or as_list(items)
        rest = schema.get("additionalItems") if isinstance(items, list) else items
        if not leading:
            return Array(UNKNOWN if rest is None else self._schema(rest))
        smallest = schema.get("minItems")
        required = smallest if isinstance(smallest, int) and smallest >= 0 else 0
        return Tuple(
            tuple(self._schema(each) for each in leading),
            min(required, len(leading)),
            None if rest is False else UNKNOWN if rest is None else self._schema(rest),
        )


def _implied_type(schema: Json) -> object:
    if any(keyword in schema for keyword in _OBJECT_KEYWORDS):
        return "object"
    return "array" if any(keyword in schema for keyword in _ARRAY_KEYWORDS) else None


class _Document:
    """One schema document while it is read."""

    def __init__(self, root: object) -> None:
        self.references = References(root)
        self.known: dict[int, Type] = {}
        self.open: dict[int, int] = {}
        self.names: set[str] = set()
        self.guards = 0
        self.depth = 0
        self.read = 0
        self._uses: Counter[int] | None = None

    def uses(self, schema: object) -> int:
        """Return how many references lead to `schema`."""
        if self._uses is None:
            found = (reference_of(each) for each in every_object(self.references.root))
            targets = (self.references.find(each) for each in found if each is not None)
            self._uses = Counter(id(target) for target in targets)
        return self._uses[id(schema)]
