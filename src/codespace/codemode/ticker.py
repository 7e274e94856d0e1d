"""The clock of running scripts: it gives each its slices."""

import threading
import time

import wasmtime

TICK_SECONDS = 0.001
LINGER_SECONDS = 0.05


class Ticker:
    """Moves an engine's epoch while scripts run, so that a running one meets its slice's end.

    It must not rest while a call is open, however late this process gets its turn: a guest whose
    epoch stands still never gives its thread back.
    """

    def __init__(self, engine: wasmtime.Engine) -> None:
        self._engine = engine
        self._open: set[int] = set()
        self._until = 0.0
        self.ticks = 0
        self.resting = False
        self._wake = threading.Event()
        self._thread: threading.Thread | None = None
        self._lock = threading.Lock()

    def opened(self, call: object) -> None:
        """Tick until `call` is closed, and a little longer: the next one is often near."""
        self._open.add(id(call))
        self._until = time.monotonic() + LINGER_SECONDS
        if self._thread is None:
            self._start()
        if self.resting:
            self._wake.set()

    def closed(self, call: object) -> None:
        """The call has ended."""
        self._open.discard(id(call))

    def _start(self) -> None:
        with self._lock:
            if self._thread is None:
                self._thread = threading.Thread(
                    target=self._run, name="codemode-ticks", daemon=True
                )
                self._thread.start()

    def _run(self) -> None:
        while True:
            time.sleep(TICK_SECONDS)
            self._engine.increment_epoch()
            self.ticks += 1
            if self._open or time.monotonic() < self._until:
                continue
            # `opened` writes `_open` and then reads `resting`; here it is the other way round, so
            # one of the two always sees the other.
            self.resting = True
            if not self._open:
                self._wake.wait()
            self.resting = False
            self._wake.clear()
