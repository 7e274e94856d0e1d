"""What is used of wasmtime's C interface beyond its public Python names: fibers, and little else.

`_ffi` is the package's own mirror of the public C header. Every use of it goes through here.
"""

import ctypes
from collections.abc import Callable
from ctypes import c_bool, c_size_t, c_uint64, c_void_p
from typing import Protocol, cast

import wasmtime
from wasmtime import _ffi as ffi  # pyright: ignore[reportPrivateUsage] -- no other way to fibers

__all__ = ["Crossing", "extern", "ffi", "has_fibers", "native"]


class Native(Protocol):
    """The C functions. Pointers are whatever ctypes makes of them."""

    wasmtime_config_async_stack_size_set: Callable[[object, int], None]
    # Declared to return an error; what comes back is garbage and must not be looked at.
    wasmtime_context_epoch_deadline_async_yield_and_update: Callable[[object, int], object]
    # context, instance, name, its length, extern → whether it is there
    wasmtime_instance_export_get: Callable[[object, object, object, int, object], bool]


native = cast("Native", ffi)

_CROSSING = {
    "wasmtime_context_set_epoch_deadline": (None, [c_void_p, c_uint64]),
    # context, function, args, their number, results, their number, trap, error → future
    "wasmtime_func_call_async": (
        c_void_p,
        [c_void_p, c_void_p, c_void_p, c_size_t, c_void_p, c_size_t, c_void_p, c_void_p],
    ),
    "wasmtime_call_future_poll": (c_bool, [c_void_p]),
    "wasmtime_call_future_delete": (None, [c_void_p]),
}


class Crossing:
    """The four calls of every step, taking addresses as numbers: it halves what a step costs.

    Only `poll` runs the guest, and gives Python's lock to other threads. The others return at once
    and keep it.
    """

    def __init__(self) -> None:
        held, free = ctypes.PyDLL(str(ffi.filename)), ctypes.CDLL(str(ffi.filename))
        self.set_deadline = cast(
            "Callable[[int, int], None]", _typed(held, "wasmtime_context_set_epoch_deadline")
        )
        self.begin = cast(
            "Callable[[int, int, int | None, int, None, int, int, int], int]",
            _typed(held, "wasmtime_func_call_async"),
        )
        self.poll = cast("Callable[[int], bool]", _typed(free, "wasmtime_call_future_poll"))
        self.delete = cast("Callable[[int], None]", _typed(held, "wasmtime_call_future_delete"))


def _typed(library: ctypes.CDLL, name: str) -> object:
    function = library[name]
    function.restype, function.argtypes = _CROSSING[name]
    return function


def has_fibers() -> bool:
    """Whether this build of wasmtime has all the names that fibers need."""
    return all(hasattr(ffi, name) for name in [*Native.__annotations__, *_CROSSING])


def extern(
    store: wasmtime.Store, instance: wasmtime.Instance, name: bytes
) -> ffi.wasmtime_extern_t:
    """Return an export of an instance.

    Raises:
        LookupError: it has none of that name.
    """
    found = ffi.wasmtime_extern_t()
    context = store._context()  # pyright: ignore[reportPrivateUsage] -- as above  # noqa: SLF001
    raw = instance._instance  # pyright: ignore[reportPrivateUsage] -- as above  # noqa: SLF001
    text = ctypes.create_string_buffer(name, len(name))
    if not native.wasmtime_instance_export_get(
        context, ctypes.byref(raw), text, len(name), ctypes.byref(found)
    ):
        raise LookupError(name)
    return found
