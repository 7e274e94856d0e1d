"""The files that an operator writes: read, or refused in one sentence that names the file."""

import json
import stat
import tomllib
from pathlib import Path


class SettingsError(Exception):
    """The configuration cannot be used. The message names the key and says what it takes."""


def read_token_file(path: str) -> str:
    """Return the token in a file, without surrounding white space.

    Raises:
        SettingsError: the file cannot be read.
    """
    try:
        return Path(path).read_text(encoding="utf-8").strip()
    except (OSError, UnicodeDecodeError) as error:
        raise SettingsError(f"the token file {path!r} cannot be read: {_reason(error)}") from None


def read_configuration(path: str) -> dict[str, object]:
    """Return the settings in a TOML file, or else in a JSON file.

    Raises:
        SettingsError: the file cannot be read, or holds something else.
    """
    try:
        text = Path(path).read_text(encoding="utf-8")
        parsed: object = (
            tomllib.loads(text)
            if path.endswith(".toml")
            else json.loads(text, object_pairs_hook=_without_repeats)
        )
    except (OSError, ValueError, RecursionError) as error:
        raise SettingsError(
            f"the configuration {path!r} cannot be read: {_reason(error)}"
        ) from None
    if not isinstance(parsed, dict):
        raise SettingsError(f"the configuration {path!r} takes an object at its root")
    return dict(parsed)  # pyright: ignore[reportUnknownVariableType, reportUnknownArgumentType] -- the model checks its items


def others_can_read(path: str) -> bool:
    """Say whether a file's permission bits let other users read or change it.

    A pipe, for instance of a shell's `<(…)`, has no name that others could open.
    """
    try:
        mode = Path(path).stat().st_mode
    except OSError:
        return False
    return stat.S_ISREG(mode) and bool(mode & (stat.S_IRWXG | stat.S_IRWXO))


def _without_repeats(pairs: list[tuple[str, object]]) -> dict[str, object]:
    made = dict(pairs)
    if len(made) < len(pairs):
        raise ValueError("an object has the same key twice")
    return made


def _reason(error: Exception) -> str:
    return error.strerror or "error" if isinstance(error, OSError) else str(error)
