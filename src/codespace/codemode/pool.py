"""Places in memory that VMs take one after another.

A page that is touched for the first time costs some microseconds: a place that was in use before
keeps a part of its pages, emptied, for the next VM. Address space is reserved for all places at
once, memory is not.
"""

import mmap
import sys
from collections.abc import Callable
from typing import Protocol, cast

import wasmtime

from codespace.codemode.native import ffi
from codespace.domain.sizes import GIB, MIB

PLACES = 8
"""Few, for a place keeps all of the stack that a script has had, 20 MiB at most. Where there are
more VMs at once, they have memory of their own."""
PLACE_BYTES = 4 * GIB
"""Address space of a place: all that 32 bits can name, so that the guest needs no checks."""
AROUND_BYTES = GIB // 4
"""Address space of a place's stack and of what guards both, generously."""
WARM_BYTES = 4 * MIB
"""Memory that a place keeps between two VMs at most."""


class _Native(Protocol):
    wasmtime_pooling_allocation_config_new: Callable[[], object]
    wasmtime_pooling_allocation_config_delete: Callable[[object], None]
    wasmtime_pooling_allocation_config_total_core_instances_set: Callable[[object, int], None]
    wasmtime_pooling_allocation_config_total_memories_set: Callable[[object, int], None]
    wasmtime_pooling_allocation_config_total_tables_set: Callable[[object, int], None]
    wasmtime_pooling_allocation_config_total_stacks_set: Callable[[object, int], None]
    wasmtime_pooling_allocation_config_max_memory_size_set: Callable[[object, int], None]
    wasmtime_pooling_allocation_config_linear_memory_keep_resident_set: Callable[
        [object, int], None
    ]
    wasmtime_pooling_allocation_strategy_set: Callable[[object, object], None]


_native = cast("_Native", ffi)
_NO_RESERVE = 0x4000


def has_pool(places: int) -> bool:
    """Whether this system and this build of wasmtime can have a pool of so many places.

    An engine that cannot get its address space ends the process, so that it is tried before.
    """
    if sys.platform != "linux" or not all(hasattr(ffi, name) for name in _Native.__annotations__):
        return False
    size = places * (PLACE_BYTES + AROUND_BYTES)
    flags = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | _NO_RESERVE
    try:
        mmap.mmap(-1, size, flags=flags, prot=0).close()
    except (OSError, OverflowError, ValueError):
        return False
    return True


def use_pool(config: wasmtime.Config, *, places: int = PLACES) -> None:
    """Let an engine have its memories and stacks in `places` places."""
    pool = _native.wasmtime_pooling_allocation_config_new()
    _native.wasmtime_pooling_allocation_config_total_core_instances_set(pool, places)
    _native.wasmtime_pooling_allocation_config_total_memories_set(pool, places)
    _native.wasmtime_pooling_allocation_config_total_tables_set(pool, places)
    _native.wasmtime_pooling_allocation_config_total_stacks_set(pool, places)
    _native.wasmtime_pooling_allocation_config_max_memory_size_set(pool, PLACE_BYTES)
    _native.wasmtime_pooling_allocation_config_linear_memory_keep_resident_set(pool, WARM_BYTES)
    _native.wasmtime_pooling_allocation_strategy_set(config.ptr(), pool)
    _native.wasmtime_pooling_allocation_config_delete(pool)
