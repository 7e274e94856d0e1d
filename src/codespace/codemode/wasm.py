"""The compiled guest of a process, and its instances.

A step runs on a fiber of wasmtime, so that an event loop can begin it and a worker thread can end
it. Where the fibers are not to be had, or do not pass a test when a machine is made, a step blocks
its thread (`fibers=False`).
"""

import ctypes
import hashlib
import platform
import struct
import time
from functools import cached_property
from pathlib import Path
from typing import cast

import wasmtime

from codespace.codemode.machine_code import MachineCode
from codespace.codemode.native import Crossing, extern, ffi, has_fibers, native
from codespace.codemode.running import (
    GRACE_SECONDS,
    SLICE_TICKS,
    Blocking,
    Ended,
    Fiber,
    Fibers,
    Running,
)
from codespace.codemode.ticker import Ticker
from codespace.domain.limits import MIB

GUEST = Path(__file__).with_name("guest.wasm")
MARK = b"codespace.shared"
STACK_BYTES = 20 * MIB
FIBER_STACK_BYTES = 24 * MIB
FAR_AWAY = 2**62
NAMES = (b"memory", b"step", b"inbox")
ADDRESS_SPACE = 2**32
FIELDS = (
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
IN_PTR, IN_CAP, IN_LEN, OUT_PTR, OUT_LEN, STATUS, PENDING, INTERRUPT, TICK_LIMIT, TICKS = range(10)
"""Where the fields are in `Instance.words`: ctypes' own way to them takes three times as long."""


class Shared(ctypes.Structure):
    """The struct that the guest shares with its host; mirrors `struct shared` of the guest."""

    _fields_ = [(name, ctypes.c_uint32) for name in FIELDS]
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
        self.fibers = fibers and has_fibers()
        self.engine = wasmtime.Engine(self._config())
        self.module = code.load(self.engine, wasm, self._options())
        self.ticker = Ticker(self.engine)
        self.crossing = Crossing() if self.fibers else None

    @classmethod
    def load(cls, *, cache: Path | None = None) -> "Machine":
        """Return the machine of guest.wasm, proven to run.

        `cache` is a folder of this user's own for machine code; without it each process compiles
        for half a second.
        """
        if not GUEST.exists():
            raise RuntimeError("guest.wasm is missing; install the package, or run build_guest.py")
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
            native.wasmtime_config_async_stack_size_set(config.ptr(), FIBER_STACK_BYTES)
            config.max_wasm_stack = STACK_BYTES
        return config

    def _options(self) -> str:
        # The library's size stands for its version, which costs 10 ms to ask for; machine code of
        # another version is refused by the library itself.
        library = Path(ffi.filename).stat().st_size
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
        self._memory, self._step, self._inbox = self._exports()
        missing = pages - self._memory.size(self._store)
        if missing > 0:
            self._memory.grow(self._store, missing)
        base = ctypes.cast(self._memory.data_ptr(self._store), ctypes.c_void_p).value or 0
        self.shared = Shared.from_address(base + machine.shared_at)
        # The memory never moves; what of the address space is no memory yet is never looked at.
        self._bytes = memoryview((ctypes.c_char * ADDRESS_SPACE).from_address(base)).cast("B")
        self.words = memoryview(self.shared).cast("B").cast("I")
        self._fibers: Fibers | None = None
        if machine.crossing is not None:
            self._fibers = Fibers(self._store, machine.crossing, machine.ticker)
            self._step_at = ctypes.addressof(self._step._func)  # pyright: ignore[reportPrivateUsage] -- as in native  # noqa: SLF001
            context = self._store._context()  # pyright: ignore[reportPrivateUsage] -- as in native  # noqa: SLF001
            native.wasmtime_context_epoch_deadline_async_yield_and_update(context, SLICE_TICKS)

    def _exports(self) -> tuple[wasmtime.Memory, wasmtime.Func, wasmtime.Func]:
        """Return what the guest exports.

        The public mapping of exports takes as long to make as the instance itself.
        """
        instance = wasmtime.Instance(self._store, self.machine.module, [])
        if not self.machine.fibers:
            found = instance.exports(self._store)
            return (
                cast("wasmtime.Memory", found["memory"]),
                cast("wasmtime.Func", found["step"]),
                cast("wasmtime.Func", found["inbox"]),
            )
        memory, step, inbox = (extern(self._store, instance, name) for name in NAMES)
        return (
            wasmtime.Memory._from_raw(memory.of.memory),  # pyright: ignore[reportPrivateUsage] -- as in native  # noqa: SLF001
            wasmtime.Func._from_raw(step.of.func),  # pyright: ignore[reportPrivateUsage] -- as in native  # noqa: SLF001
            wasmtime.Func._from_raw(inbox.of.func),  # pyright: ignore[reportPrivateUsage] -- as in native  # noqa: SLF001
        )

    def write_input(self, data: bytes) -> bool:
        """Put a step's input into the guest; False when its memory has no room for it."""
        size, words = len(data), self.words
        if size > words[IN_CAP]:
            self._grow_inbox(size)
            if size > words[IN_CAP]:
                return False
        at = words[IN_PTR]
        self._bytes[at : at + size] = data
        words[IN_LEN] = size
        return True

    def begin_step(self) -> "Running":
        """Begin `step()`; nothing has run yet."""
        if self._fibers is not None:
            return Fiber(self._fibers, self._step_at)
        return Blocking(self._store, self._step, [], ticker=self.machine.ticker)

    def read_output(self) -> bytes:
        """Return what the last step wrote."""
        at = self.words[OUT_PTR]
        return self._bytes[at : at + self.words[OUT_LEN]].tobytes()

    def read_memory(self) -> bytes:
        """Return the whole linear memory."""
        return self._bytes[: self._memory.data_len(self._store)].tobytes()

    def write_memory(self, at: int, data: bytes) -> None:
        """Overwrite a part of the memory; only for a restore."""
        if at + len(data) > self._memory.data_len(self._store):
            raise ValueError("outside the memory")
        self._bytes[at : at + len(data)] = data

    def close(self) -> None:
        """Give the memory back now; whoever still looks at it gets an error."""
        self._bytes.release()
        self.words.release()
        self._store.close()

    def _grow_inbox(self, size: int) -> None:
        running: Running
        if self._fibers is not None:
            at = ctypes.addressof(self._inbox._func)  # pyright: ignore[reportPrivateUsage] -- as in native  # noqa: SLF001
            running = Fiber(self._fibers, at, size)
        else:
            running = Blocking(self._store, self._inbox, [size], ticker=self.machine.ticker)
        running.finish(time.monotonic() + GRACE_SECONDS, lambda: None)


def _self_test(machine: Machine) -> bool:
    """Whether a step on a fiber does what it should."""
    instance = Instance(machine, memory_bytes=16 * MIB)
    if not instance.write_input(struct.pack("<d", 0.0)):
        return False
    running = instance.begin_step()
    running.finish(time.monotonic() + 1.0, lambda: None)
    return running.ended == Ended("") and instance.read_output() == b"[]"
