"""The identifier under which a script finds each tool (pure; contract, section 4).

Every original name but `then` works as `tools["…"]`, too; an identifier is the name to show.
"""

import hashlib
import re
import unicodedata
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from collections.abc import Set as AbstractSet

HASH_LENGTHS = (6, 10, 16, 32, 64)
"""Hex digits of a collision's hash: the first length that settles it is taken."""

THENABLE = "then"
"""An object with this method is taken for a promise by `await`: `tools` never has it."""

_LETTERS = frozenset({"Lu", "Ll", "Lt", "Lm", "Lo", "Nl"})
_MARKS = frozenset({"Mn", "Mc", "Nd", "Pc"})
_SERVER = re.compile(r"mcp__(.+?)__.")


def identifier(name: str) -> str:
    """Return `name` with `_` for whatever an identifier of JavaScript cannot have."""
    if name == THENABLE:
        return f"{name}_"
    text = "".join(char if _belongs(char) else "_" for char in name)
    return text if text and _begins(text[0]) else f"_{text}"


def identifiers(names: Iterable[str]) -> dict[str, str]:
    """Return the identifier of each name. No two are equal, whatever the order of the names.

    A name that is an identifier keeps itself. Others that would be equal to it, or to each other,
    get a short hash of their original.
    """
    originals = dict.fromkeys(names)
    plain = {name: identifier(name) for name in originals}
    counts = Counter(plain.values())
    taken = set(originals) | set(plain.values())
    clashing: defaultdict[str, list[str]] = defaultdict(list)
    for name in originals:
        if name != plain[name] and (counts[plain[name]] > 1 or plain[name] in originals):
            clashing[plain[name]].append(name)
    for wanted, group in clashing.items():
        plain.update(_hashed(wanted, group, taken))
    return plain


def both_names(known: Mapping[str, str]) -> list[tuple[int, str]]:
    """Return each index of `known` with its identifier, and its original if that differs."""
    pairs: list[tuple[int, str]] = []
    for index, (name, ident) in enumerate(known.items()):
        pairs.append((index, ident))
        if name not in (ident, THENABLE):
            pairs.append((index, name))
    return pairs


def namespace_of(name: str) -> str:
    """Return the server that a tool named `mcp__server__tool` belongs to; empty for an own one."""
    found = _SERVER.match(name)
    return found[1] if found else ""


def _hashed(wanted: str, group: list[str], taken: AbstractSet[str]) -> dict[str, str]:
    found: dict[str, str] = {}
    for length in HASH_LENGTHS:
        found = {name: f"{wanted}_{_digest(name)[:length]}" for name in group}
        if len(set(found.values())) == len(group) and not taken & set(found.values()):
            break
    return found


def _digest(name: str) -> str:
    return hashlib.sha256(name.encode("utf-8", "surrogatepass")).hexdigest()


def _begins(char: str) -> bool:
    return char in "$_" or _category(char) in _LETTERS


def _belongs(char: str) -> bool:
    return _begins(char) or _category(char) in _MARKS


def _category(char: str) -> str:
    # Unicode 3.2 knows no letter that an engine or a compiler of today does not take, and it
    # gives the same answer under every Python, so that a name never changes with the interpreter.
    return unicodedata.ucd_3_2_0.category(char)
