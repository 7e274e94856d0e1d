"""A call into the guest while it runs: on a fiber that gives the thread back, or blocking it."""

import ctypes
import threading
import time
from collections.abc import Callable, Sequence
from ctypes import byref
from typing import NamedTuple, Protocol

import wasmtime

from codespace.codemode.native import ffi, native
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


class Running(Protocol):
    """A call into the guest that has begun."""

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


_TrapPointer = ctypes.POINTER(ffi.wasm_trap_t)
_ErrorPointer = ctypes.POINTER(ffi.wasmtime_error_t)


def _values(numbers: Sequence[int]) -> object:
    values = (ffi.wasmtime_val_t * len(numbers))()
    for place, number in zip(values, numbers, strict=True):
        place.kind = ffi.WASMTIME_I32
        place.of.i32 = number
    return values


def _last_line(message: str) -> str:
    """Return the cause of a trap: the lines before it are addresses."""
    lines = [line.strip() for line in message.splitlines() if line.strip()]
    return lines[-1] if lines else "the guest trapped"


class Fiber:
    """A call on a stack of its own, that comes back after each slice."""

    pausable = True

    def __init__(
        self,
        store: wasmtime.Store,
        function: wasmtime.Func,
        args: Sequence[int],
        *,
        ticker: Ticker,
    ) -> None:
        self._store, self._ticker = store, ticker  # the store must outlive the call
        self._trap, self._error = _TrapPointer(), _ErrorPointer()
        self._args = _values(args) if args else None
        self.ended: Ended | None = None
        context = store._context()  # pyright: ignore[reportPrivateUsage] -- as in native  # noqa: SLF001
        native_function = byref(function._func)  # pyright: ignore[reportPrivateUsage] -- as in native  # noqa: SLF001
        native.wasmtime_context_set_epoch_deadline(context, SLICE_TICKS)
        self._future: object | None = native.wasmtime_func_call_async(
            context,
            native_function,
            self._args,
            len(args),
            None,
            0,
            byref(self._trap),
            byref(self._error),
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
            return self._poll() or (time.monotonic() - began < SLICE_SECONDS and self._poll())
        finally:
            self._ticker.closed(self)

    def _poll(self) -> bool:
        if self._future is not None:
            if not native.wasmtime_call_future_poll(self._future):
                return False
            self._close()
            self.ended = Ended(self._why())
        return True

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
        native.wasmtime_call_future_delete(future)

    def _why(self) -> str:
        if self._error:
            return _last_line(str(wasmtime.WasmtimeError._from_ptr(self._error)))  # pyright: ignore[reportPrivateUsage] -- as in native  # noqa: SLF001
        if self._trap:
            return _last_line(wasmtime.Trap._from_ptr(self._trap).message)  # pyright: ignore[reportPrivateUsage] -- as in native  # noqa: SLF001
        return ""

    def __del__(self) -> None:
        """A call that nobody ended is killed."""
        if getattr(self, "_future", None) is not None:
            self._close()


class Blocking:
    """The same on wasmtime's public interface alone: it runs only in `finish`, without slices."""

    pausable = False

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
            self.ended = Ended("")
        except (wasmtime.Trap, wasmtime.WasmtimeError) as error:
            self.ended = Ended(_last_line(str(error)))
        finally:
            timer.cancel()
            self._ticker.closed(self)
