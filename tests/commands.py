"""Running the command line in the test's own process."""

from dataclasses import dataclass
from typing import Protocol


@dataclass(frozen=True, slots=True)
class Ran:
    """How one command line ended."""

    code: int
    out: str
    err: str


class Command(Protocol):
    """Runs a command line, with a text as its stdin."""

    def __call__(self, *words: str, stdin: str = "") -> Ran: ...
