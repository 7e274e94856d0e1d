"""What is said of an ended run beyond what the engine knows: a value that is too long, nesting."""

from collections.abc import Awaitable, Callable
from dataclasses import replace

from codespace.codemode.encoding import encoded_by
from codespace.codemode.json_text import text_of_json
from codespace.codemode.json_values import DEPTH_MAX, is_too_deep
from codespace.codemode.outcome import Outcome, RunProblem, Truncation

OF_SCRIPTS = ("codemode", "codemode_status", "codemode_cancel")
"""The tools that scripts do not have."""


def size(outcome: Outcome) -> int:
    """Return about how many characters an outcome keeps."""
    return len(outcome.text) + (0 if outcome.value is None else len(text_of_json(outcome.value)))


def without_nesting(outcome: Outcome) -> Outcome:
    """Say to a script that called one of the tools of scripts why there is none in it."""
    error = outcome.error
    if error is None or not any(f"unknown tool '{name}'" in error.message for name in OF_SCRIPTS):
        return outcome
    why = f"{error.message}; a script cannot run or look at scripts: do its work right here"
    return replace(outcome, error=error._replace(message=why))


async def fitting(
    outcome: Outcome, most: int, save: Callable[[str], Awaitable[str | None]] | None
) -> Outcome:
    """Put a value that is too much for a model or its client into a file, and say so."""
    value = outcome.value
    text = "" if value is None else (await encoded_by(text_of_json, value)).decode()
    if len(text) > most:
        code, what = "VALUE_TOO_LONG", f"{len(text)} characters of JSON, more than {most}"
        what += " (max_output_chars)"
    elif is_too_deep(outcome.value):
        code, what = "VALUE_TOO_DEEP", f"nested deeper than {DEPTH_MAX} levels"
    else:
        return outcome
    path = None if save is None else await save(text)
    where = f"it is in {path}" if path else "return less, for it is not kept"
    problem = RunProblem(code, f"The value is {what}; {where}.")
    cut = Truncation(len(text), 0, path)
    return replace(
        outcome,
        value=None,
        # First of all, so that many others do not hide it.
        problems=(problem, *outcome.problems),
        truncated=(outcome.truncated or cut)._replace(value=cut),
    )
