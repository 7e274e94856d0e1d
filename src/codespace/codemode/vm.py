"""One sandboxed script as a state machine: bytes in, operations out.

It decides nothing: who may call what, when a step took too long and what is kept is the driver's
matter. See `protocol` for the inputs and the operations.

A driver under asyncio, per turn of the loop:

    turn = vm.begin(step_input(clock_ms, [resolve(call_no, value)]))
    if not turn.poll():      # one slice, about half a millisecond, on the loop's own thread
        await asyncio.wrap_future(workers.finish(turn, seconds=…, deadline=…))
    for operation in turn.operations(): ...
"""

import hashlib
import time
from typing import NamedTuple

from codespace.codemode import snapshots
from codespace.codemode.protocol import Operation, Status, decode
from codespace.codemode.running import Running
from codespace.codemode.wasm import FIELDS, Instance, Machine, Shared
from codespace.domain.errors import CodeSpaceError, ErrorCode
from codespace.domain.sizes import MIB

MEMORY_BYTES = 64 * MIB
_TOLD = tuple(Status)[:-1]
"""What a guest can say of itself; that it is lost, only its host can."""
_TOLD_COUNT = len(_TOLD)


class Entry(NamedTuple):
    """One step of a run's journal.

    `tick_limit` is 0, or the tick at which the step was interrupted: a step that is given it
    stops at the very same place.
    """

    data: bytes
    tick_limit: int = 0


class Turn:
    """A step that has begun. At most one a VM; a VM may not be used while its turn is open."""

    __slots__ = ("_data", "_running", "_vm")

    def __init__(self, vm: "Vm", running: Running, data: bytes) -> None:
        self._vm, self._running, self._data = vm, running, data

    def poll(self) -> bool:
        """Run for one slice at most (about half a millisecond); True when the step has ended."""
        return self._running.poll()

    @property
    def pausable(self) -> bool:
        """Whether the step can give its thread back before it ends."""
        return self._running.pausable

    def run_until(self, until: float) -> bool:
        """Run until then, of `time.monotonic`, at most, in any one thread; True at the end."""
        return self._running.run_until(until)

    def interrupt(self) -> None:
        """Stop the script at its next poll."""
        self._vm.interrupt()

    def finish(self, deadline: float) -> None:
        """Run to the end of the step, in any one thread; what is left at `deadline` is stopped.

        At `deadline` (of `time.monotonic`) the script is interrupted; a VM that has not stopped
        250 ms later is killed: its status is then LOST.
        """
        self._running.finish(deadline, self._vm.interrupt)

    def kill(self) -> None:
        """End the step where it stands; the VM is then lost. Not while a thread is in it."""
        self._running.kill()

    def output(self) -> bytes:
        """Return the output of the ended step as it came; empty when the VM was lost."""
        ended = self._running.ended
        if ended is None:
            raise RuntimeError("the step has not ended")
        return self._vm.settle(ended.trap)

    def operations(self) -> list[Operation]:
        """Return what the ended step asks of the host; nothing when the VM was lost."""
        output = self.output()
        return decode(output) if len(output) > 2 else []  # noqa: PLR2004 -- "[]"

    @property
    def entry(self) -> Entry:
        """The ended step as it goes into the journal."""
        if self._vm.status is Status.INTERRUPTED:
            return Entry(self._data, self._vm.ticks)
        return Entry(self._data)


class Vm:
    """A VM from the baked image: cheap to make, and 9 KB until its script runs.

    Attributes:
        status: where the script stands after the last step.
        pending: how many calls and asks wait to be settled.
        ticks: a clock of the script's own work: how often it was asked whether to stop.
        lost: why the VM is lost, for people; empty while it is not.
    """

    def __init__(
        self,
        machine: Machine,
        *,
        memory_bytes: int = MEMORY_BYTES,
        instance: Instance | None = None,
    ) -> None:
        instance = instance or Instance(machine, memory_bytes=memory_bytes)
        self._machine, self._instance = machine, instance
        self._shared: Shared = instance.shared
        self._running: Running | None = None
        self._limited = False
        self.lost = ""
        self._look()

    def _look(self) -> bytes:
        # One look at all fields, and a tuple for the enum: every step of every script passes here.
        fields: tuple[int, ...] = FIELDS.unpack_from(self._shared)
        in_at, room, _, at, size, status, pending, _, _, ticks = fields
        if not (self._instance.holds(in_at + room, at + size) and status < _TOLD_COUNT):
            return self._lose("the guest's own state is broken")
        self._in_at, self._room, self.ticks = in_at, room, ticks
        self.status, self.pending = _TOLD[status], pending
        return self._instance.view[at : at + size].tobytes()

    def _lose(self, why: str) -> bytes:
        self.lost, self.status, self.pending = why, Status.LOST, 0
        return b""

    def begin(self, data: bytes, *, tick_limit: int = 0) -> Turn:
        """Begin a step. Several records may be in one step: the script sees them one by one.

        Raises:
            CodeSpaceError: LIMIT_EXCEEDED when the VM's memory has no room for the input. The VM
                is as it was.
        """
        if self.lost:
            raise RuntimeError("the VM is lost")
        if len(data) > self._room and not self._has_room(len(data)):
            raise CodeSpaceError(
                ErrorCode.LIMIT_EXCEEDED,
                "The value does not fit into the script's memory; ask for less, or raise the limit "
                "of memory.",
                details={"limit": "memory", "bytes": len(data)},
            )
        self._instance.write_input(data, self._in_at)
        if tick_limit or self._limited:
            self._shared.tick_limit, self._limited = tick_limit, tick_limit > 0
        self._running = self._instance.begin_step()
        return Turn(self, self._running, data)

    def _has_room(self, size: int) -> bool:
        self._instance.make_room(size)
        self._look()
        return size <= self._room

    def step(self, data: bytes, *, tick_limit: int = 0, seconds: float = 5.0) -> list[Operation]:
        """Run a whole step on this thread, stopped as by `Turn.finish` after `seconds`.

        Raises:
            CodeSpaceError: as `begin`.
        """
        turn = self.begin(data, tick_limit=tick_limit)
        turn.finish(time.monotonic() + seconds)
        return turn.operations()

    def settle(self, trap: str) -> bytes:
        """Take over the state after a step that ended; `trap` says why the VM is lost."""
        if trap:
            return self._lose(trap)
        return self._look()

    def interrupt(self) -> None:
        """Stop the script at its next poll, from any thread; that cannot be caught or undone."""
        self._shared.interrupt = 1

    def memory_hash(self) -> str:
        """Return the SHA-256 of the whole state, equal for equal histories anywhere."""
        return hashlib.sha256(self._memory()).hexdigest()

    def snapshot(self) -> bytes:
        """Return the whole state, between two steps: some 5 KB for a small script."""
        return snapshots.pack(self._machine.digest, self._machine.image, self._memory())

    def _memory(self) -> bytes:
        """Return the memory without what only the host wrote: its ways to stop the script."""
        memory = bytearray(self._instance.read_memory())
        for at in self._machine.host_fields:
            memory[at : at + 4] = bytes(4)
        return bytes(memory)

    @classmethod
    def restore(cls, machine: Machine, image: bytes, *, memory_bytes: int = MEMORY_BYTES) -> "Vm":
        """Return a VM that goes on where `snapshot` was taken, in whatever process.

        Raises:
            SnapshotError: another build of the guest took it, or it is damaged.
        """
        pages, parts = snapshots.unpack(machine.digest, machine.image, image)
        instance = Instance(machine, memory_bytes=memory_bytes, pages=pages)
        for at, part in parts:
            instance.write_memory(at, part)
        return cls(machine, instance=instance)

    def close(self) -> None:
        """Give the memory back now, and end an open turn. Not while a thread is in it."""
        self.lost = self.lost or "the VM was closed"
        self._shared = Shared()  # a late `interrupt` must not write into memory that is gone
        if self._running is not None:
            self._running.kill()
        self._instance.close()


def replay(machine: Machine, journal: list[Entry], *, memory_bytes: int = MEMORY_BYTES) -> Vm:
    """Return a VM that has gone through the steps of a journal."""
    vm = Vm(machine, memory_bytes=memory_bytes)
    for entry in journal:
        vm.step(entry.data, tick_limit=entry.tick_limit, seconds=60.0)
    return vm
