"""What a server answered, with typed ways into the JSON."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import cast

Json = Mapping[str, object]


@dataclass(frozen=True, slots=True)
class Reply:
    """One JSON object of an answer. `reply["details", "path"]` goes down by keys and indexes."""

    body: Json

    def __getitem__(self, way: str | tuple[str | int, ...]) -> object:
        found: object = self.body
        for step in (way,) if isinstance(way, str) else way:
            found = _below(found, step)
        return found

    def __contains__(self, key: str) -> bool:
        return key in self.body

    @property
    def keys(self) -> set[str]:
        """The fields that are there."""
        return set(self.body)

    def text(self, *way: str | int) -> str:
        """Return a string."""
        found = self[way]
        assert isinstance(found, str), (way, found)
        return found

    def number(self, *way: str | int) -> int:
        """Return an integer."""
        found = self[way]
        assert isinstance(found, int), (way, found)
        assert not isinstance(found, bool), (way, found)
        return found

    def at(self, *way: str | int) -> "Reply":
        """Return an object below this one."""
        found = self[way]
        assert isinstance(found, dict), (way, found)
        return Reply(cast("Json", found))

    def list(self, *way: str | int) -> "list[object]":
        """Return an array."""
        found = self[way]
        assert isinstance(found, list), (way, found)
        return cast("list[object]", found)

    def each(self, *way: str | int) -> "list[Reply]":
        """Return the objects of an array."""
        return [Reply(cast("Json", item)) for item in self.list(*way)]


def _below(value: object, step: str | int) -> object:
    if isinstance(step, int):
        return cast("list[object]", value)[step]
    return cast("Json", value)[step]
