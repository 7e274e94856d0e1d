"""Commands as the gateway sees them: who may start one, and what a lost runner means."""

from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Literal

from codespace.domain.errors import CodeSpaceError, ErrorCode
from codespace.domain.ids import PROCESS_PREFIX, ProcessId
from codespace.domain.limits import Limits
from codespace.domain.workspace import Workspace
from codespace.gateway.leases import Leases
from codespace.policy.environment import CommandEnvironment
from codespace.runner.api import Runner, RunnerLostError, StartRequest, Stdin


@dataclass(frozen=True, slots=True)
class CommandOptions:
    """How to start a command. `time_limit_ms` is never above the operator's."""

    tty: bool = False
    paced: bool = False
    stdin: Stdin = "pipe"
    time_limit_ms: int | None = None


@dataclass(frozen=True, slots=True)
class Started:
    """A handle, and whether it is known that its command runs."""

    process_id: ProcessId
    dispatch_status: Literal["confirmed", "unknown"]


@dataclass(frozen=True, slots=True)
class Processes:
    """Starts commands under the workspace's mutation lease."""

    runner: Runner
    leases: Leases
    limits: Limits
    environment: CommandEnvironment
    mint: Callable[[str], str]

    async def start(
        self, workspace: Workspace, argv: Sequence[str], options: CommandOptions
    ) -> Started:
        """Start a command and return once it runs.

        Raises:
            CodeSpaceError: INVALID_COMMAND, LIMIT_EXCEEDED, WORKSPACE_BUSY, or
                PROCESS_SPAWN_FAILED when it is certain that nothing was started.
        """
        check_argv(argv, self.limits)
        process_id = ProcessId(self.mint(PROCESS_PREFIX))
        limit = self.limits.process_timeout_ms
        request = StartRequest(
            process_id=process_id,
            root=workspace.root,
            argv=tuple(argv),
            environment=self.environment.variables(tty=options.tty),
            tty=options.tty,
            paced=options.paced,
            stdin=options.stdin,
            time_limit_ms=min(options.time_limit_ms or limit, limit),
        )
        await self.leases.hold_for_process(workspace.workspace_id, process_id)
        try:
            await self.runner.start(request)
        except RunnerLostError:
            # It may run; when the handle turns out to be unknown, the lease is free again.
            self.leases.started(workspace.workspace_id, process_id)
            return Started(process_id, "unknown")
        except BaseException:
            self.leases.release(workspace.workspace_id, process_id)
            raise
        self.leases.started(workspace.workspace_id, process_id)
        return Started(process_id, "confirmed")

    @asynccontextmanager
    async def asking(self, process_id: ProcessId) -> AsyncGenerator[Runner]:
        """Yield the runner; a lost runner ended its processes and forgot their handles."""
        try:
            yield self.runner
        except RunnerLostError as error:
            raise process_not_found(process_id) from error


def process_not_found(process_id: ProcessId) -> CodeSpaceError:
    """The error for a handle that is unknown, expired, or of an earlier runner."""
    return CodeSpaceError(
        ErrorCode.PROCESS_NOT_FOUND,
        f"No process is known as {str(process_id)[:100]!r}; handles end with the runner,"
        " and some time after their process.",
    )


def check_argv(argv: Sequence[str], limits: Limits) -> None:
    """Refuse what no kernel could run, before anything is taken or started.

    Raises:
        CodeSpaceError: INVALID_COMMAND or LIMIT_EXCEEDED.
    """
    if not argv or not argv[0]:
        raise CodeSpaceError(
            ErrorCode.INVALID_COMMAND,
            "The command is empty; give the program first, then its arguments.",
        )
    sizes = [len(argument.encode("utf-8", "surrogatepass")) for argument in argv]
    for index, argument in enumerate(argv):
        if "\0" in argument:
            raise CodeSpaceError(
                ErrorCode.INVALID_COMMAND,
                f"Argument {index} holds a NUL character, which no program takes; leave it out.",
                details={"argument": index},
            )
    for name, actual, limit in (
        ("argv_max_count", len(argv), limits.argv_max_count),
        ("argument_max_bytes", max(sizes), limits.argument_max_bytes),
        ("argv_max_bytes", sum(sizes), limits.argv_max_bytes),
    ):
        if actual > limit:
            raise CodeSpaceError(
                ErrorCode.LIMIT_EXCEEDED,
                f"The command line is too long ({name} is {limit});"
                " pass the data through a file or stdin.",
                details={"limit": name, "maximum": limit},
            )
