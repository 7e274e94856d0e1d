"""A script as it was sent → what the engine runs, and what its first line asks for (pure).

Line numbers stay as they were written.
"""

import json
import re
from typing import NamedTuple

from codespace.codemode.json_values import as_object_or_none

OPTIONS = ("timeout_ms", "max_output_chars")

FENCE_MIN = 3
BYTE_ORDER_MARK = "\ufeff"
"""Some editors begin a file with it."""

# Compiled when the first script needs it.
_OPTIONS = r"\A\s*//[ \t]*@options\b[ \t]*(.*)"


class SourceError(Exception):
    """The script's first line is not what it should be.

    Attributes:
        line: where, from 1.
    """

    def __init__(self, message: str, line: int) -> None:
        super().__init__(message)
        self.line = line


class Source(NamedTuple):
    """A script, without its fence, and its own wishes (None: none)."""

    code: str
    timeout_ms: int | None = None
    max_output_chars: int | None = None


def read_source(text: str) -> Source:
    """Return the script in `text`.

    Raises:
        SourceError: its `@options` line cannot be understood.
    """
    code = _without_fence(text.removeprefix(BYTE_ORDER_MARK))
    found = re.match(_OPTIONS, code) if "@options" in code else None
    if found is None:
        return Source(code)
    line = code[: found.start(1)].count("\n") + 1
    wishes = _options(found[1].strip(), line)
    return Source(code, wishes.get("timeout_ms"), wishes.get("max_output_chars"))


def _without_fence(text: str) -> str:
    # By hand: a pattern with two open ends takes the square of the length where it does not match.
    fenced = text.lstrip()
    mark = fenced[:1]
    if mark not in ("`", "~"):
        return text
    fence = mark * (len(fenced) - len(fenced.lstrip(mark)))
    first, _, rest = fenced[len(fence) :].partition("\n")
    rest = rest.rstrip()
    if len(fence) < FENCE_MIN or "`" in first or not rest.endswith(fence):
        return text
    lead = text[: len(text) - len(fenced)]
    body = rest[: -len(fence)].rstrip(" \t").removesuffix("\n")
    return f"{lead}\n{body}"


def _options(text: str, line: int) -> dict[str, int]:
    try:
        given = as_object_or_none(json.loads(text))
    except (ValueError, RecursionError):
        given = None
    if given is None:
        raise SourceError("The @options line must hold one JSON object.", line)
    wishes: dict[str, int] = {}
    for name, value in given.items():
        if name not in OPTIONS:
            known = " and ".join(OPTIONS)
            raise SourceError(f"The @options line knows {known}, not {name[:60]!r}.", line)
        if isinstance(value, bool) or not isinstance(value, int) or value < 1:
            raise SourceError(f"The option {name} must be an integer from 1.", line)
        wishes[name] = value
    return wishes
