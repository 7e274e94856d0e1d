"""Text that no UTF-8 can hold, found in JSON values: half a surrogate pair."""

from collections.abc import Iterable, Mapping
from typing import cast

Place = tuple[int | str, ...]


def broken_text(arguments: Mapping[str, object]) -> Place | None:
    """Return where a text stands that is not valid Unicode, by keys and indexes."""
    return None if _all_unicode(arguments) else _found((), arguments)


def _all_unicode(arguments: Mapping[str, object]) -> bool:
    waiting: list[object] = [arguments]
    while waiting:
        value = waiting.pop()
        if isinstance(value, str):
            if not _is_unicode(value):
                return False
        elif isinstance(value, dict):
            members = cast("dict[object, object]", value)
            waiting += members
            waiting += members.values()
        elif isinstance(value, list):
            waiting += cast("list[object]", value)
        elif isinstance(value, Mapping):
            return False  # nothing that came as JSON: looked at closely
    return True


def _found(place: Place, value: object) -> Place | None:
    if isinstance(value, str):
        return None if _is_unicode(value) else place
    items: Iterable[tuple[int | str, object]]
    if isinstance(value, Mapping):
        pairs = cast("Mapping[str, object]", value).items()
        # A key is looked at, too.
        items = [(key, part) for key, item in pairs for part in (key, item)]
    elif isinstance(value, list):
        items = enumerate(cast("list[object]", value))
    else:
        return None
    for key, part in items:
        if (found := _found((*place, key), part)) is not None:
            return found
    return None


def _is_unicode(text: str) -> bool:
    if text.isascii():
        return True
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True
