"""The rules by which an outcome is held against the `expect` of a case."""

import json
import re
from collections.abc import Callable, Mapping
from typing import cast

from codespace.codemode.json_values import as_list, as_object_or_none, as_several

Json = Mapping[str, object]


def faults(expect: object, outcome: Json, *, lag_ms: float, scale: float = 1.0) -> list[str]:
    """Return what does not hold; of several alternatives the shortest list of faults."""
    if isinstance(expect, list):
        each = [
            faults(one, outcome, lag_ms=lag_ms, scale=scale) for one in cast("list[object]", expect)
        ]
        return min(each, key=len)
    found: list[str] = []
    for name, wanted in cast("Json", expect).items():
        if name == "max_loop_lag_ms":
            _note(found, name, lag_ms <= cast("float", wanted) * scale, lag_ms)
        elif name == "max_wall_ms":
            wall = cast("float", outcome["wall_ms"])
            _note(found, name, wall <= cast("float", wanted) * scale, wall)
        else:
            holds, seen = _RULES[name](wanted, outcome)
            _note(found, name, holds, seen)
    return found


def same(wanted: object, seen: object) -> bool:
    """Tell whether two JSON values are equal: numbers by value, booleans are no numbers."""
    if isinstance(wanted, bool) or isinstance(seen, bool) or wanted is None or seen is None:
        return wanted is seen
    first, second = as_object_or_none(wanted), as_object_or_none(seen)
    if first is not None and second is not None:
        return first.keys() == second.keys() and all(same(first[k], second[k]) for k in first)
    if isinstance(wanted, list) and isinstance(seen, list):
        one, two = as_list(cast("object", wanted)), as_list(cast("object", seen))
        return len(one) == len(two) and all(map(same, one, two))
    if isinstance(wanted, str) and isinstance(seen, str):
        return _replaced(wanted) == _replaced(seen)
    return isinstance(wanted, int | float) and isinstance(seen, int | float) and wanted == seen


def _replaced(text: str) -> str:
    return re.sub("[\ud800-\udfff]", "\ufffd", text)


def _note(found: list[str], name: str, holds: object, seen: object) -> None:
    if not holds:
        found.append(f"{name}: {json.dumps(seen, default=str)[:2000]}")


def _text(outcome: Json) -> str:
    items = cast("list[Json]", outcome["output"])
    return "\n".join(str(item["text"]) for item in items if item["type"] == "text")


def _one_of(wanted: object, seen: object) -> bool:
    return seen in as_several(wanted)


def _contains(wanted: object, text: str) -> bool:
    parts = [str(part) for part in as_several(wanted)]
    return all(part.lower() in text.lower() for part in parts)


def _error(wanted: object, outcome: Json) -> tuple[bool, object]:
    seen = cast("Json | None", outcome["error"])
    if seen is None:
        return False, seen
    for name, value in cast("Json", wanted).items():
        holds = (
            _contains(value, str(seen["message"]))
            if name == "message_contains"
            else _one_of(value, seen[name])
        )
        if not holds:
            return False, seen
    return True, seen


def _output_contains(wanted: object, outcome: Json) -> tuple[bool, object]:
    text, at = _text(outcome), 0
    for part in cast("list[str]", wanted):
        at = text.find(part, at)
        if at < 0:
            return False, text
        at += len(part)
    return True, text


def _output_types(wanted: object, outcome: Json) -> tuple[bool, object]:
    types: list[object] = []
    for item in cast("list[Json]", outcome["output"]):
        if types[-1:] != [item["type"]]:
            types.append(item["type"])
    return types == wanted, types


def _calls(wanted: object, outcome: Json) -> tuple[bool, object]:
    seen = cast("Json", outcome["calls"])
    for name, value in cast("Json", wanted).items():
        number = cast("int", seen[name])
        low, high = cast("list[int]", value) if isinstance(value, list) else (value, value)
        if not cast("int", low) <= number <= cast("int", high):
            return False, seen
    return True, seen


def _fits(wanted: object, problem: Json) -> bool:
    if isinstance(wanted, str):
        return problem["code"] == wanted
    for name, value in cast("Json", wanted).items():
        if name == "message_contains":
            if not _contains(value, json.dumps(problem, ensure_ascii=False)):
                return False
        elif problem[name] != value:
            return False
    return True


def _problems_contain(wanted: object, outcome: Json) -> tuple[bool, object]:
    seen = cast("list[Json]", outcome["problems"])
    entries = cast("list[object]", wanted)
    return all(any(_fits(entry, problem) for problem in seen) for entry in entries), seen


_RULES: dict[str, Callable[[object, Json], tuple[bool, object]]] = {
    "status": lambda wanted, outcome: (
        outcome["status"] == wanted,
        [outcome["status"], outcome["error"]],
    ),
    "value": lambda wanted, outcome: (same(wanted, outcome["value"]), outcome["value"]),
    "error": _error,
    "output_contains": _output_contains,
    "output_lacks": lambda wanted, outcome: (
        not any(part in _text(outcome) for part in cast("list[str]", wanted)),
        _text(outcome),
    ),
    "output_types": _output_types,
    "output_max_chars": lambda wanted, outcome: (
        len(_text(outcome)) <= cast("int", wanted),
        len(_text(outcome)),
    ),
    "truncated": lambda wanted, outcome: (
        (outcome["truncated"] is not None) == wanted,
        outcome["truncated"],
    ),
    "calls": _calls,
    "problems_contain": _problems_contain,
    "problems_none": lambda _, outcome: (not outcome["problems"], outcome["problems"]),
    "store_keys": lambda wanted, outcome: (
        sorted(cast("list[str]", outcome["store"])) == sorted(cast("list[str]", wanted)),
        outcome["store"],
    ),
}
