"""A script as it was sent → what the engine runs, and what its first line asks for (pure).

Line numbers stay as they were written.
"""

import json
import re
from typing import NamedTuple

from codespace.codemode.json_values import as_object_or_none

OPTIONS = ("timeout_ms", "max_output_chars")

# Compiled when the first script needs them.
_FENCE = r"(?s)\A(\s*)(`{3,}|~{3,})[^\n`]*\n(.*?)\n?[ \t]*\2[ \t]*\s*\Z"
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
    code = _without_fence(text)
    found = re.match(_OPTIONS, code) if "@options" in code else None
    if found is None:
        return Source(code)
    line = code[: found.start(1)].count("\n") + 1
    wishes = _options(found[1].strip(), line)
    return Source(code, wishes.get("timeout_ms"), wishes.get("max_output_chars"))


def _without_fence(text: str) -> str:
    found = re.match(_FENCE, text) if text.lstrip().startswith(("```", "~~~")) else None
    return f"{found[1]}\n{found[3]}" if found else text


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
