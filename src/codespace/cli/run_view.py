"""What a person sees of a script under way, on stderr: drawn on a terminal, else plain lines."""

import time
from collections import Counter
from collections.abc import Generator
from contextlib import contextmanager
from typing import Protocol, TextIO

from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.spinner import Spinner
from rich.table import Table
from rich.text import Text

from codespace.codemode.outcome import CallRecord, CallState, Progress

ROWS = 8
"""Calls that are shown at once: the newest that run, and the last that ended."""
LINE_SECONDS = 2.0
"""Where nothing can be drawn, a line comes so often."""


class View(Protocol):
    """Told of calls, and asked now and then to show where things stand."""

    pause_seconds: float

    def tell(self, progress: Progress) -> None:
        """Take in that a call has begun or ended."""
        ...

    def refresh(self) -> None:
        """Show where things stand."""
        ...


@contextmanager
def view_of(stream: TextIO) -> Generator[View]:
    """Yield the view that suits `stream`."""
    console = Console(file=stream)
    if not console.is_terminal:
        lines = Lines(stream)
        yield lines
        lines.refresh()
        return
    drawn = Drawn()
    with Live(drawn, console=console, transient=True, auto_refresh=False) as live:
        drawn.show = live.refresh
        yield drawn
    console.print(drawn.summary())


class Tally:
    """How many calls are queued, running and done."""

    def __init__(self) -> None:
        self.started = time.monotonic()
        self.total = self.running = self.finished = 0
        self.failed: Counter[str] = Counter()
        self.recent: dict[int, CallRecord] = {}

    def add(self, progress: Progress) -> None:
        """Take in one change."""
        self.total, self.running = progress.total, progress.running
        self.finished = progress.finished
        record = progress.record
        if record.state is CallState.FAILED:
            self.failed[record.code] += 1
        self.recent.pop(record.call_no, None)
        self.recent[record.call_no] = record
        while len(self.recent) > ROWS:
            ended = (no for no, each in self.recent.items() if each.ended_ms is not None)
            del self.recent[next(ended, next(iter(self.recent)))]

    def line(self) -> str:
        """Return the counts and the time in one line."""
        queued = max(0, self.total - self.running - self.finished)
        failed = f", {self.failed.total()} failed" if self.failed else ""
        counts = f"{self.finished} done{failed}, {self.running} running, {queued} queued"
        return f"{counts}, {time.monotonic() - self.started:.1f} s"


class Lines:
    """Counts as plain lines, when they have changed."""

    pause_seconds = LINE_SECONDS

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream
        self._tally = Tally()
        self._told = 0

    def tell(self, progress: Progress) -> None:
        """Take in that a call has begun or ended."""
        self._tally.add(progress)

    def refresh(self) -> None:
        """Write a line if calls have ended since the last one."""
        if self._tally.finished != self._told:
            self._told = self._tally.finished
            print(f"codespace: calls: {self._tally.line()}", file=self._stream, flush=True)


class Drawn:
    """Counts and the latest calls, drawn in place."""

    pause_seconds = 0.1

    def __init__(self) -> None:
        self._tally = Tally()
        self._spinner = Spinner("dots")
        self.show = lambda: None

    def tell(self, progress: Progress) -> None:
        """Take in that a call has begun or ended."""
        self._tally.add(progress)

    def refresh(self) -> None:
        """Draw anew."""
        self.show()

    def summary(self) -> Text:
        """Return the line that stays."""
        return Text(f"calls: {self._tally.line()}", style="dim")

    def __rich__(self) -> RenderableType:
        self._spinner.update(text=Text(self._tally.line()))
        rows = Table.grid(padding=(0, 1))
        for record in self._tally.recent.values():
            rows.add_row(*_row(record))
        return Group(self._spinner, rows)


def _row(record: CallRecord) -> tuple[Text, Text, Text, Text]:
    mark, style = _MARKS.get(record.state, ("·", "dim"))
    took = ""
    if record.started_ms is not None and record.ended_ms is not None:
        took = f"{record.ended_ms - record.started_ms:.0f} ms"
    return (
        Text(mark, style=style),
        Text(record.tool),
        Text(f"line {record.line}" if record.line else "", style="dim"),
        Text(record.code or took, style=style),
    )


_MARKS = {
    CallState.RUNNING: ("▸", "cyan"),
    CallState.OK: ("✓", "green"),
    CallState.FAILED: ("✗", "red"),
    CallState.CANCELLED: ("-", "yellow"),
    CallState.UNKNOWN: ("?", "yellow"),
}
