"""One run: its script read, driven, and told as an outcome."""

import time
from collections.abc import Sequence

from codespace.codemode.driver import Driver
from codespace.codemode.effects import remaining
from codespace.codemode.ending import Loose, explained_by_calls, problems, verdict
from codespace.codemode.gathered import IMAGES_MAX
from codespace.codemode.json_text import utf8
from codespace.codemode.orders import Order, Surroundings
from codespace.codemode.outcome import (
    CallRecord,
    ErrorKind,
    Item,
    Outcome,
    RunError,
    RunProblem,
    RunStatus,
    Truncation,
    count,
)
from codespace.codemode.output import cut, joined, kept_chars, text_of, total_chars
from codespace.codemode.source import SourceError, read_source
from codespace.codemode.store import StoreFullError
from codespace.domain.errors import CodeSpaceError


class Run:
    """A run that can be executed, once, and cancelled meanwhile."""

    def __init__(self, around: Surroundings, order: Order) -> None:
        self._around = around
        self._order = order
        self._driver: Driver | None = None
        self._output_chars = order.output_chars
        self._executed = self._cancelled = False

    def cancel(self) -> None:
        """End the run; its outcome is then `cancelled`. Nothing happens after its end."""
        self._cancelled = True
        if self._driver is not None:
            self._driver.cancel()

    def so_far(self) -> Outcome:
        """Return what a run that has not ended has printed, and the engine time that it took."""
        if self._driver is None:
            return Outcome(RunStatus.RUNNING, run_id=self._order.run_id)
        items, total = _written(self._driver)
        over = total > self._output_chars
        return Outcome(
            RunStatus.RUNNING,
            output=tuple(cut(items, self._output_chars)),
            truncated=self._truncation(total) if over else None,
            engine_ms=self._driver.steps.engine_seconds * 1000,
            run_id=self._order.run_id,
        )

    async def execute(self) -> Outcome:
        """Run the script. Whatever it does is in the outcome.

        Raises:
            RuntimeError: it was executed before.
        """
        if self._executed:
            raise RuntimeError("a run can be executed once; prepare another one")
        self._executed = True
        await self._around.turn.begin()
        started = time.perf_counter()
        code = self._order.code
        most = self._around.limits.code_bytes
        if len(code) > most or len(utf8(code)) > most:
            message = f"The code is larger than {most} bytes, the limit (code_bytes)."
            return self._refused(RunError(ErrorKind.LIMIT, "RangeError", message))
        try:
            source = read_source(code)
        except SourceError as error:
            return self._refused(RunError(ErrorKind.SCRIPT, "SyntaxError", str(error), error.line))
        if self._cancelled:
            return Outcome(RunStatus.CANCELLED, run_id=self._order.run_id)
        self._output_chars = min(self._output_chars, source.max_output_chars or self._output_chars)
        timeout_ms = min(self._order.timeout_ms, source.timeout_ms or self._order.timeout_ms)
        self._driver = Driver(self._around, self._order, timeout_ms=timeout_ms)
        await self._around.turn.begin()  # its VM may have taken a while to make
        try:
            end = await self._driver.drive(source.code)
        except CodeSpaceError as error:
            return self._refused(RunError(ErrorKind.LIMIT, "RangeError", error.message))
        told = verdict(end, self._around.limits, timeout_ms, source.code)
        return await self._outcome(self._driver, told, started)

    def _refused(self, error: RunError) -> Outcome:
        return Outcome(RunStatus.FAILED, error=error, run_id=self._order.run_id)

    async def _outcome(
        self,
        driver: Driver,
        told: tuple[RunStatus, RunError | None],
        started: float,
    ) -> Outcome:
        gathered = driver.gathered
        status, error = await self._stored(driver, *told)
        output, truncation = await self._shown(driver)
        records = driver.calls.records()
        return Outcome(
            status,
            value=gathered.value,
            returned=gathered.returned and status is RunStatus.COMPLETED,
            output=tuple(output),
            calls=count(records),
            problems=(
                *problems(records, _loose(driver, error), _noted(driver, records)),
                *remaining(status, records, self._around.toolset.tools),
            ),
            error=explained_by_calls(error, records),
            truncated=truncation,
            store=tuple(gathered.stored) if status is RunStatus.COMPLETED else (),
            wall_ms=(time.perf_counter() - started) * 1000,
            engine_ms=driver.steps.engine_seconds * 1000,
            run_id=self._order.run_id,
            records=records,
        )

    async def _stored(
        self, driver: Driver, status: RunStatus, error: RunError | None
    ) -> tuple[RunStatus, RunError | None]:
        changes = driver.gathered.stored
        if status is not RunStatus.COMPLETED or not changes:
            return status, error
        limits = self._around.limits
        merged = {**await self._around.store.read(), **changes}
        keys = sum(text is not None for text in merged.values())
        if keys > limits.store_keys:
            message = (
                f"The store would hold {keys} keys, more than {limits.store_keys} (store_keys);"
                " nothing of this run was stored. Keep objects under fewer keys."
            )
            return RunStatus.FAILED, RunError(ErrorKind.LIMIT, "RangeError", message)
        most = limits.store_total_chars
        try:
            await self._around.store.write(changes, most_chars=most)
        except StoreFullError:
            message = (
                f"The store would hold more than {most} characters of JSON with what other runs"
                " wrote meanwhile (store_total_chars); nothing of this run was stored."
            )
            return RunStatus.FAILED, RunError(ErrorKind.LIMIT, "RangeError", message)
        return status, error

    async def _shown(self, driver: Driver) -> tuple[list[Item], Truncation | None]:
        items, total = _written(driver)
        if total <= self._output_chars:
            return items, None
        save = self._around.save_output
        path = None if save is None else await save(text_of(items))
        return cut(items, self._output_chars, path=path), self._truncation(total, path)

    def _truncation(self, total: int, path: str | None = None) -> Truncation:
        return Truncation(total, kept_chars(total, self._output_chars), path)


def _written(driver: Driver) -> tuple[list[Item], int]:
    items = joined(driver.gathered.output)
    return items, total_chars(items)


def _noted(driver: Driver, records: Sequence[CallRecord]) -> list[RunProblem]:
    noted = [*driver.calls.problems, *driver.calls.slips.problems(records)]
    left_out = driver.gathered.images_left_out
    if not left_out:
        return noted
    message = f"{left_out} images are left out: a run shows {IMAGES_MAX}, in all 4 MiB of base64."
    return [*noted, RunProblem("IMAGES_LEFT_OUT", message)]


def _loose(driver: Driver, error: RunError | None) -> Loose:
    failed = driver.gathered.failed
    return Loose(
        unhandled=driver.gathered.unhandled,
        undelivered=frozenset(each.number for each in driver.inbox.take()),
        more=driver.gathered.more,
        fatal=failed.call_no if failed is not None and error is not None else 0,
    )
