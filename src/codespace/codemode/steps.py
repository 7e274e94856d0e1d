"""Drives one VM: every input goes in here, and no step holds up the event loop."""

import asyncio
import time
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from functools import partial
from typing import NamedTuple, cast

from codespace.codemode.json_pieces import Pieces, decoded
from codespace.codemode.loop_turn import LoopTurn
from codespace.codemode.protocol import Operation, Status, decode, operation, reject, step_input
from codespace.codemode.vm import Entry, Turn, Vm
from codespace.codemode.workers import Workers
from codespace.domain.errors import CodeSpaceError
from codespace.domain.run_limits import RunLimits

PAUSE_SECONDS = 0.002
"""Work that is done on the event loop without a pause."""
LARGE_INPUT = 4 * 1_048_576
"""Bytes of input that are copied into the VM by another thread than the event loop's."""
LARGE_OUTPUT = 65_536
"""Output of a step that is read with pauses."""


class Stop(StrEnum):
    """Which limit ended a step or a run."""

    STEP = "step_ms"
    ENGINE = "engine_ms"
    RUN = "timeout_ms"


class Delivery(NamedTuple):
    """An answer on its way into the VM."""

    number: int
    """The call or ask that it settles; 0: it settles none."""
    record: bytes
    tool: str = ""


@dataclass(slots=True)
class Breather:
    """Gives the event loop its turn when work has gone on without a pause."""

    _since: float = field(default_factory=time.perf_counter)

    @property
    def due(self) -> bool:
        """Whether it is time to let others run."""
        return time.perf_counter() - self._since > PAUSE_SECONDS

    async def breathe(self) -> None:
        """Let others run if it is time."""
        if self.due:
            await asyncio.sleep(0)
            self.refresh()

    def refresh(self) -> None:
        """Others have just run."""
        self._since = time.perf_counter()


class Steps:
    """The steps of one run.

    Attributes:
        vm: where the script stands is its `status`.
        engine_seconds: time that steps have taken so far.
        stopped: the limit that ended the script, if one did.
        abandoned: a worker thread may still use the VM.
    """

    def __init__(
        self,
        vm: Vm,
        limits: RunLimits,
        *,
        breather: Breather,
        workers: Workers,
        turn: LoopTurn,
        started_ms: float,
        deadline: float,
        on_step: Callable[[Entry], None] | None = None,
    ) -> None:
        self.vm = vm
        self.engine_seconds = 0.0
        self.stopped: Stop | None = None
        self.abandoned = False
        self._rest: Callable[[], Awaitable[list[Operation] | None]] | None = None
        self._breather = breather
        self._limits = limits
        self._engine_seconds_max = limits.engine_ms / 1000
        self._workers, self._turn = workers, turn
        self._origin = time.monotonic()
        self._started_ms = self._clock_ms = started_ms
        self._deadline = deadline
        self._on_step = on_step

    async def advance(self, deliveries: Sequence[Delivery]) -> list[Operation]:
        """Run the script as far as these inputs let it; return what it asks for.

        An answer that the VM's memory has no room for becomes a rejection.
        """
        operations = self.advance_at_once(deliveries)
        return await self.advance_rest() if operations is None else operations

    def advance_at_once(self, deliveries: Sequence[Delivery]) -> list[Operation] | None:
        """Do the same within a slice. None: it takes longer; `advance_rest` must be called."""
        if sum([len(each.record) for each in deliveries]) > LARGE_INPUT:
            self._rest = partial(self._advance_large, deliveries)
            return None
        try:
            turn = self._begin(deliveries)
        except CodeSpaceError as error:
            self._rest = partial(self._advance_without_room, deliveries, error)
            return None
        if self._turn.used_up:
            self._rest = partial(self._run_in_next_turn, turn)
            return None
        return self._run_a_slice(turn)

    async def _run_in_next_turn(self, turn: Turn) -> list[Operation] | None:
        await self._turn.begin()
        return self._run_a_slice(turn)

    def _run_a_slice(self, turn: Turn) -> list[Operation] | None:
        started = time.perf_counter()
        ended = turn.poll()
        self.engine_seconds += time.perf_counter() - started
        if not ended:
            self._turn.taken_since(started)
            self._rest = partial(self._run_elsewhere, turn)
            return None
        return self._read(turn)

    @property
    def under_way(self) -> bool:
        """Whether a step has begun and waits for `advance_rest`."""
        return self._rest is not None

    async def advance_rest(self) -> list[Operation]:
        """End the step that has begun."""
        operations: list[Operation] | None = None
        while operations is None:
            rest, self._rest = self._rest, None
            operations = [] if rest is None else await rest()
        return operations

    def move_clock(self) -> None:
        """Let `Date` show the time of now from the next step on."""
        self._clock_ms = self._started_ms + (time.monotonic() - self._origin) * 1000

    @property
    def exhausted(self) -> bool:
        """Whether the run has no engine time left."""
        return self.engine_seconds >= self._engine_seconds_max

    def _begin(self, deliveries: Sequence[Delivery]) -> Turn:
        return self.vm.begin(step_input(self._clock_ms, [each.record for each in deliveries]))

    async def _advance_large(self, deliveries: Sequence[Delivery]) -> list[Operation] | None:
        loop = asyncio.get_running_loop()
        try:
            turn = await asyncio.shield(loop.run_in_executor(None, self._begin, deliveries))
        except CodeSpaceError as error:
            return await self._advance_without_room(deliveries, error)
        except asyncio.CancelledError:
            self.abandoned = True  # the thread still has the VM
            raise
        return await self._run_elsewhere(turn)

    async def _advance_without_room(
        self, deliveries: Sequence[Delivery], error: CodeSpaceError
    ) -> list[Operation]:
        operations: list[Operation] = []
        if len(deliveries) > 1:
            for each in deliveries:
                if self.vm.status is Status.IDLE:
                    operations += await self.advance([each])
            return operations
        number, _, tool = deliveries[0]
        if not number:
            raise error
        record = reject(
            number, code=error.code.value, message=error.message, details=error.details, tool=tool
        )
        return await self.advance([Delivery(number, record, tool)])

    def _read(self, turn: Turn) -> list[Operation] | None:
        output = turn.output()
        if self._on_step is not None:
            self._on_step(turn.entry)
        if len(output) > LARGE_OUTPUT:
            self._rest = partial(self._decoded_slowly, output)
            return None
        return decode(output) if output else []

    async def _run_elsewhere(self, turn: Turn) -> list[Operation] | None:
        stop, seconds = self._allowance()
        future = self._workers.finish(turn, seconds=seconds, deadline=self._deadline)
        try:
            spent = await asyncio.wrap_future(future)  # which nobody can cancel
        except asyncio.CancelledError:
            # The thread still has the VM: it is told to stop, and left to end by itself.
            self.vm.interrupt()
            self.abandoned = True
            raise
        self._breather.refresh()
        self.engine_seconds += spent.seconds
        operations = self._read(turn)
        if spent.stopped and self.vm.status in (Status.INTERRUPTED, Status.LOST):
            self.stopped = Stop.RUN if spent.overdue else stop
        return operations

    def _allowance(self) -> tuple[Stop, float]:
        allowed = {
            Stop.STEP: self._limits.step_ms / 1000,
            Stop.ENGINE: self._limits.engine_ms / 1000 - self.engine_seconds,
        }
        stop = min(allowed, key=lambda each: allowed[each])
        return stop, max(0.0, allowed[stop])

    async def _decoded_slowly(self, output: bytes) -> list[Operation]:
        # Of a long text each of these is a copy of it, some milliseconds long.
        await asyncio.sleep(0)
        text, at = output.decode(), 1
        await asyncio.sleep(0)
        operations: list[Operation] = []
        while at < len(text) - 1:
            item, end = await self._decoded(decoded(text, at))
            operations.append(operation(cast("list[object]", item)))
            at = end + 1
            await self._breather.breathe()
        return operations

    async def _decoded(self, pieces: Pieces) -> tuple[object, int]:
        while True:
            try:
                next(pieces)
            except StopIteration as end:
                return cast("tuple[object, int]", end.value)
            await self._breather.breathe()
