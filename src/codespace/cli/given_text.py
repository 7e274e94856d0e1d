"""Texts that are given on the command line, in a file, or on stdin."""

import sys
from pathlib import Path

from codespace.settings import SettingsError


def text_of(what: str, given: str) -> str:
    """Return the text: `@FILE` stands for that of a file, `@-` for that of stdin.

    Raises:
        SettingsError: the file of `what` cannot be read as text.
    """
    if given == "@-":
        return sys.stdin.read()
    if not given.startswith("@"):
        return given
    try:
        return Path(given[1:]).read_text(encoding="utf-8")
    except (OSError, ValueError):
        raise SettingsError(f"{what}: the file {given[1:]!r} cannot be read as text") from None


def json_text_of(what: str, given: str) -> str:
    """Return the text of a JSON value, which `-` alone is none: it is stdin, too.

    Raises:
        SettingsError: the file of `what` cannot be read as text.
    """
    return text_of(what, "@-" if given == "-" else given)
