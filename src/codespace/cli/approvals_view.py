"""Held calls as lines for a person. Nothing in them steers the terminal or hides in it."""

import json
from collections.abc import Iterator
from datetime import datetime
from typing import cast

from codespace.domain.tool import Json
from codespace.domain.visible import visible

HIDDEN = "Some of its characters would not be seen; they are written as <U+202E>."
_TEXTS = ("patch", "command")


def hold_line(hold: Json) -> str:
    """Return a hold in one line."""
    parts = [hold["approval_id"], hold["workspace_id"], _state(hold), hold["tool"]]
    if hold.get("summary"):
        parts.append(hold["summary"])
    return "  ".join(visible(str(part), lines=False) for part in parts)


def detail_lines(hold: Json) -> Iterator[str]:
    """Yield a hold, what it would do, and what it came to."""
    yield hold_line({**hold, "summary": None})
    yield f"held: {_time(hold['created_at'])}; granted by: {hold['granted_by']}"
    if hold.get("resolved_by"):
        yield f"decided: {_time(hold['resolved_at'])} by the {hold['resolved_by']}"
    if hold.get("hidden_characters"):
        yield HIDDEN
    arguments = cast("Json | None", hold.get("arguments"))
    if arguments is None:
        yield f"arguments: gone after the end; SHA-256 {hold['arguments_digest']}"
    else:
        yield from _argument_lines(arguments)
    for name in ("result", "error"):
        if hold.get(name) is not None:
            yield f"{name}: {_json(hold[name])}"


def _argument_lines(arguments: Json) -> Iterator[str]:
    for name in sorted(arguments, key=lambda name: (name in _TEXTS, name)):
        value = arguments[name]
        if name in _TEXTS and isinstance(value, str):
            yield f"{name}:"
            yield from (f"    {line}" for line in visible(value).split("\n"))
        else:
            yield f"{visible(name, lines=False)}: {_json(value)}"


def _state(hold: Json) -> str:
    return "interrupted" if hold.get("interrupted") else str(hold["state"])


def _json(value: object) -> str:
    return visible(json.dumps(value, ensure_ascii=False), lines=False)


def _time(milliseconds: object) -> str:
    moment = datetime.fromtimestamp(cast("int", milliseconds) / 1000).astimezone()
    return moment.isoformat(sep=" ", timespec="seconds")
