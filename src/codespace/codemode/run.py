"""One run: its script read, driven, and told as an outcome."""

import time

from codespace.codemode.driver import Driver
from codespace.codemode.ending import Loose, problems, verdict
from codespace.codemode.gathered import IMAGES_MAX
from codespace.codemode.json_text import utf8
from codespace.codemode.orders import Order, Surroundings
from codespace.codemode.outcome import (
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
from codespace.codemode.source import Source, SourceError, read_source
from codespace.codemode.store import StoreFullError
from codespace.domain.errors import CodeSpaceError


class Run:
    """A run that can be executed, once, and cancelled meanwhile."""

    def __init__(self, around: Surroundings, order: Order) -> None:
        self._around = around
        self._order = order
        self._driver: Driver | None = None
        self._cancelled = False

    def cancel(self) -> None:
        """End the run; its outcome is then `cancelled`. Nothing happens after its end."""
        self._cancelled = True
        if self._driver is not None:
            self._driver.cancel()

    async def execute(self) -> Outcome:
        """Run the script. Whatever it does is in the outcome."""
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
        timeout_ms = min(self._order.timeout_ms, source.timeout_ms or self._order.timeout_ms)
        self._driver = Driver(self._around, self._order, timeout_ms=timeout_ms)
        await self._around.turn.begin()  # its VM may have taken a while to make
        try:
            end = await self._driver.drive(source.code)
        except CodeSpaceError as error:
            return self._refused(RunError(ErrorKind.LIMIT, "RangeError", error.message))
        told = verdict(end, self._around.limits, timeout_ms, source.code)
        return await self._outcome(self._driver, told, source, started)

    def _refused(self, error: RunError) -> Outcome:
        return Outcome(RunStatus.FAILED, error=error, run_id=self._order.run_id)

    async def _outcome(
        self,
        driver: Driver,
        told: tuple[RunStatus, RunError | None],
        source: Source,
        started: float,
    ) -> Outcome:
        gathered = driver.gathered
        status, error = await self._stored(driver, *told)
        output, truncation = await self._shown(driver, source)
        records = driver.calls.records()
        return Outcome(
            status,
            value=gathered.value,
            returned=gathered.returned and status is RunStatus.COMPLETED,
            output=tuple(output),
            calls=count(records),
            problems=problems(records, _loose(driver, error), _noted(driver)),
            error=error,
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

    async def _shown(self, driver: Driver, source: Source) -> tuple[list[Item], Truncation | None]:
        most = min(self._order.output_chars, source.max_output_chars or self._order.output_chars)
        items = joined(driver.gathered.output)
        total = total_chars(items)
        if total <= most:
            return items, None
        save = self._around.save_output
        path = None if save is None else await save(text_of(items))
        kept = cut(items, most, path=path)
        return kept, Truncation(total, kept_chars(total, most), path)


def _noted(driver: Driver) -> list[RunProblem]:
    left_out = driver.gathered.images_left_out
    if not left_out:
        return driver.calls.problems
    message = f"{left_out} images are left out: a run shows {IMAGES_MAX}, in all 4 MiB of base64."
    return [*driver.calls.problems, RunProblem("IMAGES_LEFT_OUT", message)]


def _loose(driver: Driver, error: RunError | None) -> Loose:
    failed = driver.gathered.failed
    return Loose(
        unhandled=driver.gathered.unhandled,
        undelivered=frozenset(each.number for each in driver.inbox.take()),
        more=driver.gathered.more,
        fatal=failed.call_no if failed is not None and error is not None else 0,
    )
