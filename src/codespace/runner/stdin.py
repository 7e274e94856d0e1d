"""Writes to a process's standard input: one writer at a time, bounded in size and in time."""

import asyncio
import os

import anyio

from codespace.domain.errors import CodeSpaceError, ErrorCode
from codespace.domain.limits import Limits
from codespace.runner.terminal import TypedLine, end_of_file, is_canonical


class StandardInput:
    """The gateway's side of a command's standard input.

    `descriptor` is owned from now on; `None` means that the command has no input to write to.
    """

    def __init__(self, descriptor: int | None, *, terminal: bool, limits: Limits) -> None:
        self._loop = asyncio.get_running_loop()
        self._descriptor = descriptor
        self._terminal = terminal
        self._limits = limits
        self._line = TypedLine()
        self._turn = anyio.Lock()
        self._wake: anyio.Event | None = None
        self._closed_by_client = False
        self._ended = False
        if descriptor is not None:
            os.set_blocking(descriptor, False)

    async def write(self, data: bytes, *, close: bool) -> None:
        """Write all of `data`, then close if asked to. Other writers wait their turn.

        Raises:
            CodeSpaceError: TIMEOUT with `written`; PROCESS_EXITED after the end or when closed;
                LIMIT_EXCEEDED for more than one call may bring, or a line that a terminal would
                cut.
        """
        self._check_size(data)
        writing = _Progress(data)
        with anyio.move_on_after(self._limits.stdin_timeout_ms / 1_000) as patience:
            async with self._turn:
                await self._write_in_turn(writing, close=close)
        if patience.cancelled_caught:
            raise CodeSpaceError(
                ErrorCode.TIMEOUT,
                f"The process took {writing.written} of {len(data)} bytes in time;"
                " read its output, then send the rest.",
                details={"written": writing.written, "limit": "stdin_timeout_ms"},
            )

    def shut(self) -> None:
        """Close because the process ended; whoever still writes is told so."""
        self._ended = True
        self._close()

    async def _write_in_turn(self, writing: "_Progress", *, close: bool) -> None:
        descriptor = self._open_descriptor(writing)
        if self._terminal:
            self._check_line(descriptor, writing.left)
        while writing.left:
            self._write_some(self._open_descriptor(writing), writing)
            if writing.left:
                await self._writable(self._open_descriptor(writing))
        if close:
            await self._close_for_client(writing)

    def _write_some(self, descriptor: int, writing: "_Progress") -> None:
        try:
            count = os.write(descriptor, writing.left)
        except BlockingIOError:
            return
        except OSError as error:
            self._close()
            raise self._refusal(writing) from error
        if self._terminal:
            self._line.add(bytes(writing.left[:count]))
        writing.advance(count)

    async def _close_for_client(self, writing: "_Progress") -> None:
        if self._terminal:
            # Closing our side would hang up the whole session. ^D ends a started line first.
            descriptor = self._open_descriptor(writing)
            ending = _Progress(end_of_file(descriptor) * (2 if self._line.length else 1))
            while ending.left:
                self._write_some(self._open_descriptor(writing), ending)
                if ending.left:
                    await self._writable(self._open_descriptor(writing))
        else:
            self._close()
        self._closed_by_client = True

    async def _writable(self, descriptor: int) -> None:
        wake = self._wake = anyio.Event()
        self._loop.add_writer(descriptor, wake.set)
        try:
            await wake.wait()
        finally:
            self._wake = None
            if self._descriptor is not None:
                self._loop.remove_writer(descriptor)

    def _close(self) -> None:
        if self._descriptor is None:
            return
        descriptor, self._descriptor = self._descriptor, None
        if self._wake is not None:
            self._loop.remove_writer(descriptor)
            self._wake.set()
        os.close(descriptor)

    def _open_descriptor(self, writing: "_Progress") -> int:
        if self._descriptor is None or self._closed_by_client:
            raise self._refusal(writing)
        return self._descriptor

    def _check_size(self, data: bytes) -> None:
        if len(data) > self._limits.stdin_max_bytes:
            raise CodeSpaceError(
                ErrorCode.LIMIT_EXCEEDED,
                f"One call writes at most {self._limits.stdin_max_bytes} bytes; send it in pieces.",
                details={"limit": "stdin_max_bytes", "maximum": self._limits.stdin_max_bytes},
            )

    def _check_line(self, descriptor: int, data: memoryview) -> None:
        if not is_canonical(descriptor):
            self._line = TypedLine()
            return
        if self._line.longest_with(bytes(data)) > self._limits.tty_line_max_bytes:
            raise CodeSpaceError(
                ErrorCode.LIMIT_EXCEEDED,
                f"A terminal cuts a line after {self._limits.tty_line_max_bytes} bytes;"
                " send shorter lines, or run the command without tty.",
                details={"limit": "tty_line_max_bytes", "maximum": self._limits.tty_line_max_bytes},
            )

    def _refusal(self, writing: "_Progress") -> CodeSpaceError:
        what = "The process has ended" if self._ended else "The process's standard input is closed"
        return CodeSpaceError(
            ErrorCode.PROCESS_EXITED,
            f"{what}; it takes no more input.",
            details={"written": writing.written},
        )


class _Progress:
    """What one write has still to bring."""

    def __init__(self, data: bytes) -> None:
        self.left = memoryview(data)
        self.written = 0

    def advance(self, count: int) -> None:
        self.left = self.left[count:]
        self.written += count
