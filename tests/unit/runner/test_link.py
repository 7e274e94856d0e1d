"""The conversation with a worker: many requests at once, cancellation, and loss in its middle."""

import socket
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

import anyio
import pytest

from codespace.domain.errors import CodeSpaceError, ErrorCode
from codespace.domain.ids import ProcessId
from codespace.domain.workspace import Root
from codespace.runner.api import OutputChunk, ProcessState, RunnerLostError, StartRequest
from codespace.runner.channel import Channel
from codespace.runner.frames import FRAME_MAX_BYTES
from codespace.runner.link import Link, NotSentError
from codespace.runner.messages import (
    Answer,
    Cancel,
    Cancelled,
    Done,
    Json,
    Read,
    Request,
    Status,
    Terminate,
    Write,
    answer_json,
    request_of,
)

pytestmark = pytest.mark.anyio

SECONDS = 20
PROCESS = ProcessId("proc-1")
START = StartRequest(PROCESS, Root("/", 1, 2), ("true",))
READ = Read(PROCESS, 0, 10, 1_000)
GONE = ProcessState(running=False, output_total=0, output_retained_from=0, eof=True)


def chunk(text: str) -> OutputChunk:
    return OutputChunk(len(text), text, eof=False, output_lost=False, retained_from=0)


@dataclass(slots=True)
class Worker:
    """The other side, played by the test: it sees requests and answers what the test says."""

    channel: Channel
    asked: list[tuple[int, Request]] = field(default_factory=list[tuple[int, Request]])
    came: anyio.Event = field(default_factory=anyio.Event)

    def take(self, message: Json) -> None:
        self.asked.append(request_of(message))
        self.came.set()

    async def next(self) -> tuple[int, Request]:
        while not self.asked:
            self.came = anyio.Event()
            await self.came.wait()
        return self.asked.pop(0)

    async def answer(self, number: int, answer: Answer) -> None:
        await self.channel.send(answer_json(number, answer))


@asynccontextmanager
async def conversation() -> AsyncGenerator[tuple[Link, Worker]]:
    here, there = socket.socketpair()
    ours, theirs = await Channel.over(here), await Channel.over(there)
    link, worker = Link(ours), Worker(theirs)
    theirs.listen(worker.take)
    with anyio.fail_after(SECONDS):
        yield link, worker
    ours.end()
    await theirs.lost.wait()


async def test_answers_find_their_requests_in_whatever_order_they_come() -> None:
    got: dict[int, str] = {}
    async with conversation() as (link, worker), anyio.create_task_group() as tasks:

        async def ask(cursor: int) -> None:
            answer = await link.ask(Read(PROCESS, cursor, 10, 0), OutputChunk)
            got[cursor] = answer.text

        for cursor in range(5):
            tasks.start_soon(ask, cursor)
        requests = [await worker.next() for _ in range(5)]
        for number, request in reversed(requests):
            assert isinstance(request, Read)
            await worker.answer(number, chunk(f"from {request.cursor}"))
    assert got == {cursor: f"from {cursor}" for cursor in range(5)}


async def test_a_refusal_is_raised_as_it_is() -> None:
    refusal = CodeSpaceError(ErrorCode.TIMEOUT, "Send the rest.", details={"written": 3})
    async with conversation() as (link, worker), anyio.create_task_group() as tasks:

        async def ask() -> None:
            with pytest.raises(CodeSpaceError) as caught:
                await link.ask(Write(PROCESS, b"abcdef", close=False), Done)
            assert caught.value.body() == refusal.body()

        tasks.start_soon(ask)
        number, _ = await worker.next()
        await worker.answer(number, refusal)


async def test_a_cancelled_wait_is_told_to_the_worker_and_its_late_answer_is_nobodys() -> None:
    async with conversation() as (link, worker):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(link.ask, READ, OutputChunk)
            await worker.came.wait()
            tasks.cancel_scope.cancel()
        number, _ = await worker.next()
        assert await worker.next() == (number, Cancel())
        await worker.answer(number, chunk("late"))
        async with anyio.create_task_group() as tasks:

            async def ask() -> None:
                assert (await link.ask(READ, OutputChunk)).text == "mine"

            tasks.start_soon(ask)
            another, _ = await worker.next()
            assert another != number
            await worker.answer(another, chunk("mine"))


async def test_a_cancelled_start_returns_when_the_worker_says_that_nothing_is_left() -> None:
    returned = anyio.Event()
    async with conversation() as (link, worker), anyio.create_task_group() as outer:
        scope = anyio.CancelScope()

        async def start() -> None:
            with scope:
                await link.start(START)
            assert scope.cancelled_caught
            returned.set()

        outer.start_soon(start)
        number, _ = await worker.next()
        scope.cancel()
        assert await worker.next() == (number, Cancel())
        assert not returned.is_set()
        await worker.answer(number, Cancelled())
        await returned.wait()


async def test_a_start_that_was_cancelled_too_late_is_undone() -> None:
    returned = anyio.Event()
    async with conversation() as (link, worker), anyio.create_task_group() as outer:
        scope = anyio.CancelScope()

        async def start() -> None:
            with scope:
                await link.start(START)
            returned.set()

        outer.start_soon(start)
        number, _ = await worker.next()
        scope.cancel()
        assert await worker.next() == (number, Cancel())
        await worker.answer(number, Done())
        number, request = await worker.next()
        assert request == Terminate(PROCESS)
        await worker.answer(number, Done())
        for state in (
            ProcessState(running=True, output_total=0, output_retained_from=0, eof=False),
            GONE,
        ):
            number, request = await worker.next()
            assert isinstance(request, Status)
            assert not returned.is_set()
            await worker.answer(number, state)
        await returned.wait()


async def test_what_was_asked_is_lost_and_what_is_asked_afterwards_was_not_sent() -> None:
    async with conversation() as (link, worker):
        async with anyio.create_task_group() as tasks:

            async def ask() -> None:
                with pytest.raises(RunnerLostError) as caught:
                    await link.start(START)
                assert not isinstance(caught.value, NotSentError)

            tasks.start_soon(ask)
            await worker.next()
            link.fail()
        with pytest.raises(NotSentError):
            await link.start(START)
        with pytest.raises(NotSentError):
            await link.ask(READ, OutputChunk)


async def test_an_answer_of_another_kind_ends_the_conversation() -> None:
    async with conversation() as (link, worker), anyio.create_task_group() as tasks:

        async def ask() -> None:
            with pytest.raises(RunnerLostError):
                await link.ask(READ, OutputChunk)

        tasks.start_soon(ask)
        number, _ = await worker.next()
        await worker.answer(number, GONE)
        await worker.channel.lost.wait()


async def test_what_does_not_fit_into_a_frame_is_refused_and_nothing_else_happens() -> None:
    async with conversation() as (link, worker):
        with pytest.raises(CodeSpaceError) as caught:
            await link.ask(Write(PROCESS, bytes(FRAME_MAX_BYTES), close=False), Done)
        assert caught.value.code is ErrorCode.LIMIT_EXCEEDED
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(link.ask, READ, OutputChunk)
            number, _ = await worker.next()
            await worker.answer(number, chunk(""))
