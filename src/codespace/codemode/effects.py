"""Which calls of a run changed something that nobody takes back (pure)."""

from collections import Counter
from collections.abc import Iterable, Sequence

from codespace.codemode.outcome import CallRecord, CallState, RunProblem, RunStatus
from codespace.codemode.tool import Tool
from codespace.domain.effect import Effect

_CHANGING = (Effect.WRITE, Effect.EXECUTE)


def remaining(
    status: RunStatus, records: Iterable[CallRecord], tools: Iterable[Tool]
) -> Sequence[RunProblem]:
    """Say which calls changed something, of all if the run did not complete, else of the cut."""
    whole = status is not RunStatus.COMPLETED
    left = Counter(each.tool for each in records if _had_effects(each, whole=whole))
    changing = {tool.name for tool in tools if tool.effect in _CHANGING} if left else ()
    listed = ", ".join(f"{tool} ({number})" for tool, number in left.items() if tool in changing)
    if not listed:
        return ()
    message = f"Calls that had effects, or may have, are not undone: {listed}."
    return [RunProblem("EFFECTS_REMAIN", message)]


def _had_effects(record: CallRecord, *, whole: bool) -> bool:
    # A command that was ended half-way has done what it had done.
    begun = record.state is CallState.CANCELLED and record.started_ms is not None
    return begun or record.state is CallState.UNKNOWN or (whole and record.state is CallState.OK)
