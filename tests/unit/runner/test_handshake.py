"""The opening: who is let in, and under which terms."""

import os
import socket
import subprocess
import sys

import anyio
import pytest

from codespace.domain.errors import CodeSpaceError, ErrorCode
from codespace.domain.limits import Limits
from codespace.runner import handshake
from codespace.runner.api import Containment, RunnerFacts, RunnerLostError
from codespace.runner.channel import Channel
from codespace.runner.frames import ProtocolError
from codespace.runner.handshake import (
    VERSION,
    Invitation,
    Terms,
    introduce,
    is_process,
    ready,
    unable,
    welcome,
)
from codespace.runner.messages import Json, limits_json

pytestmark = pytest.mark.anyio

SECONDS = 20
NONCE = "the word"
FACTS = RunnerFacts(Containment.KEEPER, "for the test")
TERMS = Terms(Limits(max_processes=3), Containment.KEEPER)


async def pair() -> tuple[Channel, Channel]:
    here, there = socket.socketpair()
    return await Channel.over(here), await Channel.over(there)


@pytest.mark.parametrize("terms", [TERMS, Terms(Limits(), None)])
async def test_both_sides_know_the_terms_afterwards(terms: Terms) -> None:
    gateway, worker = await pair()
    got: list[Terms] = []

    async def work() -> None:
        got.append(await introduce(worker, NONCE))
        await worker.send(ready(FACTS))

    with anyio.fail_after(SECONDS):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(work)
            assert await welcome(gateway, NONCE, terms) == FACTS
    assert got == [terms]
    gateway.end()
    await worker.lost.wait()


@pytest.mark.parametrize(
    ("hello", "said"),
    [
        ({"version": VERSION + 1, "nonce": NONCE}, f"a worker of version {VERSION + 1}"),
        ({"version": VERSION, "nonce": "another"}, "not invited"),
        ({"version": VERSION, "nonce": ""}, "not invited"),
        ({"version": VERSION, "nonce": "ünïcödé"}, "not invited"),
        ({"version": VERSION}, "no text as nonce"),
        ({"version": str(VERSION), "nonce": NONCE}, "no number as version"),
        ({"id": 1, "do": "close"}, "no number as version"),
    ],
)
@pytest.mark.requirement("runner.handshake")
async def test_another_version_and_another_word_are_not_let_in(hello: Json, said: str) -> None:
    gateway, worker = await pair()
    with anyio.fail_after(SECONDS):
        await worker.send(hello)
        with pytest.raises(ProtocolError, match=said):
            await welcome(gateway, NONCE, TERMS)
        gateway.end()
        await worker.lost.wait()


async def test_a_worker_does_not_serve_a_gateway_of_another_version() -> None:
    gateway, worker = await pair()
    limits = limits_json(Limits())
    with anyio.fail_after(SECONDS):
        await gateway.send({"version": VERSION + 1, "limits": limits, "containment": None})
        with pytest.raises(ProtocolError, match=f"a gateway of version {VERSION + 1}"):
            await introduce(worker, NONCE)
        worker.end()
        await gateway.lost.wait()


async def test_a_worker_that_cannot_work_says_why() -> None:
    gateway, worker = await pair()
    refusal = CodeSpaceError(ErrorCode.PROCESS_SPAWN_FAILED, "No namespace here.")

    async def work() -> None:
        await introduce(worker, NONCE)
        await worker.send(unable(refusal))

    with anyio.fail_after(SECONDS):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(work)
            with pytest.raises(CodeSpaceError, match="No namespace here"):
                await welcome(gateway, NONCE, TERMS)
        gateway.end()
        await worker.lost.wait()
    assert "OSError" in str(unable(OSError("/secret/place")))
    assert "secret" not in str(unable(OSError("/secret/place")))


async def test_a_worker_that_leaves_in_the_middle_is_lost() -> None:
    gateway, worker = await pair()
    worker.end()
    with anyio.fail_after(SECONDS), pytest.raises(RunnerLostError):
        await welcome(gateway, NONCE, TERMS)


def test_an_invitation_comes_out_of_the_pipe_as_it_went_in() -> None:
    invitation = Invitation("/tmp/codespace-x", "word", 17)
    assert Invitation.opened(invitation.sealed()) == invitation


@pytest.mark.parametrize("data", [b"", b"{", b"[]", b"{}", b'{"directory":1}', b"\xff"])
def test_what_is_no_invitation_is_refused(data: bytes) -> None:
    with pytest.raises(ProtocolError):
        Invitation.opened(data)


@pytest.mark.requirement("runner.private-socket")
def test_the_kernel_says_which_process_is_on_the_other_side(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    listener = socket.socket(socket.AF_UNIX)
    listener.bind("\0codespace-test-" + os.urandom(8).hex())
    listener.listen()
    connect = (
        "import socket,sys; s=socket.socket(socket.AF_UNIX); s.connect(chr(0)+sys.argv[1]);"
        "sys.stdin.read()"
    )
    name = listener.getsockname().decode().removeprefix("\0")
    with (
        listener,
        subprocess.Popen([sys.executable, "-c", connect, name], stdin=subprocess.PIPE) as other,
    ):
        connected, _ = listener.accept()
        with connected:
            assert is_process(connected, other.pid)
            assert not is_process(connected, os.getpid())
            monkeypatch.setattr(handshake.os, "getuid", lambda: 4_242)
            assert not is_process(connected, other.pid), "a process of another user"
        other.communicate()
