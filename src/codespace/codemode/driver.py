"""Drives one script from its first step to its end: steps, calls, questions, and time."""

import asyncio
import time

import anyio

from codespace.codemode import protocol
from codespace.codemode.calls import Calls
from codespace.codemode.ending import End
from codespace.codemode.gathered import Gathered
from codespace.codemode.inbox import Inbox
from codespace.codemode.limits import RunLimits
from codespace.codemode.orders import Order, Surroundings
from codespace.codemode.protocol import ASK_BASE, Ask, Call, Operation, Status
from codespace.codemode.questions import answer
from codespace.codemode.steps import Delivery, Steps, Stop
from codespace.codemode.tool import ToolError
from codespace.codemode.vm import Vm
from codespace.domain.limits import MIB

NESTING_MAX = 400


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
        self.calls = Calls(
            around.toolset,
            around.limits,
            inbox=self.inbox,
            dispatch=order.dispatch,
            progress=order.progress,
        )
        self.steps = Steps(
            Vm(around.machine, memory_bytes=around.limits.memory_mib * MIB),
            around.limits,
            pool=around.pool,
            started_ms=order.started_ms,
            deadline=time.monotonic() + timeout_ms / 1000,
            on_step=order.on_step,
        )
        self._around = around
        self._order = order
        self._timeout_ms = timeout_ms
        self._expired = self._cancelled = False
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
            with anyio.CancelScope(shield=True):
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
        steps = self.steps
        while True:
            await self._take(await steps.advance(deliveries))
            if steps.vm.status is not Status.IDLE:
                return
            self.calls.launch()
            if not await self._more():
                break
            deliveries = self.inbox.take()
            if any(each.number < ASK_BASE for each in deliveries):
                steps.move_clock()
        if not self._cancelled:
            steps.stopped = Stop.RUN if self._expired else Stop.ENGINE
        await self._take(await steps.advance([Delivery(0, protocol.end())]))

    async def _more(self) -> bool:
        # Whether there is an answer for the script; it ends when there will be none in time.
        while not self._over and not len(self.inbox):
            await self.inbox.wait()
            self.steps.breather.refresh()
        await self.steps.breather.breathe()
        return not self._over

    async def _take(self, operations: list[Operation]) -> None:
        for each in operations:
            if isinstance(each, Call):
                self.calls.add(each)
            elif isinstance(each, Ask):
                self.inbox.put(self._answer(each))
            else:
                self.gathered.add(each)
            await self.steps.breather.breathe()

    def _answer(self, ask: Ask) -> Delivery:
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
