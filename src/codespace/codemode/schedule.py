"""Which calls of a run may begin: so many at a time, in call order, one of a key (pure)."""

from collections import defaultdict, deque
from heapq import heappop, heappush


class Schedule:
    """Calls by their number. Each is added once, taken once and done once."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._running = 0
        self._ready: list[int] = []
        self._keys: dict[int, str] = {}
        self._behind: defaultdict[str, deque[int]] = defaultdict(deque)
        self._held: set[str] = set()

    def add(self, call_no: int, key: str | None) -> None:
        """Queue a call. Of calls with one key each waits for the one before it to be done."""
        if key is None:
            heappush(self._ready, call_no)
            return
        self._keys[call_no] = key
        if key in self._held:
            self._behind[key].append(call_no)
        else:
            self._held.add(key)
            heappush(self._ready, call_no)

    def take(self) -> int | None:
        """Return the next call that may begin now."""
        if not self._ready or self._running >= self._most:
            return None
        self._running += 1
        return heappop(self._ready)

    @property
    def quiet(self) -> bool:
        """Whether no call runs and none could begin."""
        return not self._running and not self._ready

    @property
    def waiting(self) -> bool:
        """Whether a call could begin if there was room."""
        return bool(self._ready)

    @property
    def running(self) -> int:
        """How many calls have been taken and are not done."""
        return self._running

    def done(self, call_no: int) -> None:
        """Make room: a call that was taken has ended."""
        self._running -= 1
        key = self._keys.pop(call_no, None)
        if key is None:
            return
        waiting = self._behind.get(key)
        if waiting:
            heappush(self._ready, waiting.popleft())
        else:
            self._held.discard(key)
