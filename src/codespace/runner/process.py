"""One managed process: what is known of it, who waits for news of it, and why it ends.

Everything happens on the event loop's thread, in callbacks and callers; there are no tasks.
"""

import asyncio
from collections.abc import Callable

import anyio

from codespace.domain.errors import CodeSpaceError, ErrorCode
from codespace.domain.limits import Limits
from codespace.runner.api import OutputChunk, ProcessState, StartRequest, Termination
from codespace.runner.output import OutputWindow
from codespace.runner.pump import OutputPump
from codespace.runner.spawn import Spawned
from codespace.runner.stdin import StandardInput
from codespace.runner.terminal import set_size
from codespace.runner.tree import OnEnd, Tree


class ManagedProcess:
    """A command from its spawn to the last look at its output."""

    def __init__(
        self,
        request: StartRequest,
        spawned: Spawned,
        own: Callable[[Spawned, OnEnd], Tree],
        *,
        limits: Limits,
        on_end: Callable[[], None],
    ) -> None:
        self._loop = asyncio.get_running_loop()
        self._request = request
        self._limits = limits
        self._on_end = on_end
        self._changed = _Change()
        self._window = OutputWindow(limits.output_kept_bytes, paced=request.paced)
        self._stdin = StandardInput(spawned.stdin, terminal=request.tty, limits=limits)
        self._tree = own(spawned, self._on_tree_end)
        self._pump = OutputPump(spawned.output, self._window, self._changed.notify)
        self._timers: list[asyncio.TimerHandle] = []
        self._intent: Termination | None = None
        self._status: int | None = None
        self._begun = False
        self._running = True

    @property
    def running(self) -> bool:
        """Whether any process of the subtree may live."""
        return self._running

    async def begin(self) -> None:
        """Return once the command runs; its time limit counts from then.

        Raises:
            CodeSpaceError: as `Tree.begin`; PROCESS_SPAWN_FAILED also when it takes too long.
        """
        try:
            with anyio.fail_after(self._limits.process_start_ms / 1_000):
                await self._tree.begin()
        except TimeoutError as error:
            raise self._too_slow() from error
        except CodeSpaceError as error:
            if self._intent is None:
                raise
            raise CodeSpaceError(
                ErrorCode.PROCESS_SPAWN_FAILED, "The command was ended before it ran."
            ) from error
        self._begun = True
        if self._running:
            self._pump.start()
            self._after(self._request.time_limit_ms, lambda: self.stop("timeout"))
        else:
            self._pump.finish()

    def stop(self, intent: Termination) -> None:
        """Ask the subtree to end, and end it after the grace period. The first intent stays."""
        if not self._running or self._intent is not None:
            return
        self._intent = intent
        if self._begun:
            self._tree.ask_to_end()
            self._after(self._limits.terminate_grace_ms, self._tree.kill)
        else:
            self._tree.kill()

    def kill(self) -> None:
        """End the subtree at once."""
        self._intent = self._intent or "terminated"
        self._tree.kill()

    async def wait_ended(self) -> None:
        """Return when no process of the subtree is left."""
        while self._running:
            await self._changed.wait()

    async def read(self, cursor: int, *, max_bytes: int, wait_ms: int) -> OutputChunk:
        """Return output from `cursor` on; wait for something new or the end."""
        self._window.ask(cursor)
        self._pump.start()
        with anyio.move_on_after(wait_ms / 1_000):
            while True:
                chunk = self._window.read(cursor, max_bytes, exited=not self._running)
                if wait_ms <= 0 or chunk.text or chunk.eof:
                    return chunk
                await self._changed.wait()
        return self._window.read(cursor, max_bytes, exited=not self._running)

    async def state(self, *, wait_ms: int) -> ProcessState:
        """Return the state; wait for the end."""
        if wait_ms > 0:
            with anyio.move_on_after(wait_ms / 1_000):
                await self.wait_ended()
        window = self._window
        if self._running:
            return ProcessState(
                running=True,
                output_total=window.total,
                output_retained_from=window.retained_from,
                eof=False,
            )
        termination = self._intent or ("unknown" if self._status is None else "exited")
        status = self._status if termination == "exited" else None
        return ProcessState(
            running=False,
            output_total=window.total,
            output_retained_from=window.retained_from,
            eof=window.ended,
            termination=termination,
            exit_code=status if status is not None and status >= 0 else None,
            signal=-status if status is not None and status < 0 else None,
        )

    async def write(self, data: bytes, *, close: bool) -> None:
        """Write to standard input, as `StandardInput.write`."""
        await self._stdin.write(data, close=close)

    def resize(self, rows: int, columns: int) -> None:
        """Set the size of the terminal.

        Raises:
            CodeSpaceError: NOT_A_TTY, PROCESS_EXITED.
        """
        if not self._request.tty:
            raise CodeSpaceError(
                ErrorCode.NOT_A_TTY, "The process has no terminal; start it with tty to resize it."
            )
        terminal = self._pump.descriptor
        if terminal is None or not self._running:
            raise CodeSpaceError(ErrorCode.PROCESS_EXITED, "The process has ended.")
        set_size(terminal, rows, columns)

    def forget(self) -> None:
        """Let go of what an ended process still holds."""
        self._pump.close()

    def _too_slow(self) -> CodeSpaceError:
        return CodeSpaceError(
            ErrorCode.PROCESS_SPAWN_FAILED,
            f"The command did not start within {self._limits.process_start_ms / 1_000:g} seconds"
            " and was given up; try again, or the operator can run `codespace doctor`.",
        )

    def _after(self, milliseconds: int, act: Callable[[], None]) -> None:
        self._timers.append(self._loop.call_later(milliseconds / 1_000, act))

    def _on_tree_end(self, status: int | None) -> None:
        for timer in self._timers:
            timer.cancel()
        self._status = status
        self._running = False
        self._stdin.shut()
        if self._begun:
            self._pump.finish()
        self._changed.notify()
        self._on_end()


class _Change:
    """Wakes all who wait for news. Costs nothing while nobody does."""

    def __init__(self) -> None:
        self._event: anyio.Event | None = None

    def notify(self) -> None:
        event, self._event = self._event, None
        if event is not None:
            event.set()

    async def wait(self) -> None:
        if self._event is None:
            self._event = anyio.Event()
        await self._event.wait()
