"""What an error of the engine probably means, where its own message does not say (pure)."""

import re

TYPESCRIPT = (
    "this is TypeScript, and scripts are plain JavaScript: remove type annotations, interfaces, "
    "`as` casts and the like"
)
MODULES = (
    "there are no modules here: everything that a script has is a global (tools, text, store, …)"
)
UNFINISHED = "the script ends too early: a bracket, brace or quote is not closed"

TIMERS = (
    "there are no timers here: a script that wants to wait uses a tool that waits, with its wait_ms"
)
NETWORK = "scripts have no network: what they reach, they reach through tools"
SYSTEM = (
    "scripts have no process, files or modules of their own: use tools, and `args` for what the "
    "script is given"
)
NAMES = {
    "setTimeout": TIMERS,
    "setInterval": TIMERS,
    "setImmediate": TIMERS,
    "clearTimeout": TIMERS,
    "clearInterval": TIMERS,
    "sleep": TIMERS,
    "fetch": NETWORK,
    "XMLHttpRequest": NETWORK,
    "WebSocket": NETWORK,
    "require": MODULES,
    "module": MODULES,
    "exports": MODULES,
    "process": SYSTEM,
    "Deno": SYSTEM,
    "Bun": SYSTEM,
    "fs": SYSTEM,
    "__dirname": SYSTEM,
    "window": SYSTEM,
    "document": SYSTEM,
    "Buffer": "use TextEncoder, TextDecoder, atob and btoa for bytes",
    "print": "use text(value) or console.log(value)",
}
"""Globals of other places, and what a script has instead."""

LINE_CHARS = 1_000
"""So much of a line is looked at: the patterns take the square of its length, at worst."""

# Compiled when the first script with such an error needs them. No text that they look at has two
# blanks in a row: many of these would take the cube of their number.
_UNKNOWN_NAME = r"^(\S+) is not defined$"
_TYPE_STATEMENT = (
    r"^\s*(export\s+)?(declare\s+|abstract\s+)?"
    r"(interface\s+\w+[^=(]*\{|type\s+\w+(<[^>]*>)?\s*=|(const\s+)?enum\s+\w+\s*\{|namespace\s+\w+\s*\{)"
)
_ANNOTATION = (
    r"(\b(const|let|var)\s+([\w$]+|\[[^\]]*\]|\{[^}]*\})\s*!?:\s*[\w$\[{(\"'])"
    r"|([(,]\s*(\.\.\.)?[\w$]+\??\s*:\s*[\w$.<>\[\]| \"']+\s*(=[^,)]*)?[,)])"
    r"|(\)\s*:\s*[\w$.<>\[\]|{} ]+\s*(=>|\{))"
)
_OPERATOR = (
    r"\bas\s+(const\b|[\w$.]+)|\bsatisfies\s+\w|[\w$)\]]!\s*[.;,)\[]|\bimport\s+type\b"
    r"|\b(private|public|protected|readonly)\s+\w|[\w$]<[\w$\[\]{}| ,:]+>\s*\("
)
_MODULE = r"^\s*(import\b(?!\s*\()|export\b)"


def explain(source: str, message: str, line: int) -> str:
    """Return `message` with what the error at `line` (from 1) probably means added to it."""
    hint = _hint(source.splitlines(), line)
    return f"{message} ({hint})" if hint else message


def explain_name(message: str) -> str:
    """Return the message of a ReferenceError with what a script has instead of that name."""
    found = re.match(_UNKNOWN_NAME, message)
    hint = NAMES.get(found[1]) if found else None
    if message.startswith("could not load module "):
        hint = MODULES
    return f"{message} ({hint})" if hint else message


def _hint(lines: list[str], line: int) -> str:
    if line > len(lines):
        return UNFINISHED
    text = " ".join(lines[line - 1].split())[:LINE_CHARS] if line > 0 else ""
    if re.search(_MODULE, text) and not re.match(
        r"\s*(import|export)\s+(type|interface|enum)\b", text
    ):
        return MODULES
    patterns = (_TYPE_STATEMENT, _ANNOTATION, _OPERATOR)
    if any(re.search(pattern, text) for pattern in patterns):
        return TYPESCRIPT
    return ""
