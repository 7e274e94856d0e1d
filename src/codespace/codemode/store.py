"""What scripts keep between runs."""

from collections.abc import Mapping
from typing import Protocol


class StoreFullError(Exception):
    """The values of all runs together would be larger than the store's limit."""


class Store(Protocol):
    """Keys with JSON texts. Whose it is, and where it is kept, is its maker's matter."""

    async def read(self) -> Mapping[str, str]:
        """Return all values."""
        ...

    async def write(self, changes: Mapping[str, str | None], *, most_chars: int) -> None:
        """Keep the changes of one run, all or none; None deletes a key.

        Raises:
            StoreFullError: there would be more than `most_chars` characters of JSON.
        """
        ...


class MemoryStore:
    """A store that lives as long as its sandbox."""

    def __init__(self) -> None:
        self._values: dict[str, str] = {}

    async def read(self) -> Mapping[str, str]:
        """Return all values."""
        return dict(self._values)

    async def write(self, changes: Mapping[str, str | None], *, most_chars: int) -> None:
        """Keep the changes of one run.

        Raises:
            StoreFullError: there would be too many characters of JSON.
        """
        merged = {**self._values, **changes}
        values = {key: text for key, text in merged.items() if text is not None}
        if sum(map(len, values.values())) > most_chars:
            raise StoreFullError
        self._values = values
