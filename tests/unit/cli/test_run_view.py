"""What a person sees of a script under way: counts and calls, drawn or as lines."""

import io
import os
import pty
from collections.abc import Iterator

import pytest
from rich.console import Console

from codespace.cli.run_view import ROWS, Drawn, Lines, Tally, view_of
from codespace.codemode import CallState, Progress
from codespace.codemode.outcome import CallRecord

CALL = CallRecord(1, "read", 3, 1, CallState.RUNNING, started_ms=1.0)
DONE = CALL._replace(state=CallState.OK, ended_ms=13.4)


def progress(record: CallRecord, total: int = 1, running: int = 0, finished: int = 1) -> Progress:
    return Progress(total, running, finished, record)


def drawn(view: Drawn) -> str:
    console = Console(file=io.StringIO(), width=80, color_system=None)
    with console.capture() as capture:
        console.print(view)
    return capture.get()


def test_the_counts_are_of_calls_queued_running_and_done() -> None:
    tally = Tally()
    assert tally.line().startswith("0 done, 0 running, 0 queued, ")
    tally.add(progress(CALL, 9, 4, 2))
    assert tally.line().startswith("2 done, 4 running, 3 queued, ")
    tally.add(progress(DONE._replace(state=CallState.FAILED, code="TIMEOUT"), 9, 3, 3))
    assert tally.line().startswith("3 done, 1 failed, 3 running, 3 queued, ")


def test_of_many_calls_the_newest_and_those_that_run_are_shown() -> None:
    tally = Tally()
    tally.add(progress(CALL))
    for number in range(2, 50):
        tally.add(progress(DONE._replace(call_no=number)))
    assert list(tally.recent) == [1, *range(51 - ROWS, 50)]


def test_calls_that_all_run_push_out_the_oldest() -> None:
    tally = Tally()
    for number in range(1, 20):
        tally.add(progress(CALL._replace(call_no=number)))
    assert list(tally.recent) == list(range(20 - ROWS, 20))


def test_lines_are_written_only_when_calls_have_ended() -> None:
    stream = io.StringIO()
    lines = Lines(stream)
    lines.refresh()
    lines.tell(progress(CALL, 2, 2, 0))
    lines.refresh()
    assert stream.getvalue() == ""
    lines.tell(progress(DONE, 2, 1, 1))
    lines.refresh()
    lines.refresh()
    assert stream.getvalue().startswith("codespace: calls: 1 done, 1 running, 0 queued, ")
    assert stream.getvalue().count("\n") == 1


@pytest.mark.parametrize(
    ("record", "said"),
    [
        (CALL, "▸ read line 3"),
        (DONE, "✓ read line 3 12 ms"),
        (DONE._replace(state=CallState.FAILED, code="TIMEOUT"), "✗ read line 3 TIMEOUT"),
        (DONE._replace(state=CallState.CANCELLED, line=0), "- read 12 ms"),
        (DONE._replace(state=CallState.UNKNOWN), "? read line 3 12 ms"),
        (CALL._replace(state=CallState.QUEUED), "· read line 3"),
    ],
)
def test_a_call_is_drawn_with_its_line_and_its_end(record: CallRecord, said: str) -> None:
    view = Drawn()
    view.tell(progress(record))
    assert " ".join(drawn(view).splitlines()[-1].split()) == said


def test_a_tools_name_is_drawn_as_it_is() -> None:
    view = Drawn()
    view.tell(progress(CALL._replace(tool="[red]x[/nonsense]")))
    assert "[red]x[/nonsense]" in drawn(view)


def test_a_stream_that_is_no_terminal_gets_lines_and_a_last_one() -> None:
    stream = io.StringIO()
    with view_of(stream) as view:
        assert isinstance(view, Lines)
        view.tell(progress(DONE, 5, 0, 5))
    assert "5 done" in stream.getvalue()


@pytest.fixture
def terminal(monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[int, int]]:
    for name in ("NO_COLOR", "FORCE_COLOR", "TTY_COMPATIBLE", "TTY_INTERACTIVE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("TERM", "xterm-256color")
    ours, theirs = pty.openpty()
    yield ours, theirs
    os.close(ours)


def test_a_terminal_is_drawn_on_and_a_summary_stays(terminal: tuple[int, int]) -> None:
    ours, theirs = terminal
    with os.fdopen(theirs, "w", encoding="utf-8") as stream:
        with view_of(stream) as view:
            assert isinstance(view, Drawn)
            view.tell(progress(DONE, 5, 0, 5))
            view.refresh()
        stream.flush()
        said = ""
        while "calls: " not in said:  # a terminal hands over what was written as it likes
            said += os.read(ours, 65536).decode()
    assert "✓" in said
    assert "calls: 5 done" in said.splitlines()[-1]
