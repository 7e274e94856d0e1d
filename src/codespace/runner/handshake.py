"""How gateway and worker come to trust each other, before the first request.

Each looks at who the kernel says is on the other side, and they name the version of what they
speak. The worker says the word that it was handed over its own pipe.
"""

import hmac
import json
import os
import socket
import struct
from dataclasses import asdict, dataclass
from typing import Self, cast

from codespace.domain.errors import CodeSpaceError, ErrorCode
from codespace.domain.limits import Limits
from codespace.runner.api import Containment, RunnerFacts
from codespace.runner.channel import Channel
from codespace.runner.frames import ProtocolError
from codespace.runner.messages import (
    Fields,
    Json,
    error_of,
    facts_json,
    facts_of,
    limits_json,
    limits_of,
)

VERSION = 1
"""Of the messages. It grows with every change of them: a gateway may start a newer worker, when
the package was replaced under it, and must not guess what that says."""

_CREDENTIALS = struct.Struct("iII")


@dataclass(frozen=True, slots=True)
class Invitation:
    """What a worker is handed over its pipe, so that nobody else can come in its place.

    `directory` holds the socket, `gateway` is the process that listens there.
    """

    directory: str
    nonce: str
    gateway: int

    def sealed(self) -> bytes:
        """Return it as it goes into the pipe."""
        return json.dumps(asdict(self)).encode("ascii")

    @classmethod
    def opened(cls, data: bytes) -> Self:
        """Return what came out of the pipe.

        Raises:
            ProtocolError: it is none.
        """
        try:
            value = cast("object", json.loads(data))
        except ValueError:
            raise ProtocolError("no invitation") from None
        if not isinstance(value, dict):
            raise ProtocolError("no invitation")
        given = Fields(cast("dict[str, object]", value))
        return cls(given.text("directory"), given.text("nonce"), given.number("gateway"))


@dataclass(frozen=True, slots=True)
class Terms:
    """What a worker works under. `containment` is as `LocalRunner.open` has it."""

    limits: Limits
    containment: Containment | None


def is_process(connected: socket.socket, pid: int) -> bool:
    """Tell whether that process of our own user is on the other side of a connection."""
    raw = connected.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _CREDENTIALS.size)
    peer, user, _ = cast("tuple[int, int, int]", _CREDENTIALS.unpack(raw))
    return (peer, user) == (pid, os.getuid())


async def welcome(channel: Channel, nonce: str, terms: Terms) -> RunnerFacts:
    """Take a worker in, and return what it proved to enforce.

    Raises:
        ProtocolError: it is not the worker that was invited, or speaks another version.
        CodeSpaceError: PROCESS_SPAWN_FAILED: it cannot work under these terms.
        RunnerLostError: it went away.
    """
    hello = Fields(await channel.receive())
    if hello.number("version") != VERSION:
        raise ProtocolError(f"a worker of version {hello.number('version')}, not {VERSION}")
    if not hmac.compare_digest(hello.text("nonce").encode(), nonce.encode()):
        raise ProtocolError("a worker that was not invited")
    containment = terms.containment and terms.containment.value
    limits = limits_json(terms.limits)
    await channel.send({"version": VERSION, "limits": limits, "containment": containment})
    ready = await channel.receive()
    if "error" in ready:
        raise error_of(Fields(ready).inner("error"))
    return facts_of(Fields(ready))


async def introduce(channel: Channel, nonce: str) -> Terms:
    """Say hello as the worker, and return what the gateway wants; then say `ready` or `unable`.

    Raises:
        ProtocolError: it is no gateway of this version.
        RunnerLostError: it went away.
    """
    await channel.send({"version": VERSION, "nonce": nonce})
    given = Fields(await channel.receive())
    if given.number("version") != VERSION:
        raise ProtocolError(f"a gateway of version {given.number('version')}, not {VERSION}")
    unnamed = given.optional_text("containment") is None
    containment = None if unnamed else given.one_of("containment", Containment)
    return Terms(limits_of(given.inner("limits")), containment)


def ready(facts: RunnerFacts) -> Json:
    """Return the worker's last word of the opening."""
    return facts_json(facts)


def unable(error: Exception) -> Json:
    """Return the worker's last word when it cannot work under the terms."""
    if not isinstance(error, CodeSpaceError):
        error = CodeSpaceError(
            ErrorCode.PROCESS_SPAWN_FAILED,
            f"The worker process could not begin ({type(error).__name__}); see the server's log.",
        )
    return {"error": error.body()}
