"""One sandboxed script as a state machine: bytes in, operations out.

It decides nothing: who may call what, when a step took too long and what is kept is the driver's
matter. See `protocol` for the inputs and the operations.

A driver under asyncio, per turn of the loop:

    turn = vm.begin(step_input(clock_ms, [resolve(call_no, value)]))
    if not turn.poll():                       # one slice, about 2 ms, on the loop's own thread
        await loop.run_in_executor(pool, turn.finish, time.monotonic() + seconds)
    for operation in turn.operations(): ...
"""

from dataclasses import dataclass

from codespace.codemode.protocol import Operation, Status
from codespace.codemode.wasm import Machine
from codespace.domain.limits import MIB


@dataclass(frozen=True, slots=True)
class Entry:
    """One step of a run's journal.

    `tick_limit` is 0, or the tick at which the step was interrupted: a step that is given it
    stops at the very same place.
    """

    data: bytes
    tick_limit: int = 0


class Turn:
    """A step that has begun. At most one a VM; a VM may not be used while its turn is open."""

    def poll(self) -> bool:
        """Run for at most one slice (2 ms); True when the step has ended."""
        raise NotImplementedError

    def finish(self, deadline: float) -> None:
        """Run to the end of the step, in any one thread; what is left at `deadline` is stopped.

        At `deadline` (of `time.monotonic`) the script is interrupted; a VM that has not stopped
        250 ms later is killed: its status is then LOST.
        """
        raise NotImplementedError

    def operations(self) -> list[Operation]:
        """Return what the ended step asks of the host; nothing when the VM was lost."""
        raise NotImplementedError

    @property
    def entry(self) -> Entry:
        """The ended step as it goes into the journal."""
        raise NotImplementedError


class Vm:
    """A VM from the baked image: about 30 us to make and 9 KB until its script runs.

    Attributes:
        status: where the script stands after the last step.
        pending: how many calls and asks wait to be settled.
        lost: why the VM is lost, for people; empty while it is not.
    """

    def __init__(self, machine: Machine, *, memory_bytes: int = 64 * MIB) -> None:
        self.status = Status.IDLE
        self.pending = 0
        self.lost = ""
        raise NotImplementedError

    def begin(self, data: bytes, *, tick_limit: int = 0) -> Turn:
        """Begin a step. Several records may be in one step: the script sees them one by one."""
        raise NotImplementedError

    def step(
        self, data: bytes, *, tick_limit: int = 0, seconds: float = 5.0
    ) -> list[Operation]:
        """Run a whole step on this thread, stopped as by `Turn.finish` after `seconds`."""
        raise NotImplementedError

    def interrupt(self) -> None:
        """Stop the script at its next poll, from any thread; that cannot be caught or undone."""
        raise NotImplementedError

    def memory_hash(self) -> str:
        """Return the SHA-256 of the whole state, equal for equal histories anywhere."""
        raise NotImplementedError

    def snapshot(self) -> bytes:
        """Return the whole state, between two steps: some 5 KB for a small script."""
        raise NotImplementedError

    @classmethod
    def restore(cls, machine: Machine, image: bytes, *, memory_bytes: int = 64 * MIB) -> "Vm":
        """Return a VM that goes on where `snapshot` was taken, in whatever process.

        Raises:
            SnapshotError: another build of the guest took it, or it is damaged.
        """
        raise NotImplementedError
