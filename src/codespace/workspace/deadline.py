"""Until when a look at files may go on: its time runs out, or nobody wants its answer any more."""

import threading
import time
from dataclasses import dataclass, field

from codespace.domain.errors import CodeSpaceError, ErrorCode

_SEARCH = (
    "The search took longer than {limit} ms; ask for fewer files or give a more selective pattern."
)


@dataclass(frozen=True, slots=True)
class Deadline:
    """The moment at which a look must have ended.

    Attributes:
        at: on the monotonic clock, in seconds.
        limit_ms: what the client is told.
        abandoned: set by another thread when the answer is not wanted any more.
        sentence: what the client is told, with `{limit}` in it.
    """

    at: float
    limit_ms: int
    abandoned: threading.Event = field(default_factory=threading.Event)
    sentence: str = _SEARCH

    @classmethod
    def after(
        cls,
        limit_ms: int,
        *,
        abandoned: threading.Event | None = None,
        sentence: str = _SEARCH,
    ) -> "Deadline":
        """Return the deadline `limit_ms` milliseconds from now."""
        at = time.monotonic() + limit_ms / 1_000
        return cls(at, limit_ms, abandoned or threading.Event(), sentence)

    def remaining(self) -> float:
        """Return the seconds that are left.

        Raises:
            CodeSpaceError: TIMEOUT when none are, or when nobody waits any more.
        """
        if self.abandoned.is_set():
            raise CodeSpaceError(
                ErrorCode.TIMEOUT, "The call was cancelled; send it again if it is still wanted."
            )
        left = self.at - time.monotonic()
        if left <= 0:
            raise CodeSpaceError(
                ErrorCode.TIMEOUT,
                self.sentence.format(limit=self.limit_ms),
                details={"limit": self.limit_ms},
            )
        return left
