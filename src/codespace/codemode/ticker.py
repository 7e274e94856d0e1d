"""The clock of running scripts: it gives each its slices."""

import threading
import time

import wasmtime

TICK_SECONDS = 0.0005
"""Between two ticks while a script has the event loop's own thread."""
FAR_TICK_SECONDS = 0.02
"""The same while scripts run on worker threads only: each tick takes time from the loop."""
LINGER_SECONDS = 0.05


class Ticker:
    """Moves an engine's epoch while scripts run, so that a running one meets its slice's end.

    It must not rest while a call is open, however late this process gets its turn: a guest whose
    epoch stands still never gives its thread back.
    """

    def __init__(self, engine: wasmtime.Engine) -> None:
        self._engine = engine
        self._near: set[int] = set()
        self._far: dict[int, float] = {}
        self._until = 0.0
        self.resting = False
        self.ticks = 0
        self._wake = threading.Event()
        self._thread: threading.Thread | None = None
        self._lock = threading.Lock()

    def opened(self, call: object) -> bool:
        """Tick often until `call` is closed, and a little longer: the next one is often near.

        False: nothing has run for a while, and the first tick may be late.
        """
        self._near.add(id(call))
        self._until = time.monotonic() + LINGER_SECONDS
        if self._thread is not None and not self.resting:
            return True
        ready = self._thread is not None and bool(self._far)
        self._rouse()
        return ready

    def away(self, call: object, until: float) -> None:
        """Tick until `call` is closed, but seldom before `until`, of `time.monotonic`."""
        self._far[id(call)] = until
        self._near.discard(id(call))
        self._rouse()

    def closed(self, call: object) -> None:
        """The call has ended, or nobody runs it."""
        self._near.discard(id(call))
        if self._far:
            self._far.pop(id(call), None)

    def _rouse(self) -> None:
        if self._thread is None:
            self._start()
        if self.resting:
            self._wake.set()

    def _start(self) -> None:
        with self._lock:
            if self._thread is None:
                self._thread = threading.Thread(
                    target=self._run, name="codemode-ticks", daemon=True
                )
                self._thread.start()

    def _run(self) -> None:
        while True:
            if self._near or time.monotonic() < self._until:
                time.sleep(TICK_SECONDS)
            else:
                self._rest()
            self._engine.increment_epoch()
            self.ticks += 1

    def _rest(self) -> None:
        # The others write what is open and then read `resting`; here it is the other way round,
        # so one of the two always sees the other.
        self.resting = True
        if not self._near:
            self._wake.wait(self._pause())
        self.resting = False
        self._wake.clear()

    def _pause(self) -> float | None:
        """Return the seconds to the next tick that a call on a worker's thread waits for."""
        ends = list(self._far.values())
        if not ends:
            return None
        left = min(ends) - time.monotonic()
        return max(TICK_SECONDS, min(left, FAR_TICK_SECONDS))
