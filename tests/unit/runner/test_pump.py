"""The pump between a descriptor and the window: never blocks, stops when full, ends once."""

import os

import anyio
import pytest

from codespace.runner.output import OutputWindow
from codespace.runner.pump import OutputPump, enlarge

pytestmark = pytest.mark.anyio


class Pipe:
    def __init__(self, window: OutputWindow) -> None:
        reader, self.writer = os.pipe()
        self.window = window
        self.changes = 0
        self.pump = OutputPump(reader, window, self._count)

    def _count(self) -> None:
        self.changes += 1

    async def until(self, total: int) -> None:
        with anyio.fail_after(10):
            while self.window.total < total:
                await anyio.sleep(0.001)

    async def until_ended(self) -> None:
        with anyio.fail_after(10):
            while not self.window.ended:
                await anyio.sleep(0.001)


async def test_what_is_written_is_fed_and_announced():
    pipe = Pipe(OutputWindow(100))
    pipe.pump.start()
    os.write(pipe.writer, b"hello")
    await pipe.until(5)
    assert pipe.window.read(0, 10, exited=False).text == "hello"
    assert pipe.changes == 1
    os.close(pipe.writer)
    await pipe.until_ended()
    assert pipe.pump.descriptor is None
    assert pipe.changes == 2


async def test_nothing_is_read_before_the_start():
    pipe = Pipe(OutputWindow(100))
    os.write(pipe.writer, b"hello")
    await anyio.wait_all_tasks_blocked()
    assert pipe.window.total == 0
    pipe.pump.close()
    os.close(pipe.writer)


async def test_a_full_paced_window_stops_the_reading_until_it_is_asked_past():
    pipe = Pipe(OutputWindow(10, paced=True))
    pipe.pump.start()
    os.write(pipe.writer, b"0123456789abcdefghij!")
    await pipe.until(10)
    pipe.pump.start()
    await anyio.wait_all_tasks_blocked()
    assert pipe.window.total == 10
    pipe.window.ask(10)
    pipe.pump.start()
    await pipe.until(20)
    pipe.window.ask(15)
    pipe.pump.start()
    await pipe.until(21)
    os.close(pipe.writer)
    await pipe.until_ended()


async def test_finishing_takes_all_that_is_there_at_once():
    pipe = Pipe(OutputWindow(1 << 20))
    os.write(pipe.writer, b"x" * 60_000)
    os.close(pipe.writer)
    pipe.pump.finish()
    assert (pipe.window.total, pipe.window.ended) == (60_000, True)


async def test_finishing_gives_up_on_a_descriptor_that_stays_open(
    monkeypatch: pytest.MonkeyPatch,
):
    monkeypatch.setattr("codespace.runner.pump._DRAIN_SECONDS", 0.01)
    pipe = Pipe(OutputWindow(100))
    os.write(pipe.writer, b"x")
    pipe.pump.finish()
    assert (pipe.window.total, pipe.window.ended) == (1, False)
    await pipe.until_ended()
    os.close(pipe.writer)


async def test_a_full_paced_window_is_not_given_up(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("codespace.runner.pump._DRAIN_SECONDS", 0.01)
    pipe = Pipe(OutputWindow(4, paced=True))
    os.write(pipe.writer, b"12345678")
    os.close(pipe.writer)
    pipe.pump.finish()
    await anyio.sleep(0.05)  # longer than the time in which an open descriptor is given up
    assert (pipe.window.total, pipe.window.ended) == (4, False)
    pipe.window.ask(4)
    pipe.pump.start()
    await pipe.until(8)
    pipe.window.ask(8)
    pipe.pump.start()
    await pipe.until_ended()


async def test_closing_twice_is_one_end():
    pipe = Pipe(OutputWindow(100))
    pipe.pump.close()
    pipe.pump.close()
    pipe.pump.start()
    pipe.pump.finish()
    assert pipe.changes == 1
    os.close(pipe.writer)


async def test_the_end_of_a_terminal_is_an_end_and_no_error():
    ours, theirs = os.openpty()
    window = OutputWindow(100)
    pump = OutputPump(ours, window, lambda: None)
    os.write(theirs, b"last\n")
    os.close(theirs)
    pump.start()
    with anyio.fail_after(10):
        while not window.ended:
            await anyio.sleep(0.001)
    assert window.read(0, 100, exited=True).text == "last\r\n"


def test_what_is_no_pipe_is_not_enlarged(tmp_path_factory: pytest.TempPathFactory):
    with (tmp_path_factory.mktemp("pump") / "file").open("wb") as file:
        enlarge(file.fileno())
