"""A call into the guest while it runs: on a fiber that gives the thread back, or blocking it."""

import ctypes
import threading
import time
from collections.abc import Callable, Sequence
from ctypes import c_void_p
from typing import NamedTuple, Protocol

import wasmtime

from codespace.codemode.native import Crossing, ffi
from codespace.codemode.ticker import TICK_SECONDS, Ticker

SLICE_TICKS = 2
GRACE_SECONDS = 0.25

Interrupt = Callable[[], None]
"""Asks the guest to stop."""


class Ended(NamedTuple):
    """How a call into the guest came out: `trap` is empty, or why the instance is lost."""

    trap: str


class Running(Protocol):
    """A call into the guest that has begun."""

    def poll(self) -> bool:
        """Run for a slice at most; True when the call has ended."""
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


class Fibers:
    """What the calls into one instance share: addresses, and where the library tells of a trap."""

    def __init__(self, store: wasmtime.Store, crossing: Crossing, ticker: Ticker) -> None:
        self.store = store  # it must outlive its calls
        self.crossing, self.ticker = crossing, ticker
        context = store._context()  # pyright: ignore[reportPrivateUsage] -- as in native  # noqa: SLF001
        self.context = ctypes.cast(context, c_void_p).value or 0
        self._trap, self._error = c_void_p(), c_void_p()
        self.trap_at, self.error_at = ctypes.addressof(self._trap), ctypes.addressof(self._error)
        self._ticked = -1

    def refresh_deadline(self) -> None:
        """Give the next call its slice; the last call's will do while no tick has passed."""
        if self._ticked != self.ticker.ticks:
            self._ticked = self.ticker.ticks
            self.crossing.set_deadline(self.context, SLICE_TICKS)

    def take_trap(self) -> str:
        """Return why the last call trapped, if it did."""
        if self._error.value:
            pointer = ctypes.cast(self._error, ctypes.POINTER(ffi.wasmtime_error_t))
            self._error.value = None
            return _last_line(str(wasmtime.WasmtimeError._from_ptr(pointer)))  # pyright: ignore[reportPrivateUsage] -- as in native  # noqa: SLF001
        if self._trap.value:
            pointer = ctypes.cast(self._trap, ctypes.POINTER(ffi.wasm_trap_t))
            self._trap.value = None
            return _last_line(wasmtime.Trap._from_ptr(pointer).message)  # pyright: ignore[reportPrivateUsage] -- as in native  # noqa: SLF001
        return ""


class Fiber:
    """A call on a stack of its own, that comes back after each slice.

    `function` is the address of the function, `size` an argument for it.
    """

    __slots__ = ("_argument", "_fibers", "_future", "ended")

    def __init__(self, fibers: Fibers, function: int, size: int | None = None) -> None:
        self._fibers = fibers
        self.ended: Ended | None = None
        at, count = None, 0
        if size is not None:
            self._argument = ffi.wasmtime_val_t(kind=ffi.WASMTIME_I32)
            self._argument.of.i32 = size
            at, count = ctypes.addressof(self._argument), 1
        fibers.ticker.opened(self)
        fibers.refresh_deadline()
        self._future: int | None = fibers.crossing.begin(
            fibers.context, function, at, count, None, 0, fibers.trap_at, fibers.error_at
        )

    def poll(self) -> bool:
        """Run for a slice at most; True when the call has ended."""
        if self._future is not None:
            if not self._fibers.crossing.poll(self._future):
                return False
            self._close()
            self.ended = Ended(self._fibers.take_trap())
        return True

    def finish(self, deadline: float, interrupt: Interrupt) -> None:
        """Run to the end; call `interrupt` at `deadline`, kill when that did not help."""
        stop, asked = deadline, False
        while not self.poll():
            if time.monotonic() < stop:
                continue
            if asked:
                self.kill()
                return
            interrupt()
            stop, asked = time.monotonic() + GRACE_SECONDS, True

    def kill(self) -> None:
        """End the call where it stands. The instance is lost."""
        if self._future is not None:
            self._close()
            self.ended = Ended("the script did not stop when it was asked to")

    def _close(self) -> None:
        future, self._future = self._future, None
        if future is not None:
            self._fibers.crossing.delete(future)
        self._fibers.ticker.closed(self)

    def __del__(self) -> None:
        """A call that nobody ended is killed."""
        if getattr(self, "_future", None) is not None:
            self._close()


class Blocking:
    """The same on wasmtime's public interface alone: it runs only in `finish`, without slices."""

    def __init__(
        self,
        store: wasmtime.Store,
        function: wasmtime.Func,
        args: Sequence[int],
        *,
        ticker: Ticker,
    ) -> None:
        self._ticker, self._store, self._function, self._args = ticker, store, function, args
        self.ended: Ended | None = None

    def poll(self) -> bool:
        """Say whether it has ended; nothing runs here."""
        return self.ended is not None

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
            self.ended = Ended("")
        except (wasmtime.Trap, wasmtime.WasmtimeError) as error:
            self.ended = Ended(_last_line(str(error)))
        finally:
            timer.cancel()
            self._ticker.closed(self)
