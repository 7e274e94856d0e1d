"""What a comment says about one property beside its type (pure)."""

import json

from codespace.codemode.json_values import Json, as_object, as_text
from codespace.domain.sizes import JSON_INTEGER_MAX

VALUE_CHARS_MAX = 60
"""A default or a pattern that is longer is left out."""

_BOUNDS = (
    ("minimum", "at least"),
    ("exclusiveMinimum", "more than"),
    ("maximum", "at most"),
    ("exclusiveMaximum", "less than"),
    ("minLength", "min length"),
    ("maxLength", "max length"),
    ("minItems", "min items"),
    ("maxItems", "max items"),
    ("multipleOf", "multiple of"),
    ("format", "format"),
    ("pattern", "pattern"),
)


def note(schema: object) -> str:
    """Return the description of `schema` with its default and bounds, for a comment."""
    given = as_object(schema)
    text = as_text(given.get("description")).strip()
    facts = _facts(given)
    return f"{text} ({'; '.join(facts)})".strip() if facts else text


def _facts(schema: Json) -> list[str]:
    facts = [f"{word} {_short(schema[name])}" for name, word in _BOUNDS if _short(schema.get(name))]
    if "default" in schema and schema["default"] is not None and _dumped(schema["default"]):
        facts.insert(0, f"default {_dumped(schema['default'])}")
    if schema.get("deprecated") is True:
        facts.append("deprecated")
    return facts


def _short(value: object) -> str:
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        return ""
    if not isinstance(value, str) and abs(value) >= JSON_INTEGER_MAX:
        return ""  # a bound that only says "any number"
    text = str(value)
    return text if len(text) <= VALUE_CHARS_MAX else ""


def _dumped(value: object) -> str:
    try:
        text = json.dumps(value, ensure_ascii=False)
    except (TypeError, ValueError, RecursionError):
        return ""
    return text if len(text) <= VALUE_CHARS_MAX else ""
