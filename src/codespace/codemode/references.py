"""Where a `$ref` inside one schema leads (pure). Nothing is ever fetched from elsewhere."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import cast
from urllib.parse import unquote

from codespace.codemode.json_values import Json, as_list, as_object

ANCHORS = ("$anchor", "$dynamicAnchor")
IDS = ("$id", "id")
SCANNED_MAX = 20_000
"""Values of a schema that are looked at for anchors and ids; later ones are not found."""

INDEX_DIGITS = 6


@dataclass(slots=True)
class References:
    """Finds the targets of the references of `root`, which may be broken or lead in circles."""

    root: object
    _named: dict[str, object] | None = field(default=None, init=False)

    def find(self, reference: object) -> object | None:
        """Return the schema that `reference` names; None when it is not in this document."""
        if not isinstance(reference, str):
            return None
        base, _, fragment = reference.partition("#")
        document = self.root if not base else self._names().get(base)
        if document is None or fragment.startswith("/"):
            return _walk(document, fragment)
        if not fragment:
            return document
        return self._names().get(f"#{fragment}")

    def _names(self) -> Mapping[str, object]:
        if self._named is None:
            self._named = {}
            for schema in every_object(self.root):
                for name in _names_of(schema):
                    self._named.setdefault(name, schema)
        return self._named


def reference_of(schema: Json) -> object | None:
    """Return what `schema` refers to, by whichever keyword."""
    for keyword in ("$ref", "$dynamicRef", "$recursiveRef"):
        if keyword in schema:
            return schema[keyword]
    return None


def _names_of(schema: Json) -> Iterator[str]:
    for keyword in ANCHORS:
        name = schema.get(keyword)
        if isinstance(name, str):
            yield f"#{name}"
    for keyword in IDS:
        name = schema.get(keyword)
        if isinstance(name, str):
            # An old style id may be an anchor ("#x"); a relative one is met as it is written.
            yield name if name.startswith("#") else name.removesuffix("#")


def _walk(document: object, pointer: str) -> object | None:
    here = document
    for part in pointer.split("/")[1:]:
        step = unquote(part).replace("~1", "/").replace("~0", "~")
        here = _inside(here, step)
    return here


def _inside(value: object, step: str) -> object | None:
    if isinstance(value, dict):
        return cast("Json", value).get(step)
    if not (step.isdecimal() and len(step) <= INDEX_DIGITS):
        return None
    return next(iter(as_list(value)[int(step) :]), None)


def every_object(root: object) -> Iterator[Json]:
    """Yield the objects inside `root`, itself first."""
    waiting: list[object] = [root]
    for _ in range(SCANNED_MAX):
        if not waiting:
            return
        value = waiting.pop()
        if isinstance(value, dict):
            yield as_object(cast("object", value))
            waiting.extend(cast("Json", value).values())
        else:
            waiting.extend(as_list(value))
