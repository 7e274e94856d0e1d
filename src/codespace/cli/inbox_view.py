"""Works and instructions as lines for a person. Text of an agent's cannot steer the terminal."""

import unicodedata
from collections.abc import Iterator
from typing import cast

from codespace.domain.tool import Json

_ESCAPED = ("Cc", "Cf", "Co", "Cs", "Zl", "Zp")
"""Control, formatting and zero-width characters, and such as nobody has given a meaning."""


def visible(text: str, *, lines: bool = False) -> str:
    """Return text in which nothing is hidden; with `lines`, line ends stay."""
    return "".join(
        char
        if (lines and char == "\n") or unicodedata.category(char) not in _ESCAPED
        else char.encode("unicode_escape", "replace").decode()
        for char in text
    )


def work_line(work: Json) -> str:
    """Return a work in one line."""
    counts = [f"{work[name]} {name}" for name in ("queued", "claimed") if work[name]]
    about = ", ".join([str(work["state"]), *counts])
    title = visible(str(work["title"]))
    return f"{work['work_id']}  {work['workspace_id']}  {about}" + (f"  {title}" if title else "")


def intent_lines(intent: Json) -> Iterator[str]:
    """Yield an instruction: a line about it, then its text and what the agent said of it."""
    yield (
        f"{intent['intent_id']}  revision {intent['revision']}  {intent['state']}"
        f"  {intent['kind']}  {intent['delivery']}"
    )
    yield from _indented(str(intent["body"]), "    ")
    if intent.get("note"):
        yield from _indented(str(intent["note"]), "    > ")


def list_lines(listed: Json) -> Iterator[str]:
    """Yield a work and its instructions in the user's order."""
    yield work_line(cast("Json", listed["work"]))
    for intent in cast("list[Json]", listed["intents"]):
        yield from intent_lines(intent)


def _indented(text: str, by: str) -> Iterator[str]:
    for line in visible(text, lines=True).split("\n"):
        yield f"{by}{line}"
