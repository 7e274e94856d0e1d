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
from codespace.codemode.pool import PLACES, has_pool, use_pool
from codespace.codemode.running import (
    GRACE_SECONDS,
    SLICE_TICKS,
    WELL,
    Blocking,
    Fiber,
    Running,
)
from codespace.codemode.ticker import Ticker
from codespace.domain.sizes import MIB

GUEST = Path(__file__).with_name("guest.wasm")
MARK = b"codespace.shared"
STACK_BYTES = 20 * MIB
FIBER_STACK_BYTES = 24 * MIB
FAR_AWAY = 2**62
FIELDS = struct.Struct("<10I")
"""All fields of `Shared` at once: far cheaper than one by one."""
NAMES = (b"memory", b"step", b"inbox")


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


class Machine:
    """The compiled guest, shared by all VMs of a process and by its threads.

    Attributes:
        digest: SHA-256 of guest.wasm; snapshots are bound to it.
        host_fields: where in the memory the fields are that only the host writes, to stop a script.
        fibers: whether a step can give its thread back before it ends.
        places: how many VMs can be in the pool of this machine; 0: it has none.
    """

    def __init__(
        self,
        wasm: bytes,
        *,
        code: MachineCode,
        fibers: bool = True,
        places: int = PLACES,
        like: "Machine | None" = None,
    ) -> None:
        self._wasm, self._code = wasm, code
        self.digest = hashlib.sha256(wasm).digest()
        at = wasm.rindex(MARK) + len(MARK)
        self.shared_at = int(struct.unpack_from("<I", wasm, at)[0])
        self.host_fields = [
            self.shared_at + getattr(Shared, name).offset for name in ("interrupt", "tick_limit")
        ]
        self.fibers = fibers and has_fibers()
        self.places = places if places and self.fibers and has_pool(places) else 0
        self.engine = wasmtime.Engine(self._config())
        options, known = f"{self.digest.hex()} {self._options()}", like and like.module
        self.module = code.load(self.engine, wasm, options, like=known)
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

    @cached_property
    def spare(self) -> "Machine":
        """The machine of VMs that the pool has no place for: equal, but that it has no pool."""
        return Machine(self._wasm, code=self._code, fibers=self.fibers, places=0, like=self)

    def _config(self) -> wasmtime.Config:
        config = wasmtime.Config()
        if self.places:
            use_pool(config, places=self.places)
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
        try:
            instance = self._made(machine, memory_bytes)
        except wasmtime.WasmtimeError:
            if not machine.places:
                raise
            instance = self._made(machine.spare, memory_bytes)  # all places are taken
        self._memory, self._step, self._inbox = self._exports(instance)
        missing = pages - self._memory.size(self._store)
        if missing > 0:
            self._memory.grow(self._store, missing)
        address = ctypes.cast(self._memory.data_ptr(self._store), ctypes.c_void_p).value or 0
        self._address = address
        # A view costs a third of a call into C; nothing behind the memory's end may be touched.
        whole = (ctypes.c_ubyte * memory_bytes).from_address(address)
        self.view = memoryview(whole).cast("B")
        self.shared = Shared.from_address(address + machine.shared_at)
        self._size = 0
        self._stepping = self._running(self._step)
        if self.machine.fibers:
            context = self._store._context()  # pyright: ignore[reportPrivateUsage] -- as in native  # noqa: SLF001
            native.wasmtime_context_epoch_deadline_async_yield_and_update(context, SLICE_TICKS)

    def _made(self, machine: Machine, memory_bytes: int) -> wasmtime.Instance:
        self.machine = machine
        self._store = wasmtime.Store(machine.engine)
        self._store.set_limits(memory_size=memory_bytes)
        self._store.set_epoch_deadline(FAR_AWAY)
        return wasmtime.Instance(self._store, machine.module, [])

    def _exports(
        self, instance: wasmtime.Instance
    ) -> tuple[wasmtime.Memory, wasmtime.Func, wasmtime.Func]:
        """Return what the guest exports.

        The public mapping of exports takes as long to make as the instance itself.
        """
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

    def holds(self, *ends: int) -> bool:
        """Say whether parts that end there are in the memory. The guest's own word is no proof."""
        end = max(ends)
        if end > self._size:
            self._size = self._memory.data_len(self._store)
        return end <= self._size

    def make_room(self, size: int) -> None:
        """Let the guest grow its place for inputs, if it can."""
        running = self._running(self._inbox)
        running.begin(size)
        running.finish(time.monotonic() + GRACE_SECONDS, lambda: None)

    def write_input(self, data: bytes, at: int) -> None:
        """Put a step's input where there is room for it."""
        size = len(data)
        self.view[at : at + size] = data
        self.shared.in_len = size

    def begin_step(self) -> Running:
        """Begin `step()`; nothing has run yet."""
        self._stepping.begin()
        return self._stepping

    def read_memory(self) -> bytes:
        """Return the whole linear memory."""
        return ctypes.string_at(self._address, self._memory.data_len(self._store))

    def write_memory(self, at: int, data: bytes) -> None:
        """Overwrite a part of the memory; only for a restore."""
        if not self.holds(at + len(data)):
            raise ValueError("outside the memory")
        ctypes.memmove(self._address + at, data, len(data))

    def close(self) -> None:
        """Give the memory back now; whoever still looks at it gets an error."""
        self.view.release()
        self._store.close()

    def _running(self, function: wasmtime.Func) -> Running:
        machine = self.machine
        if machine.crossing is None:
            return Blocking(self._store, function, ticker=machine.ticker)
        return Fiber(self._store, function, ticker=machine.ticker, crossing=machine.crossing)


def _self_test(machine: Machine) -> bool:
    """Whether a step on a fiber does what it should."""
    instance = Instance(machine, memory_bytes=16 * MIB)
    instance.write_input(struct.pack("<d", 0.0), instance.shared.in_ptr)
    running = instance.begin_step()
    running.finish(time.monotonic() + 1.0, lambda: None)
    start, size = instance.shared.out_ptr, instance.shared.out_len
    return running.ended == WELL and instance.view[start : start + size].tobytes() == b"[]"
