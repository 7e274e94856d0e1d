"""The Runner port: what the gateway asks of whoever owns processes, and how that can fail.

A runner gets execution requests only: no tokens, no database, no operation ids.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Literal, Protocol

from codespace.domain.ids import ProcessId
from codespace.domain.workspace import Root

Termination = Literal["exited", "timeout", "terminated", "unknown"]
Stdin = Literal["pipe", "null"]


class Containment(StrEnum):
    """What owns the whole subtree of a command and ends it. Containment is not a sandbox."""

    PID_NAMESPACE = "pid-namespace"
    KEEPER = "keeper"


@dataclass(frozen=True, slots=True)
class StartRequest:
    """One command to start.

    `process_id` is the caller's: it is good for looking even when the answer is lost.
    `argv` is not empty and holds no NUL; `argv[0]` is resolved against the environment's PATH, or
    from the root when it holds a slash. `paced` makes the command wait for the reader: no output
    is dropped that no `read` has asked past yet, and the pipe is left full in the meantime.
    """

    process_id: ProcessId
    root: Root
    argv: tuple[str, ...]
    environment: Mapping[str, str] = field(default_factory=dict[str, str])
    tty: bool = False
    paced: bool = False
    stdin: Stdin = "pipe"
    time_limit_ms: int = 30_000


@dataclass(frozen=True, slots=True)
class OutputChunk:
    """A piece of the combined output. Cursors count bytes of the whole output."""

    cursor: int
    text: str
    eof: bool
    output_lost: bool
    retained_from: int


@dataclass(frozen=True, slots=True)
class ProcessState:
    """What is known of a process now."""

    running: bool
    output_total: int
    output_retained_from: int
    eof: bool
    termination: Termination | None = None
    exit_code: int | None = None
    signal: int | None = None


@dataclass(frozen=True, slots=True)
class RunnerFacts:
    """What was proven to work on this machine, not what was hoped for."""

    containment: Containment
    reason: str | None = None
    """Why the stronger containment is not in use; `None` when it is."""


class RunnerLostError(Exception):
    """The runner went away in mid-request: what was asked for may have happened."""


class Runner(Protocol):
    """Owns processes. All refusals are `CodeSpaceError`; a lost runner is `RunnerLostError`."""

    @property
    def facts(self) -> RunnerFacts:
        """What this runner enforces."""
        ...

    async def start(self, request: StartRequest) -> None:
        """Start a command; return once it runs.

        Raises:
            CodeSpaceError: PROCESS_SPAWN_FAILED when it is certain that nothing was started.
        """
        ...

    async def read(
        self, process_id: ProcessId, cursor: int, *, max_bytes: int, wait_ms: int = 0
    ) -> OutputChunk:
        """Return output from `cursor` on; wait up to `wait_ms` for something new."""
        ...

    async def status(self, process_id: ProcessId, *, wait_ms: int = 0) -> ProcessState:
        """Return the state; wait up to `wait_ms` for the end."""
        ...

    async def write(self, process_id: ProcessId, data: bytes, *, close: bool) -> None:
        """Write to stdin, all of it, within the limit.

        Raises:
            CodeSpaceError: TIMEOUT with `written`, PROCESS_EXITED, LIMIT_EXCEEDED.
        """
        ...

    async def resize(self, process_id: ProcessId, rows: int, cols: int) -> None:
        """Set the size of a process's terminal."""
        ...

    async def terminate(self, process_id: ProcessId) -> None:
        """Ask the whole subtree to end, and make it end after the grace period."""
        ...

    async def close(self) -> None:
        """End every process and return when all are gone."""
        ...
