"""The worker from inside: it answers each request for itself, and keeps to its one gateway."""

import io
import logging
import os
import socket
import subprocess
import sys
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

import anyio
import pytest

from codespace.domain.errors import CodeSpaceError, ErrorCode
from codespace.domain.ids import ProcessId
from codespace.domain.workspace import Root
from codespace.runner import worker
from codespace.runner.api import OutputChunk, ProcessState, StartRequest
from codespace.runner.channel import Channel
from codespace.runner.child import open_door
from codespace.runner.frames import ProtocolError
from codespace.runner.handshake import Invitation
from codespace.runner.link import Link
from codespace.runner.messages import (
    Close,
    Done,
    Read,
    Request,
    Resize,
    Status,
    Terminate,
    Write,
    request_json,
)
from codespace.runner.worker import Service, connect
from doubles.fake_runner import FakeRunner, unknown_process

pytestmark = pytest.mark.anyio

SECONDS = 20
PROCESS = ProcessId("proc-1")
START = StartRequest(PROCESS, Root("/", 1, 2), ("true",), {"A": "b"})


@asynccontextmanager
async def serving(runner: FakeRunner) -> AsyncGenerator[tuple[Link, Channel]]:
    here, there = socket.socketpair()
    ours, theirs = await Channel.over(here), await Channel.over(there)
    theirs.listen(Service(runner, theirs).take)
    with anyio.fail_after(SECONDS):
        yield Link(ours), ours
    ours.end()
    await theirs.lost.wait()


async def test_each_request_reaches_the_runner_as_it_was_asked() -> None:
    runner = FakeRunner(chunks=["hello"])
    async with serving(runner) as (link, _):
        await link.start(START)
        assert (await link.ask(Read(PROCESS, 1, 2, 3), OutputChunk)).text == "hello"
        assert (await link.ask(Status(PROCESS, 4), ProcessState)) == runner.state
        for request in (
            Write(PROCESS, b"\xff\0", close=True),
            Resize(PROCESS, 5, 6),
            Terminate(PROCESS),
            Close(),
        ):
            await link.ask(request, Done)
    assert runner.started == [START]
    assert runner.asked == [
        ("start",),
        ("read", PROCESS, 1, 2, 3),
        ("status", PROCESS, 4),
        ("write", PROCESS, b"\xff\0", True),
        ("resize", PROCESS, 5, 6),
        ("terminate", PROCESS),
        ("close",),
    ]


async def test_a_request_that_waits_holds_no_other_up() -> None:
    runner = FakeRunner(holds={"read": anyio.Event()})
    async with serving(runner) as (link, _), anyio.create_task_group() as tasks:
        tasks.start_soon(link.ask, Read(PROCESS, 0, 1, 30_000), OutputChunk)
        for _ in range(10):
            await link.ask(Status(PROCESS, 0), ProcessState)
        runner.holds["read"].set()


async def test_a_cancelled_request_is_cancelled_in_the_runner_too() -> None:
    cancelled = anyio.Event()

    class Waiting(FakeRunner):
        async def status(self, process_id: ProcessId, *, wait_ms: int = 0) -> ProcessState:
            try:
                await anyio.sleep_forever()
            finally:
                cancelled.set()
            raise AssertionError

    async with serving(Waiting()) as (link, _):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(link.ask, Status(PROCESS, 30_000), ProcessState)
            await link.ask(Terminate(PROCESS), Done)
            tasks.cancel_scope.cancel()
        await cancelled.wait()


async def test_a_start_that_is_cancelled_in_the_same_breath_is_answered() -> None:
    runner = FakeRunner(holds={"start": anyio.Event()})
    async with serving(runner) as (link, _):
        scope = anyio.CancelScope()
        async with anyio.create_task_group() as tasks:

            async def start() -> None:
                with scope:
                    await link.start(START)

            tasks.start_soon(start)
            tasks.start_soon(_cancel, scope)
        assert scope.cancelled_caught
    assert runner.started == []


async def _cancel(scope: anyio.CancelScope) -> None:
    scope.cancel()


async def test_refusals_and_faults_are_told_and_the_next_request_is_served(
    caplog: pytest.LogCaptureFixture,
) -> None:
    runner = FakeRunner(
        failures={"status": unknown_process(), "terminate": ValueError("with /a/secret")}
    )
    async with serving(runner) as (link, _):
        with pytest.raises(CodeSpaceError) as refused:
            await link.ask(Status(PROCESS, 0), ProcessState)
        with pytest.raises(CodeSpaceError) as failed:
            await link.ask(Terminate(PROCESS), Done)
        await link.ask(Close(), Done)
    assert refused.value.code is ErrorCode.PROCESS_NOT_FOUND
    assert failed.value.code is ErrorCode.INTERNAL
    assert "secret" not in failed.value.message
    assert "a request failed" in caplog.text


async def test_who_waits_for_the_end_is_answered_before_close_is() -> None:
    hold = anyio.Event()

    class Ending(FakeRunner):
        async def close(self) -> None:
            hold.set()

    order: list[str] = []
    async with (
        serving(Ending(holds={"status": hold})) as (link, _),
        anyio.create_task_group() as tasks,
    ):

        async def ask(request: Request, kind: type[ProcessState] | type[Done], name: str) -> None:
            await link.ask(request, kind)
            order.append(name)

        tasks.start_soon(ask, Status(PROCESS, 30_000), ProcessState, "status")
        await link.ask(Terminate(PROCESS), Done)
        tasks.start_soon(ask, Close(), Done, "close")
    assert order == ["status", "close"]


async def test_a_number_that_is_in_use_ends_the_connection() -> None:
    runner = FakeRunner(holds={"status": anyio.Event()})
    async with serving(runner) as (_, channel):
        for _ in range(2):
            await channel.send(request_json(1, Status(PROCESS, 1)))
        await channel.lost.wait()
    runner.holds["status"].set()


async def test_a_worker_does_not_talk_to_somebody_in_the_gateways_place() -> None:
    with open_door() as door:
        with pytest.raises(ProtocolError):
            connect(Invitation(door.directory, "word", os.getppid()))
        connect(Invitation(door.directory, "word", os.getpid())).close()
    with pytest.raises(OSError, match=r".*"):
        connect(Invitation(door.directory, "word", os.getpid()))


@pytest.mark.parametrize("handed", [b"", b"no invitation", b'{"directory": "/", "nonce": "x"}'])
def test_without_an_invitation_it_ends(handed: bytes) -> None:
    done = subprocess.run(
        [sys.executable, "-c", "from codespace.runner.worker import main; main()"],
        input=handed,
        capture_output=True,
        timeout=SECONDS,
        check=False,
    )
    assert done.returncode == 1
    assert b"ProtocolError" in done.stderr
    assert b"Traceback" not in done.stderr


def test_one_whose_gateway_is_gone_already_ends() -> None:
    invitation = Invitation("/nowhere", "word", 2**22 + 1)
    done = subprocess.run(
        [sys.executable, "-c", "from codespace.runner.worker import main; main()"],
        input=invitation.sealed(),
        capture_output=True,
        timeout=SECONDS,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, b"")


def test_its_log_repeats_nothing_of_a_clients() -> None:
    stream = io.StringIO()
    handler = logging.StreamHandler(stream)
    handler.setFormatter(worker._Terse())  # pyright: ignore[reportPrivateUsage] -- what stderr gets
    error = ValueError("the secret")
    for name in ("asyncio", "codespace.runner.worker"):
        record = logging.getLogger(name).makeRecord(
            name, logging.ERROR, "f.py", 1, "it failed", (), (ValueError, error, None)
        )
        handler.handle(record)
    foreign, own = stream.getvalue().splitlines()
    assert "secret" not in stream.getvalue()
    assert "it failed" not in foreign
    assert own.endswith("codespace.runner.worker it failed (ValueError)")
