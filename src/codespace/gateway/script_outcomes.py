"""What is said of an ended run beyond what the engine knows: effects that stay, values too long."""

import json
from collections import Counter
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import replace

from codespace.codemode.json_values import DEPTH_MAX, is_too_deep
from codespace.codemode.outcome import (
    CallRecord,
    CallState,
    Outcome,
    RunProblem,
    RunStatus,
    Truncation,
)
from codespace.domain.effect import Effect
from codespace.domain.tool import Tool

OF_SCRIPTS = ("codemode", "codemode_status", "codemode_cancel")
"""The tools that scripts do not have."""


def size(outcome: Outcome) -> int:
    """Return about how many characters an outcome keeps."""
    return len(outcome.text) + (0 if outcome.value is None else len(_json(outcome.value)))


def _json(value: object) -> str:
    return json.dumps(value, ensure_ascii=False)


def without_nesting(outcome: Outcome) -> Outcome:
    """Say to a script that called one of the tools of scripts why there is none in it."""
    error = outcome.error
    if error is None or not any(f"unknown tool '{name}'" in error.message for name in OF_SCRIPTS):
        return outcome
    why = f"{error.message}; a script cannot run or look at scripts: do its work right here"
    return replace(outcome, error=error._replace(message=why))


def with_effects(outcome: Outcome, tools: Iterable[Tool]) -> Outcome:
    """Say which calls changed something, of all if the run did not complete, else of the cut."""
    whole = outcome.status is not RunStatus.COMPLETED
    changing = {tool.name for tool in tools if tool.effect in (Effect.WRITE, Effect.EXECUTE)}
    made = Counter(
        record.tool
        for record in outcome.records
        if record.tool in changing and _had_effects(record, whole=whole)
    )
    if not made:
        return outcome
    listed = ", ".join(f"{tool} ({number})" for tool, number in made.items())
    problem = RunProblem(
        "EFFECTS_REMAIN", f"Calls that had effects, or may have, are not undone: {listed}."
    )
    return replace(outcome, problems=(*outcome.problems, problem))


def _had_effects(record: CallRecord, *, whole: bool) -> bool:
    # A command that was ended half-way has done what it had done.
    begun = record.state is CallState.CANCELLED and record.started_ms is not None
    return begun or record.state is CallState.UNKNOWN or (whole and record.state is CallState.OK)


async def fitting(
    outcome: Outcome, most: int, save: Callable[[str], Awaitable[str | None]] | None
) -> Outcome:
    """Put a value that is too much for a model or its client into a file, and say so."""
    text = "" if outcome.value is None else _json(outcome.value)
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
