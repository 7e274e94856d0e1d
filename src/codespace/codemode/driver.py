"""Drives one script from its first step to its end: steps, calls, questions, and time."""

import asyncio
import sys
import time
from contextlib import AbstractContextManager, nullcontext

from codespace.codemode import protocol
from codespace.codemode.calls import Calls
from codespace.codemode.ending import End
from codespace.codemode.gathered import Gathered
from codespace.codemode.inbox import Inbox
from codespace.codemode.orders import Order, Surroundings
from codespace.codemode.protocol import ASK_BASE, Ask, Call, Operation, Status
from codespace.codemode.steps import Breather, Delivery, Steps, Stop
from codespace.codemode.tool import ToolError
from codespace.codemode.vm import Vm
from codespace.domain.run_limits import RunLimits
from codespace.domain.sizes import MIB

NESTING_MAX = 400
NOTED_MAX = 8
"""More operations of one step are taken with pauses."""


class Driver:
    """One script under way.

    Attributes:
        gathered: what it has told.
        calls: what it has called.
        inbox: answers that it has not been given.
        steps: its engine.
    """

    def __init__(self, around: Surroundings, order: Order, *, timeout_ms: float) -> None:
        self.gathered = Gathered()
        self.inbox = Inbox()
        self.breather = Breather()
        self.calls = Calls(
            around.toolset,
            around.limits,
            inbox=self.inbox,
            breather=self.breather,
            dispatch=order.dispatch,
            pump=self._pump,
            over=self._ends,
            progress=order.progress,
        )
        self.steps = Steps(
            Vm(around.machine, memory_bytes=around.limits.memory_mib * MIB),
            around.limits,
            breather=self.breather,
            workers=around.workers,
            turn=around.turn,
            started_ms=order.started_ms,
            deadline=time.monotonic() + timeout_ms / 1000,
            on_step=order.on_step,
        )
        self._around = around
        self._order = order
        self._timeout_ms = timeout_ms
        self._expired = self._cancelled = self._waiting = False
        self._untaken: list[Operation] = []
        self._fault: Exception | None = None
        self._running_at_end: list[str] = []

    def cancel(self) -> None:
        """End the script as soon as it lets go of the engine."""
        self._cancelled = True
        self.steps.vm.interrupt()
        self.inbox.wake()

    async def drive(self, source: str) -> End:
        """Run the script to its end, and end its calls.

        Raises:
            CodeSpaceError: LIMIT_EXCEEDED: its input does not fit into its memory.
        """
        timer = asyncio.get_running_loop().call_later(self._timeout_ms / 1000, self._expire)
        try:
            await self._run(await self._opening(source))
        finally:
            timer.cancel()
            self._running_at_end = self.calls.running()
            with _shield():
                await self.calls.close()
            end = self._end()
            if not self.steps.abandoned:
                self.steps.vm.close()
        return end

    def _expire(self) -> None:
        self._expired = True
        self.inbox.wake()

    @property
    def _over(self) -> bool:
        return self._expired or self._cancelled or self.steps.exhausted

    def _ends(self) -> bool:
        steps = self.steps
        return (
            steps.vm.status is not Status.IDLE
            or self._expired
            or self._cancelled
            or steps.exhausted
        )

    async def _opening(self, source: str) -> list[Delivery]:
        order, toolset = self._order, self._around.toolset
        records = [
            protocol.start(order.seed, _vm_limits(self._around.limits)),
            *toolset.records,
            protocol.args_json(order.args),
            protocol.store(await self._around.store.read()),
            protocol.run(source),
        ]
        return [Delivery(0, b"".join(records))]

    async def _run(self, deliveries: list[Delivery]) -> None:
        await self._take(await self.steps.advance(deliveries))
        while self.steps.vm.status is Status.IDLE:
            self.calls.launch()
            await self._wait()
            await self._take(await self._next())

    async def _wait(self) -> None:
        while not (self._over or self._has_work):
            self._waiting = True
            try:
                await self.inbox.wait()
            finally:
                self._waiting = False
            self.breather.refresh()
        await self.breather.breathe()

    @property
    def _has_work(self) -> bool:
        return bool(
            self._untaken
            or self._fault
            or self.steps.under_way
            or self.inbox.items
            or self.steps.vm.status is not Status.IDLE
        )

    async def _next(self) -> list[Operation]:
        if self._fault is not None:
            raise self._fault
        if self._untaken or self.steps.vm.status is not Status.IDLE:
            operations, self._untaken = self._untaken, []
            return operations
        if self.steps.under_way:
            return await self.steps.advance_rest()
        if self._over:
            return await self._ended()
        return await self.steps.advance(self._answers())

    async def _ended(self) -> list[Operation]:
        if not self._cancelled:
            self.steps.stopped = Stop.RUN if self._expired else Stop.ENGINE
        return await self.steps.advance([Delivery(0, protocol.end())])

    def _answers(self) -> list[Delivery]:
        deliveries = self.inbox.take()
        for each in deliveries:
            if each.number < ASK_BASE:
                self.steps.move_clock()
                break
        return deliveries

    def _pump(self) -> None:
        """Give the script its answers from inside a call's task: it saves turns of the loop.

        Only while the run's own task waits; what does not end within a slice is left to that.
        """
        try:
            if self._waiting and not (self._over or self.breather.due):
                operations = self.steps.advance_at_once(self._answers())
                if operations:
                    self._note(operations)
        except Exception as error:  # noqa: BLE001 -- the run's own task raises it again
            self._fault = error
        if self._has_work:
            self.inbox.wake()

    def _note(self, operations: list[Operation]) -> None:
        if len(operations) > NOTED_MAX or any(isinstance(each, Ask) for each in operations):
            self._untaken = operations
            return
        for each in operations:
            if isinstance(each, Call):
                self.calls.add(each)
            else:
                self._take_one(each)

    async def _take(self, operations: list[Operation]) -> None:
        for each in operations:
            if not isinstance(each, Ask):
                self._take_one(each)
            elif not self._over:  # else nobody would hear the answer, and the answers can be many
                # A large schema takes half a second to tell, and a search tells of many tools.
                self.inbox.put(await asyncio.to_thread(self._answer, each))
            await self.breather.breathe()

    def _take_one(self, operation: Operation) -> None:
        if isinstance(operation, Call):
            self.calls.add(operation)
        else:
            self.gathered.add(operation)

    def _answer(self, ask: Ask) -> Delivery:
        from codespace.codemode.questions import answer  # noqa: PLC0415 -- most scripts ask nothing, and its import takes longer than a run

        try:
            found = answer(self._around.toolset.catalogue, ask.question, ask.arguments)
        except ToolError as error:
            record = protocol.reject(
                ask.ask_id,
                code=error.code,
                message=error.message,
                details=error.details,
                tool=ask.question.value,
            )
            return Delivery(ask.ask_id, record, ask.question.value)
        return Delivery(ask.ask_id, protocol.resolve(ask.ask_id, found), ask.question.value)

    def _end(self) -> End:
        vm = self.steps.vm
        return End(
            vm.status,
            failed=self.gathered.failed,
            lost=vm.lost,
            stopped=self.steps.stopped,
            cancelled=self._cancelled,
            running=self._running_at_end,
        )


def _shield() -> AbstractContextManager[object]:
    """Keep anyio's cancel scopes, where anybody uses anyio, from cutting the end of calls short."""
    if "anyio" not in sys.modules:
        return nullcontext()
    import anyio  # noqa: PLC0415 -- only where it is in use: its import costs more than a first run

    return anyio.CancelScope(shield=True)


def _vm_limits(limits: RunLimits) -> protocol.Limits:
    return protocol.Limits(
        arguments_bytes=limits.argument_bytes,
        value_bytes=limits.result_bytes,
        output_bytes=limits.written_bytes,
        calls=limits.max_calls,
        store_value_chars=limits.store_value_chars,
        store_total_chars=limits.store_total_chars,
        nesting=NESTING_MAX,
    )
