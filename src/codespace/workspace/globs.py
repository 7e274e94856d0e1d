"""A client's glob as one regular expression over whole relative paths.

Pure. Which paths there are, and which of them are ignored, is asked elsewhere.
"""

import itertools
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TypeVar

from codespace.domain.errors import CodeSpaceError, ErrorCode
from codespace.domain.paths import shown_raw

_STAR = "*"
_SLASH = "/"
_ANY = "[^/]"
_GLOBSTAR = (_STAR, _STAR)
_ALTERNATIVES_MAX = 1_000
_EXPANDED_MAX = 20_000
_NESTING_MAX = 16
_NAMES_MAX = 64
_LITERAL = re.compile(r"[^*\\]|\\.", re.DOTALL)
_PLAIN = re.compile(r"[A-Za-z0-9_]|\\[.-]")

Tokens = tuple[str, ...]
"""Regular expressions of single characters, `*` for any number of them, `/` between names."""


@dataclass(frozen=True, slots=True)
class Glob:
    """A compiled glob.

    Attributes:
        pattern: matches a whole relative path; for `fullmatch`.
        everything: every path matches, so nobody needs to ask.
        names: simple globs (only `*` is special) of which each matching path's last name fits
            one; empty when nothing is known. Good for looking at fewer files.
        above: the directories that all matching paths go through, outermost first.
    """

    pattern: re.Pattern[str]
    everything: bool
    names: tuple[str, ...]
    above: tuple[str, ...]


def compile_glob(glob: str, *, max_chars: int) -> Glob:
    r"""Compile `glob`: `*`, `?`, `[a-z]`, `[!a]`, `{a,b}` (nested) and `**` for any directories.

    `**` is special as a whole component: zero or more directories, and at the end everything
    below. `\` takes the next character literally. Dot files are ordinary, `.` and empty
    components are dropped. No glob needs more than polynomial time.

    Raises:
        CodeSpaceError: INVALID_ARGUMENT for bad syntax; PATH_ESCAPE for an absolute glob, `..` or
            NUL; LIMIT_EXCEEDED for a glob that is too long or has too many alternatives.
    """
    if len(glob) > max_chars:
        raise _too_much(f"holds more than {max_chars} characters", max_chars)
    if glob.startswith("/"):
        raise _refused(glob, "is absolute; write it relative to the root", ErrorCode.PATH_ESCAPE)
    if "\0" in glob:
        raise _refused(glob, "holds a NUL character", ErrorCode.PATH_ESCAPE)
    alternatives = [_components(glob, tokens) for tokens in _Parser(glob).alternatives()]
    return Glob(
        pattern=re.compile("|".join(map(_expression, alternatives)), re.DOTALL),
        everything=any(parts in ([_GLOBSTAR], [_GLOBSTAR, (_STAR,)]) for parts in alternatives),
        names=_names(alternatives),
        above=_above(alternatives),
    )


@dataclass(frozen=True, slots=True)
class _Group:
    branches: "tuple[_Sequence, ...]"


_Sequence = tuple["str | _Group", ...]


class _Parser:
    """One pass over the glob's text."""

    def __init__(self, glob: str) -> None:
        self._glob = glob
        self._at = 0
        self._depth = 0

    def alternatives(self) -> list[Tokens]:
        sequence = self._sequence()
        if _count(sequence) > _ALTERNATIVES_MAX:
            raise _too_much(
                f"stands for more than {_ALTERNATIVES_MAX} alternatives", _ALTERNATIVES_MAX
            )
        found = list(dict.fromkeys(_expanded(sequence)))
        if sum(map(len, found)) > _EXPANDED_MAX:
            raise _too_much(
                f"is longer than {_EXPANDED_MAX} characters without its braces", _EXPANDED_MAX
            )
        return found

    def _sequence(self) -> _Sequence:
        found: list[str | _Group] = []
        while self._at < len(self._glob):
            character = self._glob[self._at]
            if self._depth and character in ",}":
                break
            self._at += 1
            found.append(self._node(character))
        return tuple(found)

    def _node(self, character: str) -> "str | _Group":
        match character:
            case "*":
                return _STAR
            case "?":
                return _ANY
            case "[":
                return self._class()
            case "{":
                return self._group()
            case "}":
                raise _refused(self._glob, r"has a '}' without a '{'; write a literal one as '\}'")
            case "\\":
                return re.escape(self._next(r"ends with a lone '\'"))
            case _:
                return re.escape(character)

    def _next(self, complaint: str) -> str:
        if self._at >= len(self._glob):
            raise _refused(self._glob, complaint)
        self._at += 1
        return self._glob[self._at - 1]

    def _group(self) -> _Group:
        self._depth += 1
        if self._depth > _NESTING_MAX:
            raise _too_much(f"nests braces deeper than {_NESTING_MAX}", _NESTING_MAX)
        branches: list[_Sequence] = []
        while True:
            branches.append(self._sequence())
            if self._next("has a '{' without its '}'") == "}":
                self._depth -= 1
                return _Group(tuple(branches))

    def _class(self) -> str:
        unclosed = "has a '[' without its ']'"
        negated = self._glob[self._at : self._at + 1] in ("!", "^")
        self._at += negated
        items: list[str] = []
        character = self._next(unclosed)
        while True:
            items.append(self._class_item(character, unclosed))
            character = self._next(unclosed)
            if character == "]":
                return f"(?!/)[{'^' if negated else ''}{''.join(items)}]"

    def _class_item(self, character: str, unclosed: str) -> str:
        if character == "[" and self._glob[self._at : self._at + 1] == ":":
            raise _refused(self._glob, "uses a named class; write the range, such as [a-z]")
        first = self._class_character(character, unclosed)
        after = self._glob[self._at : self._at + 2]
        if not after.startswith("-") or after == "-]":
            return re.escape(first)
        self._at += 1
        last = self._class_character(self._next(unclosed), unclosed)
        if first > last:
            raise _refused(self._glob, f"has the empty range {first}-{last}")
        return f"{re.escape(first)}-{re.escape(last)}"

    def _class_character(self, character: str, unclosed: str) -> str:
        if character == "\\":
            character = self._next(unclosed)
        if character == "/":
            raise _refused(self._glob, "has a '/' inside '[…]'; a class stands for one character")
        return character


def _count(sequence: _Sequence) -> int:
    total = 1
    for node in sequence:
        if isinstance(node, _Group):
            total *= sum(_count(branch) for branch in node.branches)
    return total


def _expanded(sequence: _Sequence) -> Iterator[Tokens]:
    choices: list[list[Tokens]] = [
        [tokens for branch in node.branches for tokens in _expanded(branch)]
        if isinstance(node, _Group)
        else [(node,)]
        for node in sequence
    ]
    for choice in itertools.product(*choices):
        yield tuple(itertools.chain.from_iterable(choice))


def _components(glob: str, tokens: Tokens) -> list[Tokens]:
    """Split one alternative at its slashes; merge neighbouring `**`."""
    parts = [
        tuple(group)
        for is_slash, group in itertools.groupby(tokens, lambda token: token == _SLASH)
        if not is_slash
    ]
    parts = [part for part in parts if part != (r"\.",)]
    if (r"\.", r"\.") in parts:
        raise _refused(glob, "holds '..'; write it from the root on", ErrorCode.PATH_ESCAPE)
    if not parts or tokens[-1] == _SLASH:
        raise _refused(glob, "names no file; write 'directory/**' for all that is below")
    return [
        part
        for part, before in zip(parts, [None, *parts[:-1]], strict=True)
        if not part == before == _GLOBSTAR
    ]


def _expression(parts: Sequence[Tokens]) -> str:
    # Between two `**` stands a fixed number of names, and between two `*` a fixed number of
    # characters: the first place where they fit is as good as any later one. Atomic groups say
    # so, and keep a hostile glob from trying every combination.
    first, *others = ["/".join(map(_name_expression, run)) for run in _split(parts, _GLOBSTAR)]
    if not others:
        return first
    *middle, last = others
    head = f"{first}/" if first else ""
    inner = "".join(f"(?>(?:[^/]+/)*?{run}/)" for run in middle)
    return f"{head}{inner}" + (f"(?:[^/]+/)*{last}" if last else ".+")


def _name_expression(part: Tokens) -> str:
    first, *others = ["".join(chunk) for chunk in _split(part, _STAR)]
    if not others:
        return first
    *middle, last = others
    inner = "".join(f"(?>[^/]*?{chunk})" for chunk in middle if chunk)
    return f"{first}{inner}[^/]*{last}"


T = TypeVar("T")


def _split(items: Sequence[T], separator: T) -> list[list[T]]:
    runs: list[list[T]] = [[]]
    for item in items:
        if item == separator:
            runs.append([])
        else:
            runs[-1].append(item)
    return runs


def _names(alternatives: Sequence[Sequence[Tokens]]) -> tuple[str, ...]:
    names = {_name(parts[-1]) for parts in alternatives}
    return () if _STAR in names or len(names) > _NAMES_MAX else tuple(sorted(names))


def _name(part: Tokens) -> str:
    plain = [token if _PLAIN.fullmatch(token) else _STAR for token in part]
    return re.sub(r"\*+", _STAR, "".join(plain).replace("\\", ""))


def _above(alternatives: Sequence[Sequence[Tokens]]) -> tuple[str, ...]:
    common: list[str] = []
    for names in zip(*(parts[:-1] for parts in alternatives), strict=False):
        if len(set(names)) > 1 or not all(map(_LITERAL.fullmatch, names[0])):
            break
        common.append("".join(token[-1] for token in names[0]))
    return tuple(common)


def _refused(glob: str, why: str, code: ErrorCode = ErrorCode.INVALID_ARGUMENT) -> CodeSpaceError:
    return CodeSpaceError(code, f"The glob {why}.", details={"glob": shown_raw(glob)})


def _too_much(why: str, limit: int) -> CodeSpaceError:
    return CodeSpaceError(
        ErrorCode.LIMIT_EXCEEDED,
        f"The glob {why}; ask for less at a time.",
        details={"limit": limit},
    )
