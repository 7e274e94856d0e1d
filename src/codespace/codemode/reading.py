"""An envelope as a model or a person reads it: output, value, and a line for each thing else."""

import json
from collections.abc import Iterator, Mapping

from codespace.codemode.json_values import Json, as_list, as_object, as_text

STACK_LINES = 6
NOTHING = "(nothing was returned or printed; write `return` before what you want to see)"
_HANDLED: Mapping[object, str] = {True: ", caught by the script", False: ", not caught"}


def blocks(envelope: Json) -> list[Json]:
    """Return content blocks: the output in its order, then one text for the rest.

    A run that is plain success ends with its value alone; nothing that is not is left out.
    """
    shown = [as_object(item) for item in as_list(envelope["output"])]
    rest = "\n".join(_lines(envelope))
    if rest or not shown:
        shown.append({"type": "text", "text": rest or "(no output)"})
    return shown


def read_out(envelope: Json) -> str:
    """Return all of it as one text; an image is a line that says so."""
    return "\n".join(as_text(block.get("text")) or "[image]" for block in blocks(envelope))


def _lines(envelope: Json) -> Iterator[str]:
    if envelope["status"] == "completed":
        yield from _value(envelope)
    else:
        yield _standing(envelope)
    error = as_object(envelope["error"])
    if error:
        yield from _error(error)
    for problem in as_list(envelope["problems"]):
        yield _problem(as_object(problem), error)
    if envelope["truncated"] is not None:
        cut = as_object(envelope["truncated"])
        where = f"; the whole is in {cut['path']}" if cut["path"] else ""
        yield f"[cut: {cut['kept_chars']} of {cut['chars']} characters are shown{where}]"


def _value(envelope: Json) -> Iterator[str]:
    shown = envelope["output"] or envelope["truncated"]
    if envelope["value"] is not None or (envelope["returned"] and not shown):
        yield json.dumps(envelope["value"], ensure_ascii=False)
    elif not shown:
        yield NOTHING


def _standing(envelope: Json) -> str:
    calls = as_object(envelope["calls"])
    made = ", ".join(f"{calls[name]} {name}" for name in calls if name == "total" or calls[name])
    if envelope["status"] == "running":
        return (
            f"[running as {envelope['run_id']}; calls: {made}; codemode_status with wait_ms waits"
            " for it, codemode_cancel ends it]"
        )
    return f"[{envelope['status']}; calls: {made}]"


def _error(error: Json) -> Iterator[str]:
    texts = [as_text(error["name"]), as_text(error["message"])]
    yield f"{': '.join(text for text in texts if text)}{_place(error)}"
    yield from as_text(error["stack"]).splitlines()[:STACK_LINES]


def _place(error: Json) -> str:
    if not error["line"]:
        return ""
    column = f", column {error['column']}" if error["column"] else ""
    return f" (line {error['line']}{column})"


def _problem(problem: Json, error: Json) -> str:
    about = [
        f"call {problem['call_no']}" if problem["call_no"] else "",
        f"of {problem['tool']}" if problem["tool"] else "",
        f"at line {problem['line']}" if problem["line"] else "",
    ]
    place = " ".join(part for part in about if part)
    how = _HANDLED.get(problem["handled"], "")
    said = "the error above" if _is(problem, error) else problem["message"]
    return f"[problem {place}{': ' if place else ''}{problem['code']}: {said}{how}]"


def _is(problem: Json, error: Json) -> bool:
    """Say whether a call's refusal is what ended the run: then its words stand there already."""
    same = all(problem[field] == error.get(field) for field in ("message", "line"))
    return same and problem["handled"] is False
