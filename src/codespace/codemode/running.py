"""A call into the guest while it runs: on a fiber that gives the thread back, or blocking it."""

import ctypes
import threading
import time
from collections.abc import Callable
from ctypes import addressof, c_void_p
from typing import NamedTuple, Protocol, cast

import wasmtime

from codespace.codemode.native import Crossing, ffi
from codespace.codemode.ticker import TICK_SECONDS, Ticker

SLICE_TICKS = 1
"""On a busy machine each tick can be some milliseconds late."""
SLICE_SECONDS = TICK_SECONDS / 2
"""A slice that a tick has ended sooner gets another one."""
GRACE_SECONDS = 0.25

Interrupt = Callable[[], None]
"""Asks the guest to stop."""


class Ended(NamedTuple):
    """How a call into the guest came out: `trap` is empty, or why the instance is lost."""

    trap: str


WELL = Ended("")


class Running(Protocol):
    """A function of the guest, called again and again."""

    def begin(self, argument: int | None = None) -> None:
        """Begin a call; nothing has run yet."""
        ...

    def poll(self) -> bool:
        """Run for a slice at most; True when the call has ended."""
        ...

    @property
    def pausable(self) -> bool:
        """Whether it can give its thread back before it ends."""
        ...

    def run_until(self, until: float) -> bool:
        """Run until then, of `time.monotonic`, at most, not on a loop's thread; True at the end."""
        ...

    def finish(self, deadline: float, interrupt: Interrupt) -> None:
        """Run to the end; call `interrupt` at `deadline`, kill when that did not help."""
        ...

    def kill(self) -> None:
        """End the call where it stands. The instance is lost. Not while a thread is in it."""
        ...

    @property
    def ended(self) -> Ended | None:
        """How it came out, once it has ended."""
        ...


def _last_line(message: str) -> str:
    """Return the cause of a trap: the lines before it are addresses."""
    lines = [line.strip() for line in message.splitlines() if line.strip()]
    return lines[-1] if lines else "the guest trapped"


class Fiber:
    """Calls of one function, one after another, on a stack that comes back after each slice.

    What a call needs is made once: a script makes thousands of steps.
    """

    pausable = True

    def __init__(
        self,
        store: wasmtime.Store,
        function: wasmtime.Func,
        *,
        ticker: Ticker,
        crossing: Crossing,
    ) -> None:
        self._store, self._function = store, function  # they must outlive it
        self._ticker, self._crossing = ticker, crossing
        context = store._context()  # pyright: ignore[reportPrivateUsage] -- as in native  # noqa: SLF001
        self._context = cast("int", ctypes.cast(context, c_void_p).value)
        self._function_at = addressof(function._func)  # pyright: ignore[reportPrivateUsage] -- as in native  # noqa: SLF001
        self._trap, self._error = c_void_p(), c_void_p()
        self._told = addressof(self._trap), addressof(self._error)
        self._argument = ffi.wasmtime_val_t(kind=ffi.WASMTIME_I32)
        self._set_at = -1
        self._future: int | None = None
        self.ended: Ended | None = None

    def begin(self, argument: int | None = None) -> None:
        """Begin a call; nothing has run yet."""
        self.ended = None
        at, count = None, 0
        if argument is not None:
            self._argument.of.i32 = argument
            at, count = addressof(self._argument), 1
        if self._set_at != self._ticker.ticks:  # else the deadline is as far away as it should be
            self._set_at = self._ticker.ticks
            self._crossing.set_deadline(self._context, SLICE_TICKS)
        self._future = self._crossing.begin(
            self._context, self._function_at, at, count, None, 0, *self._told
        )

    def poll(self) -> bool:
        """Run for a slice at most, or not at all; True when the call has ended."""
        if self._future is None:
            return True
        began = time.monotonic()
        try:
            # A thread that has to wake up first can be late, and this one may be the loop's.
            if not self._ticker.opened(self):
                return False
            if self._crossing.poll(self._future):
                self._end()
                return True
            return time.monotonic() - began < SLICE_SECONDS and self._poll()
        finally:
            self._ticker.closed(self)

    def _poll(self) -> bool:
        if self._future is not None:
            if not self._crossing.poll(self._future):
                return False
            self._end()
        return True

    def _end(self) -> None:
        self._close()
        failed = self._error.value or self._trap.value
        self.ended = Ended(self._why()) if failed else WELL

    def run_until(self, until: float) -> bool:
        """Run until then, of `time.monotonic`, at most, not on a loop's thread; True at the end."""
        self._ticker.away(self, until)
        try:
            while not self._poll():
                if time.monotonic() >= until:
                    return False
            return True
        finally:
            self._ticker.closed(self)

    def finish(self, deadline: float, interrupt: Interrupt) -> None:
        """Run to the end; call `interrupt` at `deadline`, kill when that did not help."""
        if not self.run_until(deadline):
            interrupt()
            if not self.run_until(time.monotonic() + GRACE_SECONDS):
                self.kill()

    def kill(self) -> None:
        """End the call where it stands. The instance is lost."""
        if self._future is not None:
            self._close()
            self.ended = Ended("the script did not stop when it was asked to")

    def _close(self) -> None:
        future, self._future = self._future, None
        if future is not None:
            self._crossing.delete(future)

    def _why(self) -> str:
        if self._error.value:
            error = ctypes.cast(self._error, ctypes.POINTER(ffi.wasmtime_error_t))
            return _last_line(str(wasmtime.WasmtimeError._from_ptr(error)))  # pyright: ignore[reportPrivateUsage] -- as in native  # noqa: SLF001
        trap = ctypes.cast(self._trap, ctypes.POINTER(ffi.wasm_trap_t))
        return _last_line(wasmtime.Trap._from_ptr(trap).message)  # pyright: ignore[reportPrivateUsage] -- as in native  # noqa: SLF001

    def __del__(self) -> None:
        """A call that nobody ended is killed."""
        if getattr(self, "_future", None) is not None:
            self._close()


class Blocking:
    """The same on wasmtime's public interface alone: it runs only in `finish`, without slices."""

    pausable = False

    def __init__(self, store: wasmtime.Store, function: wasmtime.Func, *, ticker: Ticker) -> None:
        self._ticker, self._store, self._function = ticker, store, function
        self._args: list[int] = []
        self.ended: Ended | None = None

    def begin(self, argument: int | None = None) -> None:
        """Begin a call; nothing runs before `finish`."""
        self.ended, self._args = None, [] if argument is None else [argument]

    def poll(self) -> bool:
        """Say whether it has ended; nothing runs here."""
        return self.ended is not None

    def run_until(self, until: float) -> bool:
        """Run to the end, killed when that does not come soon after `until`."""
        self.finish(until, lambda: None)
        return True

    def kill(self) -> None:
        """Give up a call that has not begun; one that has cannot be killed from outside."""
        self.ended = self.ended or Ended("the script was ended before its step began")

    def finish(self, deadline: float, interrupt: Interrupt) -> None:
        """Run to the end; call `interrupt` at `deadline`, kill when that did not help."""
        left = max(0.0, deadline - time.monotonic())
        self._ticker.opened(self)
        self._store.set_epoch_deadline(int((left + GRACE_SECONDS) / TICK_SECONDS) + 1)
        timer = threading.Timer(left, interrupt)
        timer.daemon = True
        timer.start()
        try:
            self._function(self._store, *self._args)
            self.ended = WELL
        except (wasmtime.Trap, wasmtime.WasmtimeError) as error:
            self.ended = Ended(_last_line(str(error)))
        finally:
            timer.cancel()
            self._ticker.closed(self)
