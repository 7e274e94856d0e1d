"""TypeScript types as values, and how they are written (pure)."""

import json
import re
from collections.abc import Iterable, Iterator, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass

WIDTH = 88
"""An object type without comments that fits this many columns is written on one line."""

DOC_CHARS = 400
"""A comment keeps this much of a description."""

_IDENTIFIER = re.compile(r"[A-Za-z_$][A-Za-z0-9_$]*")
_BARE = re.compile(r"[^\W\d][\w$]*|[$][\w$]*")


@dataclass(frozen=True, slots=True)
class Atom:
    """A type that is one word: `string`, `unknown`, a literal, the name of an alias."""

    text: str


@dataclass(frozen=True, slots=True)
class Choice:
    """`A | B`. Made by `choice`, so that it has two parts or more and no part twice."""

    parts: "tuple[Type, ...]"


@dataclass(frozen=True, slots=True)
class Both:
    """`A & B`. Made by `both`."""

    parts: "tuple[Type, ...]"


@dataclass(frozen=True, slots=True)
class Array:
    """`T[]`."""

    item: "Type"


@dataclass(frozen=True, slots=True)
class Tuple:
    """`[A, B?, ...C[]]`; `required` of the items must be there."""

    items: "tuple[Type, ...]"
    required: int
    rest: "Type | None"


@dataclass(frozen=True, slots=True)
class Field:
    """One property of an object type."""

    name: str
    type: "Type"
    required: bool
    doc: str = ""


@dataclass(frozen=True, slots=True)
class Record:
    """An object type: its properties, and the type of all others (None: not told)."""

    fields: tuple[Field, ...]
    others: "Type | None" = None


Type = Atom | Choice | Both | Array | Tuple | Record

UNKNOWN = Atom("unknown")
NEVER = Atom("never")
NULL = Atom("null")


def choice(parts: Iterable[Type]) -> Type:
    """Return the union of `parts`, flat and without repetition."""
    flat: dict[Type, None] = {}
    for part in parts:
        for each in part.parts if isinstance(part, Choice) else (part,):
            flat.setdefault(each)
    flat.pop(NEVER, None)
    if UNKNOWN in flat:
        return UNKNOWN
    if len(flat) > 1:
        return Choice(tuple(flat))
    return next(iter(flat), NEVER)


def both(parts: Iterable[Type]) -> Type:
    """Return the intersection of `parts`, flat and without repetition."""
    flat: dict[Type, None] = {}
    for part in parts:
        for each in part.parts if isinstance(part, Both) else (part,):
            flat.setdefault(each)
    flat.pop(UNKNOWN, None)
    if NEVER in flat:
        return NEVER
    if len(flat) > 1:
        return Both(tuple(flat))
    return next(iter(flat), UNKNOWN)


def bare_words(kind: Type) -> Iterator[str]:
    """Yield the words that `kind` is made of outside of any object, array and tuple."""
    match kind:
        case Atom(text):
            yield text
        case Choice(parts) | Both(parts):
            for part in parts:
                yield from bare_words(part)
        case _:
            pass


def without(kind: Type, words: AbstractSet[str]) -> Type:
    """Return `kind` with `unknown` for these of its bare words."""
    match kind:
        case Atom(text):
            return UNKNOWN if text in words else kind
        case Choice(parts):
            return choice([without(part, words) for part in parts])
        case Both(parts):
            return both([without(part, words) for part in parts])
        case _:
            return kind


def write(kind: Type, indent: int = 0) -> str:
    """Return `kind` as TypeScript; its later lines begin at column `indent`."""
    match kind:
        case Atom(text):
            return text
        case Choice(parts):
            return " | ".join(write(part, indent) for part in parts)
        case Both(parts):
            return " & ".join(_grouped(part, indent, Choice) for part in parts)
        case Array(item):
            return f"{_grouped(item, indent, Choice, Both)}[]"
        case Tuple():
            return _tuple(kind, indent)
        case Record():
            return _record(kind, indent)


def comment(text: str, indent: int = 0) -> str:
    """Return `text` as a comment on lines of its own, with its newline; nothing for no text."""
    lines = _shortened(text).replace("*/", "*\\/").splitlines()
    pad = " " * indent
    if not lines:
        return ""
    if len(lines) == 1:
        return f"{pad}/** {lines[0]} */\n"
    body = "".join(f"{pad} * {line}".rstrip() + "\n" for line in lines)
    return f"{pad}/**\n{body}{pad} */\n"


def key(name: str) -> str:
    """Return `name` as a property's name, quoted where it must be."""
    return name if _IDENTIFIER.fullmatch(name) else literal(name)


def method(name: str) -> str:
    """Return `name` as a method's name: `new` alone would declare a constructor."""
    return literal(name) if name == "new" or not _BARE.fullmatch(name) else name


def literal(text: str) -> str:
    """Return `text` as a string of TypeScript."""
    quoted = json.dumps(text, ensure_ascii=False)
    return "".join(_escaped(char) if _must_escape(char) else char for char in quoted)


def is_optional(kind: Type) -> bool:
    """Tell whether an object without properties is of this type, as far as that can be seen."""
    return isinstance(kind, Record) and not any(field.required for field in kind.fields)


def _grouped(kind: Type, indent: int, *loose: type[Type]) -> str:
    text = write(kind, indent)
    return f"({text})" if isinstance(_shape(kind), loose) else text


def _shape(kind: Type) -> Type:
    # An object type with properties and others is written as an intersection.
    return Both((kind,)) if isinstance(kind, Record) and kind.fields and kind.others else kind


def _tuple(kind: Tuple, indent: int) -> str:
    parts = [
        _grouped(item, indent, Choice, Both) + "?"
        if position >= kind.required
        else write(item, indent)
        for position, item in enumerate(kind.items)
    ]
    if kind.rest is not None:
        parts.append(f"...{write(Array(kind.rest), indent)}")
    return f"[{', '.join(parts)}]"


def _record(kind: Record, indent: int) -> str:
    if not kind.fields:
        return _index(kind.others or UNKNOWN, indent)
    text = _properties(kind.fields, indent)
    if kind.others is None:
        return text
    return f"{text} & {_index(kind.others, indent)}"


def _index(values: Type, indent: int) -> str:
    if values in (UNKNOWN, NEVER):
        return f"Record<string, {write(values)}>"
    # Not `Record`: a type may refer to itself through an index signature only.
    return f"{{ [key: string]: {write(values, indent)} }}"


def _properties(fields: Sequence[Field], indent: int) -> str:
    inner = indent + 2
    parts = [f"{_head(field)}: {write(field.type, inner)}" for field in fields]
    short = f"{{ {'; '.join(parts)} }}"
    commented = any(field.doc for field in fields)
    if not commented and "\n" not in short and len(short) + indent <= WIDTH:
        return short
    lines = [
        f"{comment(field.doc, inner)}{' ' * inner}{part};\n"
        for field, part in zip(fields, parts, strict=True)
    ]
    return f"{{\n{''.join(lines)}{' ' * indent}}}"


def _head(field: Field) -> str:
    return key(field.name) + ("" if field.required else "?")


def _shortened(text: str) -> str:
    plain = "\n".join(line.strip() for line in text.strip().splitlines())
    safe = "".join(_escaped(char) if _must_escape(char) else char for char in plain)
    return safe if len(safe) <= DOC_CHARS else safe[: DOC_CHARS - 1].rstrip() + "…"


def _must_escape(char: str) -> bool:
    if char < " ":
        return char not in "\n\t"
    return char in "\x7f\x85\u2028\u2029" or "\ud800" <= char <= "\udfff"


def _escaped(char: str) -> str:
    return f"\\u{ord(char):04x}"
