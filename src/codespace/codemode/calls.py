"""The calls of one run: queued, checked, sent out, answered, cancelled, and recorded."""

import asyncio
import logging
import sys
import time
from collections.abc import Callable, Coroutine
from typing import cast

from codespace.codemode.checking import LARGE_FOR_QUICK, is_large
from codespace.codemode.delivery import ready, ready_at_once
from codespace.codemode.inbox import Inbox
from codespace.codemode.json_values import as_object, as_object_or_none
from codespace.codemode.misfit import details_of
from codespace.codemode.outcome import CallRecord, CallState, Progress, RunProblem
from codespace.codemode.protocol import Call, reject
from codespace.codemode.schedule import Schedule
from codespace.codemode.slips import Slips, mistaken
from codespace.codemode.steps import Breather, Delivery
from codespace.codemode.tool import Arguments, Dispatch, Invocation, Tool, ToolError
from codespace.codemode.tool_bugs import internal
from codespace.codemode.toolset import Toolset
from codespace.domain.run_limits import RunLimits

log = logging.getLogger(__name__)

GRACE_SECONDS = 4.0
"""A call that was cancelled may take this long to end; after that its outcome is unknown. A command
that ignores the request to end is killed well within it."""
COMPLETION_SECONDS = 120.0
"""The same for a call that is not cancelled because it completes what it has begun."""


class _Live:
    # Defaults are the class's: an instance sets what differs, and there is one for each call.
    state: CallState = CallState.QUEUED
    code: str = ""
    message: str = ""
    started: float | None = None
    ended: float | None = None
    begun: bool = False
    """The tool has been called."""
    late: bool = False
    """It ended after the script."""

    def __init__(self, call: Call, tool: Tool) -> None:
        self.call, self.tool = call, tool


class Calls:
    """The calls of one run.

    Args:
        toolset: what can be called.
        limits: of the run.
        inbox: where answers go.
        breather: of the run.
        dispatch: the way that every call goes.
        pump: gives the script its answers at once.
        over: whether the script has ended, or is about to be: no call begins then.
        progress: told when a call begins and when it ends.

    Attributes:
        problems: results that broke their tool's output schema.
        slips: arguments that their tool does not declare.
    """

    def __init__(
        self,
        toolset: Toolset,
        limits: RunLimits,
        *,
        inbox: Inbox,
        breather: Breather,
        dispatch: Dispatch,
        pump: Callable[[], None],
        over: Callable[[], bool],
        progress: Callable[[Progress], None] | None = None,
    ) -> None:
        self.problems: list[RunProblem] = []
        self.slips = Slips()
        self._toolset = toolset
        self._limits = limits
        self._inbox = inbox
        self._dispatch = dispatch
        self._pump = pump
        self._over = over
        self._progress = progress
        self._schedule = Schedule(limits.concurrency)
        self._breather = breather
        self._origin = time.perf_counter()
        self._live: list[_Live] = []
        self._tasks: dict[int, asyncio.Task[None]] = {}
        self._finished = 0
        self._unbegun = self._between = 0
        self._closing = self._launching = False

    def add(self, call: Call) -> None:
        """Queue a call that the script has made."""
        live = _Live(call, self._toolset.tools[call.tool])
        self._live.append(live)
        key = live.tool.serialize and live.tool.serial_key(as_object(call.arguments))
        self._schedule.add(call.call_no, key)

    def launch(self) -> None:
        """Begin the calls that may begin."""
        if self._launching:  # a call that ends at once is inside the loop below
            return
        self._launching = True
        # A task between two calls keeps its place: it takes the next one, in call order.
        while self._schedule.running + self._between < self._limits.concurrency:
            call_no = self._next()
            if call_no is None:
                break
            self._unbegun += 1
            _begin(self._work(self._start(call_no)))
        self._launching = False

    def _next(self) -> int | None:
        return None if self._closing or self._over() else self._schedule.take()

    def _start(self, call_no: int) -> _Live:
        live = self._live[call_no - 1]
        live.state = CallState.RUNNING
        live.started = time.perf_counter()
        if self._progress is not None:
            self._tell(live)
        return live

    async def _work(self, live: _Live) -> None:
        # One task makes call after call: that is cheaper than a task for each.
        self._unbegun -= 1
        task = cast("asyncio.Task[None]", asyncio.current_task())
        while not self._closing:  # a task that begins after the run's end must make no call
            self._tasks[live.call.call_no] = task
            await self._perform(live)
            self._between += 1
            try:
                if self._schedule.quiet:
                    if self._breather.due:
                        await self._breather.breathe()
                    self._pump()
                else:
                    self._inbox.wake()
                    if self._unbegun:  # a task that was made for an earlier call goes first
                        await asyncio.sleep(0)
                    elif self._breather.due:
                        await self._breather.breathe()
            finally:
                self._between -= 1
            call_no = self._next()
            if call_no is None:
                break
            live = self._start(call_no)
            if self._schedule.waiting:
                self.launch()

    async def close(self) -> None:
        """Cancel what has not ended, and wait for what cannot be cancelled."""
        self._closing = True
        completing: list[asyncio.Task[None]] = []
        cancelled: list[asyncio.Task[None]] = []
        for call_no, task in self._tasks.items():
            live = self._live[call_no - 1]
            if live.tool.completes and live.begun:
                completing.append(task)
            else:
                task.cancel()
                cancelled.append(task)
        for tasks, seconds in ((cancelled, GRACE_SECONDS), (completing, COMPLETION_SECONDS)):
            if tasks:
                await asyncio.wait(tasks, timeout=seconds)
        for live in self._live:
            self._settle_rest(live)

    def running(self) -> list[str]:
        """Return the names of the tools whose calls run now."""
        return [each.tool.name for each in self._live if each.state is CallState.RUNNING]

    def records(self) -> tuple[CallRecord, ...]:
        """Return what is known of every call, in the order of the calls."""
        return tuple(self._record(live) for live in self._live)

    def _settle_rest(self, live: _Live) -> None:
        if live.state is CallState.QUEUED:
            live.state = CallState.CANCELLED
        elif live.state is CallState.RUNNING:
            task = self._tasks.get(live.call.call_no)
            # A task that was cancelled before its first step has run nothing at all.
            ended = task is None or task.done()
            live.state = CallState.CANCELLED if ended else CallState.UNKNOWN
        if live.state is CallState.CANCELLED and not live.begun:  # its tool knows nothing of it
            live.started = live.ended = None

    async def _perform(self, live: _Live) -> None:
        # The way of a small call whose values plainly fit has no further coroutine of ours in it.
        call, tool = live.call, live.tool
        try:
            arguments = self._fitting(call)
            if arguments is None:
                arguments = await self._checked(live)
            live.begun = True
            declared = self._toolset.declared[call.tool]
            if declared is not None and not declared.issuperset(arguments):
                self.slips.note(call.call_no, call.line, tool, arguments)
            options = as_object(call.options)
            invocation = Invocation(call.call_no, tool, arguments, options, call.line)
            result = await self._dispatch(invocation)
            record = ready_at_once(
                call.call_no,
                result,
                checker=self._toolset.output_checker(call.tool),
                most=self._limits.result_bytes,
            )
            if record is None:
                record = await self._ready(live, result)
            if tool.output_schema is None:
                self._toolset.catalogue.observe(tool, result)
            live.state = CallState.OK
            if not self._closing:
                self._inbox.put(Delivery(call.call_no, record, tool.name))
        except BaseException as error:  # noqa: BLE001 -- a tool's bug is an answer to the script
            self._fail(live, self._refusal(live, error))
        finally:
            self._end(live)

    def _fitting(self, call: Call) -> Arguments | None:
        arguments = as_object_or_none(call.arguments)
        if arguments is None or is_large(arguments, LARGE_FOR_QUICK):
            return None
        checker = self._toolset.input_checker(call.tool)
        fits = checker is None or checker.accepts(arguments)
        return cast("Arguments", arguments) if fits else None

    async def _checked(self, live: _Live) -> Arguments:
        arguments = as_object_or_none(live.call.arguments)
        if arguments is None:
            raise ToolError(
                "INVALID_ARGUMENT",
                f"{live.tool.name} takes one object as its argument.",
                {"path": "", "problems": [{"path": "", "problem": "must be object"}]},
            )
        checker = self._toolset.input_checker(live.call.tool)
        if checker is not None and not await checker.accepts_any(arguments):
            found = await checker.misfits(arguments)
            if found:
                misfits = mistaken(found, arguments, live.tool)
                message = f"{live.tool.name}: {misfits[0].sentence}."
                raise ToolError("INVALID_ARGUMENT", message, details_of(misfits))
        return cast("Arguments", arguments)

    async def _ready(self, live: _Live, result: object) -> bytes:
        record, misfit = await ready(
            live.call.call_no,
            result,
            checker=self._toolset.output_checker(live.call.tool),
            most=self._limits.result_bytes,
        )
        if misfit is not None:
            self.problems.append(_mismatch(live, misfit.sentence))
        return record

    def _refusal(self, live: _Live, error: BaseException) -> ToolError | None:
        if isinstance(error, ToolError):
            return error
        if isinstance(error, asyncio.CancelledError):
            if self._closing:
                return None
            return ToolError("CANCELLED", "The call was cancelled from outside.")
        if isinstance(error, KeyboardInterrupt | SystemExit | GeneratorExit):
            raise error  # the process's matter, or the loop's
        return internal(live.tool.name, error)

    def _fail(self, live: _Live, error: ToolError | None) -> None:
        if error is None:
            live.state = CallState.CANCELLED
            return
        live.state, live.code, live.message = CallState.FAILED, error.code, error.message
        self._deliver(Delivery(live.call.call_no, _rejection(live, error), live.tool.name))

    def _deliver(self, delivery: Delivery) -> None:
        if not self._closing:
            self._inbox.put(delivery)

    def _end(self, live: _Live) -> None:
        live.ended = time.perf_counter()
        self._finished += 1
        if self._closing:
            live.late = True
        else:
            self._tasks.pop(live.call.call_no, None)
        self._schedule.done(live.call.call_no)
        if self._progress is not None:
            self._tell(live)

    def _tell(self, live: _Live) -> None:
        if self._progress is None:
            return
        try:
            counts = (len(self._live), self._schedule.running, self._finished)
            self._progress(Progress(*counts, self._record(live)))
        except Exception:
            log.exception("progress failed")

    def _record(self, live: _Live) -> CallRecord:
        call = live.call
        return CallRecord(
            call.call_no,
            live.tool.name,
            call.line,
            call.column,
            live.state,
            live.code,
            live.message,
            live.late,
            self._since(live.started),
            self._since(live.ended),
        )

    def _since(self, moment: float | None) -> float | None:
        return None if moment is None else (moment - self._origin) * 1000


def _begin(work: Coroutine[object, object, None]) -> "asyncio.Task[None]":
    if sys.version_info >= (3, 12):
        # A tool that answers at once then costs no turn of the event loop.
        return asyncio.Task(work, loop=asyncio.get_running_loop(), eager_start=True)
    return asyncio.get_running_loop().create_task(work)


def _rejection(live: _Live, error: ToolError) -> bytes:
    given = {"code": error.code, "message": error.message, "tool": live.tool.name}
    try:
        return reject(live.call.call_no, details=error.details, **given)
    except (TypeError, ValueError, RecursionError):  # the details are no JSON value
        return reject(live.call.call_no, details=None, **given)


def _mismatch(live: _Live, sentence: str) -> RunProblem:
    return RunProblem(
        "SCHEMA_MISMATCH",
        f"The result does not match the output schema of {live.tool.name}: {sentence}.",
        call_no=live.call.call_no,
        tool=live.tool.name,
        line=live.call.line,
    )
