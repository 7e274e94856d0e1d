"""The only home of wasmtime: the compiled guest of a process, its instances, and how they run.

A step runs on a fiber of wasmtime: it gives the thread back after a slice, so that an event loop
can begin it and a worker thread can end it. wasmtime's Python package has no public name for that;
what is used of its C mirror `_ffi` is listed in `_Native`, checked when a machine is made, and
done without (`fibers=False`: a step blocks its thread) when it is not there.
"""

import ctypes
import hashlib
import platform
import struct
import threading
import time
from collections.abc import Sequence
from ctypes import byref
from functools import cached_property
from pathlib import Path
from typing import NamedTuple, Protocol, cast

import wasmtime
from wasmtime import _ffi  # pyright: ignore[reportPrivateUsage] -- the package has no other way to fibers

from codespace.codemode.machine_code import MachineCode
from codespace.domain.limits import MIB

GUEST = Path(__file__).with_name("guest.wasm")
MARK = b"codespace.shared"
SLICE_TICKS = 2
TICK_SECONDS = 0.001
LINGER_SECONDS = 0.05
GRACE_SECONDS = 0.25
STACK_BYTES = 20 * MIB
FIBER_STACK_BYTES = 24 * MIB
FAR_AWAY = 2**62
PAGE = 65536


class Shared(ctypes.Structure):
    """The struct that the guest shares with its host; mirrors `struct shared` of the guest."""

    _fields_ = [
        (name, ctypes.c_uint32)
        for name in (
            "in_ptr",
            "in_cap",
            "in_len",
            "out_ptr",
            "out_len",
            "status",
            "pending",
            "interrupt",
            "tick_limit",
            "ticks",
        )
    ]
    in_ptr: int
    in_cap: int
    in_len: int
    out_ptr: int
    out_len: int
    status: int
    pending: int
    interrupt: int
    tick_limit: int
    ticks: int


class _Native(Protocol):
    """What is used of wasmtime's C interface. Pointers are whatever ctypes makes of them."""

    def wasmtime_config_async_stack_size_set(self, config: object, size: int) -> None: ...
    def wasmtime_context_set_epoch_deadline(self, context: object, ticks: int) -> None: ...
    def wasmtime_context_epoch_deadline_async_yield_and_update(
        self, context: object, ticks: int
    ) -> object: ...
    def wasmtime_memory_data(self, context: object, memory: object) -> object: ...
    def wasmtime_memory_data_size(self, context: object, memory: object) -> int: ...
    def wasmtime_func_call_async(  # noqa: PLR0913 -- the C function's
        self,
        context: object,
        function: object,
        args: object,
        count: int,
        results: object,
        result_count: int,
        trap: object,
        error: object,
    ) -> object: ...
    def wasmtime_call_future_poll(self, future: object) -> bool: ...
    def wasmtime_call_future_delete(self, future: object) -> None: ...


NATIVE_NAMES = [name for name in vars(_Native) if name.startswith("wasmtime_")]
_native = cast("_Native", _ffi)


class Ended(NamedTuple):
    """How a call into the guest came out: `trap` is empty, or why the instance is lost."""

    trap: str


class Ticker:
    """Moves an engine's epoch while scripts run, so that a running one meets its slice's end.

    It must not rest while a call is open, however late this process gets its turn: a guest whose
    epoch stands still never gives its thread back.
    """

    def __init__(self, engine: wasmtime.Engine) -> None:
        self._engine = engine
        self._open: set[int] = set()
        self._until = 0.0
        self._idle = False
        self._wake = threading.Event()
        self._thread: threading.Thread | None = None
        self._lock = threading.Lock()

    def opened(self, call: object) -> None:
        """Tick until `call` is closed, and a little longer: the next one is often near."""
        self._open.add(id(call))
        self._until = time.monotonic() + LINGER_SECONDS
        if self._thread is None:
            self._start()
        if self._idle:
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
            if self._open or time.monotonic() < self._until:
                continue
            # `opened` writes `_open` and then reads `_idle`; here it is the other way round, so
            # one of the two always sees the other.
            self._idle = True
            if not self._open:
                self._wake.wait()
            self._idle = False
            self._wake.clear()


class Machine:
    """The compiled guest, shared by all VMs of a process and by its threads.

    Attributes:
        digest: SHA-256 of guest.wasm; snapshots are bound to it.
        host_fields: where in the memory the fields are that only the host writes, to stop a script.
        fibers: whether a step can give its thread back before it ends.
    """

    def __init__(self, wasm: bytes, *, code: MachineCode, fibers: bool = True) -> None:
        self.digest = hashlib.sha256(wasm).digest()
        at = wasm.rindex(MARK) + len(MARK)
        self.shared_at = int(struct.unpack_from("<I", wasm, at)[0])
        self.host_fields = [
            self.shared_at + getattr(Shared, name).offset for name in ("interrupt", "tick_limit")
        ]
        self.fibers = fibers and all(hasattr(_ffi, name) for name in NATIVE_NAMES)
        self.engine = wasmtime.Engine(self._config())
        self.module = code.load(self.engine, wasm, self._options())
        self.ticker = Ticker(self.engine)

    @classmethod
    def load(cls, *, cache: Path | None = None) -> "Machine":
        """Return the machine of guest.wasm, proven to run.

        `cache` is a folder of this user's own for machine code; without it each process compiles
        for half a second.
        """
        wasm, code = GUEST.read_bytes(), MachineCode(cache)
        machine = cls(wasm, code=code)
        if machine.fibers and not _self_test(machine):
            return cls(wasm, code=code, fibers=False)
        return machine

    def _config(self) -> wasmtime.Config:
        config = wasmtime.Config()
        config.epoch_interruption = True
        config.cranelift_nan_canonicalization = True
        config.memory_may_move = False
        if self.fibers:
            # Before the next line: a wasm stack above the fiber's own ends the process.
            _native.wasmtime_config_async_stack_size_set(config.ptr(), FIBER_STACK_BYTES)
            config.max_wasm_stack = STACK_BYTES
        return config

    def _options(self) -> str:
        # The library's size stands for its version, which costs 10 ms to ask for; machine code of
        # another version is refused by the library itself.
        library = Path(_ffi.filename).stat().st_size
        return f"{library} {platform.machine()} {self.fibers} epoch nan-canonical fixed-memory"

    @cached_property
    def image(self) -> bytes:
        """The memory that every VM starts from."""
        return Instance(self, memory_bytes=64 * MIB).read_memory()


class Instance:
    """One guest: its memory, and the two functions that it has. Not for two threads at once."""

    def __init__(self, machine: Machine, *, memory_bytes: int, pages: int = 0) -> None:
        self.machine = machine
        self._store = wasmtime.Store(machine.engine)
        self._store.set_limits(memory_size=memory_bytes)
        self._store.set_epoch_deadline(FAR_AWAY)
        exports = wasmtime.Instance(self._store, machine.module, []).exports(self._store)
        self._memory = cast("wasmtime.Memory", exports["memory"])
        self._step = cast("wasmtime.Func", exports["step"])
        self._inbox = cast("wasmtime.Func", exports["inbox"])
        missing = pages - self._memory.size(self._store)
        if missing > 0:
            self._memory.grow(self._store, missing)
        address = ctypes.cast(self._memory.data_ptr(self._store), ctypes.c_void_p).value or 0
        self.base = address
        self.shared = Shared.from_address(address + machine.shared_at)
        self._context = self._store._context()  # pyright: ignore[reportPrivateUsage] -- see above  # noqa: SLF001
        if machine.fibers:
            _native.wasmtime_context_epoch_deadline_async_yield_and_update(
                self._context, SLICE_TICKS
            )

    def write_input(self, data: bytes) -> bool:
        """Put a step's input into the guest; False when its memory has no room for it."""
        size = len(data)
        if size > self.shared.in_cap:
            self._run_to_end(self._inbox, [size])
            if size > self.shared.in_cap:
                return False
        ctypes.memmove(self.base + self.shared.in_ptr, data, size)
        self.shared.in_len = size
        return True

    def begin_step(self) -> "Running":
        """Begin `step()`; nothing has run yet."""
        return self._begin(self._step, [])

    def read_output(self) -> bytes:
        """Return what the last step wrote."""
        return ctypes.string_at(self.base + self.shared.out_ptr, self.shared.out_len)

    def read_memory(self) -> bytes:
        """Return the whole linear memory."""
        size = self._memory.data_len(self._store)
        return ctypes.string_at(self.base, size)

    def write_memory(self, at: int, data: bytes) -> None:
        """Overwrite a part of the memory; only for a restore."""
        if at + len(data) > self._memory.data_len(self._store):
            raise ValueError("outside the memory")
        ctypes.memmove(self.base + at, data, len(data))

    def close(self) -> None:
        """Give the memory back now."""
        self._store.close()

    def _begin(self, function: wasmtime.Func, args: Sequence[int]) -> "Running":
        if self.machine.fibers:
            return Fiber(self, self._context, function, args)
        return Blocking(self.machine.ticker, self._store, function, args)

    def _run_to_end(self, function: wasmtime.Func, args: Sequence[int]) -> None:
        running = self._begin(function, args)
        running.finish(time.monotonic() + GRACE_SECONDS, lambda: None)


class Running(Protocol):
    """A call into the guest that has begun."""

    def poll(self) -> bool:
        """Run for a slice at most; True when the call has ended."""
        ...

    def finish(self, deadline: float, interrupt: "Interrupt") -> None:
        """Run to the end; call `interrupt` at `deadline`, kill when that did not help."""
        ...

    @property
    def ended(self) -> Ended | None:
        """How it came out, once it has ended."""
        ...


class Interrupt(Protocol):
    """Asks the guest to stop."""

    def __call__(self) -> None: ...


class Fiber:
    """A call on a stack of its own, that comes back after each slice."""

    def __init__(
        self, owner: Instance, context: object, function: wasmtime.Func, args: Sequence[int]
    ) -> None:
        self._owner = owner  # the memory must outlive the call
        self._trap = ctypes.POINTER(_ffi.wasm_trap_t)()
        self._error = ctypes.POINTER(_ffi.wasmtime_error_t)()
        self._args = (_ffi.wasmtime_val_t * len(args))()
        for place, value in zip(self._args, args, strict=True):
            place.kind = _ffi.WASMTIME_I32
            place.of.i32 = value
        self.ended: Ended | None = None
        owner.machine.ticker.opened(self)
        native_function = byref(function._func)  # pyright: ignore[reportPrivateUsage] -- see above  # noqa: SLF001
        _native.wasmtime_context_set_epoch_deadline(context, SLICE_TICKS)
        self._future: object | None = _native.wasmtime_func_call_async(
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
        """Run for a slice at most; True when the call has ended."""
        if self._future is not None:
            if not _native.wasmtime_call_future_poll(self._future):
                return False
            self._close()
            self.ended = Ended(self._why())
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
        _native.wasmtime_call_future_delete(future)
        self._owner.machine.ticker.closed(self)

    def _why(self) -> str:
        if self._error:
            return str(wasmtime.WasmtimeError._from_ptr(self._error))  # pyright: ignore[reportPrivateUsage] -- see above  # noqa: SLF001
        if self._trap:
            return wasmtime.Trap._from_ptr(self._trap).message  # pyright: ignore[reportPrivateUsage] -- see above  # noqa: SLF001
        return ""

    def __del__(self) -> None:
        """A call that nobody ended is killed."""
        if getattr(self, "_future", None) is not None:
            self._close()


class Blocking:
    """The same on wasmtime's public interface alone: it runs only in `finish`, without slices."""

    def __init__(
        self, ticker: Ticker, store: wasmtime.Store, function: wasmtime.Func, args: Sequence[int]
    ) -> None:
        self._ticker, self._store, self._function, self._args = ticker, store, function, args
        self.ended: Ended | None = None

    def poll(self) -> bool:
        """Say whether it has ended; nothing runs here."""
        return self.ended is not None

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
            self.ended = Ended(str(error).splitlines()[0])
        finally:
            timer.cancel()
            self._ticker.closed(self)


def _self_test(machine: Machine) -> bool:
    """Whether a step on a fiber does what it should."""
    instance = Instance(machine, memory_bytes=16 * MIB)
    if not instance.write_input(struct.pack("<d", 0.0)):
        return False
    running = instance.begin_step()
    running.finish(time.monotonic() + 1.0, lambda: None)
    return running.ended == Ended("") and instance.read_output() == b"[]"
