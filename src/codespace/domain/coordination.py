"""The argument `work_id` that many tools take, and what they then add to their result."""

from collections.abc import Mapping

from codespace.domain.attribute_docs import Described
from codespace.domain.ids import WorkId

ARGUMENT = "work_id"
FIELD = "coordination"

ARGUMENT_SCHEMA: Mapping[str, object] = {
    "anyOf": [{"type": "string"}, {"type": "null"}],
    "default": None,
    "description": "The work that this call is part of; the result then has `coordination`.",
    "title": "Work Id",
}

FIELD_SCHEMA: Mapping[str, object] = {
    "$ref": "#/$defs/Coordination",
    "description": "With `work_id`: whether the user has something to say.",
}


class Coordination(Described):
    """What waits for the agent of a work: counts, never text."""

    work_id: str
    pending_user_items: int
    """Instructions that wait; take them with steer_claim_next."""
    queue_revision: int
    """Grows whenever the queue changes."""


def named_work(arguments: Mapping[str, object]) -> WorkId | None:
    """Return the work that a call names.

    Raises:
        TypeError: what it names is no text.
    """
    given = arguments.get(ARGUMENT)
    if given is None:
        return None
    if not isinstance(given, str):
        raise TypeError(ARGUMENT)
    return WorkId(given)
