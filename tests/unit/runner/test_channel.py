"""The channel: messages, room, and the end at the first thing that is none."""

import asyncio
import logging
import socket

import anyio
import pytest

from codespace.runner.api import RunnerLostError
from codespace.runner.channel import Channel
from codespace.runner.frames import FRAME_MAX_BYTES, FrameTooLongError, ProtocolError, frame
from codespace.runner.messages import Json

pytestmark = pytest.mark.anyio

SECONDS = 20


async def pair() -> tuple[Channel, Channel]:
    here, there = socket.socketpair()
    return await Channel.over(here), await Channel.over(there)


async def lone() -> tuple[Channel, socket.socket]:
    here, there = socket.socketpair()
    there.settimeout(SECONDS)
    return await Channel.over(here), there


async def test_messages_go_both_ways_in_their_order() -> None:
    with anyio.fail_after(SECONDS):
        one, other = await pair()
        got: list[Json] = []
        all_there = anyio.Event()

        def take(message: Json) -> None:
            got.append(message)
            if len(got) == 100:
                all_there.set()

        other.listen(take)
        for number in range(100):
            await one.send({"number": number})
        await all_there.wait()
        assert got == [{"number": number} for number in range(100)]
        await other.send({"back": True})
        assert await one.receive() == {"back": True}
        one.end()
        await other.lost.wait()


async def test_a_sender_waits_for_room_and_goes_on_when_there_is_some() -> None:
    with anyio.fail_after(SECONDS):
        one, slow = await lone()
        large = {"text": "x" * 1_000_000}
        sent = 0

        async def send_all() -> None:
            nonlocal sent
            for _ in range(8):
                await one.send(large)
                sent += 1

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(send_all)
            for _ in range(50):
                await anyio.lowlevel.checkpoint()
            assert sent < 8, "nobody read, and still everything was taken"
            wanted = 8 * len(frame(large))
            while wanted:
                wanted -= len(await asyncio.to_thread(slow.recv, 1 << 20))
        assert sent == 8
        slow.close()


async def test_the_end_of_the_other_side_reaches_everybody_who_waits() -> None:
    with anyio.fail_after(SECONDS):
        one, other = await lone()

        async def wait() -> None:
            with pytest.raises(RunnerLostError):
                await one.receive()

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(wait)
            await anyio.lowlevel.checkpoint()
            other.close()
        await one.lost.wait()
        with pytest.raises(RunnerLostError):
            await one.send({"any": 1})
        with pytest.raises(RunnerLostError):
            await one.receive()


@pytest.mark.parametrize(
    "noise", [b"GET / HTTP/1.1\r\n\r\n", bytes(4), b"\x00\x00\x00\x02[]", b"\xff" * 64]
)
async def test_noise_ends_the_connection_and_is_logged(
    noise: bytes, caplog: pytest.LogCaptureFixture
) -> None:
    with anyio.fail_after(SECONDS):
        one, other = await lone()
        one.listen(lambda _message: None)
        other.send(noise)
        await one.lost.wait()
        other.close()
    (record,) = caplog.records
    assert record.levelno == logging.ERROR
    assert record.getMessage().startswith("the connection between gateway and worker ends: a frame")


async def test_a_message_that_the_listener_refuses_or_nobody_awaits_ends_the_connection() -> None:
    def refuse(_message: Json) -> None:
        raise ProtocolError("not that")

    with anyio.fail_after(SECONDS):
        for listener in (refuse, None):
            one, other = await pair()
            if listener is not None:
                one.listen(listener)
            await other.send({"any": 1})
            await one.lost.wait()
            await other.lost.wait()


async def test_a_message_that_is_too_long_is_not_sent_and_ends_nothing() -> None:
    with anyio.fail_after(SECONDS):
        one, other = await pair()
        with pytest.raises(FrameTooLongError):
            await one.send({"text": "x" * FRAME_MAX_BYTES})
        await one.send({"fine": 1})
        assert await other.receive() == {"fine": 1}
        one.end()
        await other.lost.wait()
