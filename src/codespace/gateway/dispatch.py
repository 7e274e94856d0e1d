"""The one path of every call: bind, policy, work, idempotency, hold, run, one log line.

The only `except Exception`. The lease and the effect come behind the hold, in the handlers.
"""

import logging
import secrets
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass

import anyio.to_thread

from codespace.codemode.checking import is_large
from codespace.domain.coordination import FIELD
from codespace.domain.errors import CodeSpaceError, ErrorCode
from codespace.domain.ids import WorkspaceId
from codespace.domain.paths import shown
from codespace.domain.tool import BoundCall, Call, Json, Report, Tool
from codespace.domain.work import Work
from codespace.domain.workspace import Approvals, Workspace
from codespace.gateway.toolbox import Toolbox
from codespace.gateway.works import Works
from codespace.policy.permissions import authorize

log = logging.getLogger(__name__)

LARGE = 2_000
"""Arguments with more parts are judged on a worker thread."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a call came to: a result, or the body of an error.

    `shown` is what a reader gets in place of the body's JSON, as MCP content blocks.
    """

    body: Json
    is_error: bool
    shown: Sequence[Json] | None = None


class UnknownToolError(Exception):
    """No tool has that name: a protocol error, not a tool result."""


@dataclass(frozen=True, slots=True)
class Admitted:
    """A call that its arguments and the workspace's policy let through, as part of `work`."""

    tool: Tool
    bound: BoundCall
    call: Call
    work: Work | None = None

    @property
    def must_wait(self) -> bool:
        """Whether the operator wants this very call to be confirmed first."""
        workspace = self.call.workspace
        return (
            self.bound.mutates
            and workspace is not None
            and workspace.approvals is Approvals.CONFIRM
        )

    async def known(self) -> Json | None:
        """Return what is recorded of the call, so that there is nothing to confirm.

        Raises:
            CodeSpaceError: a refusal that is certain, or recorded.
        """
        return None if self.bound.known is None else await self.bound.known(self.call)


Hold = Callable[[Admitted], Awaitable[CodeSpaceError]]
"""Keeps a call until somebody grants it; returns what its client is told."""


@dataclass(frozen=True, slots=True)
class Dispatcher:
    """Takes every call, from whichever transport, through the same checks.

    Without `hold`, a call that has to be confirmed is never made.
    """

    toolbox: Toolbox
    workspaces: Mapping[WorkspaceId, Workspace]
    works: Works | None = None
    hold: Hold | None = None

    async def call(
        self, name: str, arguments: Json, *, report: Report | None = None, owned: bool = False
    ) -> Outcome:
        """Run one call to its end. Never raises but for an unknown tool and cancellation.

        `report` and `owned` are the handler's, as `Call` has them.

        Raises:
            UnknownToolError: no tool is named `name`.
        """
        return await self._answered(name, arguments, Call(report=report, owned=owned), self._run)

    async def confirmed(self, name: str, arguments: Json) -> Outcome:
        """Run a call whose hold was granted: all the same, but for the hold."""
        return await self._answered(name, arguments, Call(), self._run_confirmed)

    async def admit(self, name: str, arguments: Json, call: Call | None = None) -> Admitted:
        """Take a call through what comes before everything else: arguments, policy, its work.

        Raises:
            UnknownToolError: no tool is named `name`.
            CodeSpaceError: INVALID_ARGUMENT, WORKSPACE_NOT_FOUND, UNAUTHORIZED, WORK_NOT_FOUND,
                WORK_CLOSED.
        """
        call = call or Call()
        tool = self._tool(name)
        bound = await _bound(tool, arguments)
        workspace = self._permitted(tool, bound.workspace_id)
        if bound.work_id is None or self.works is None:
            return Admitted(tool, bound, Call(workspace, call.report, call.owned))
        work = await self.works.require_open(bound.work_id)
        given = Call(workspace, call.report, call.owned, work.work_id)
        return Admitted(tool, bound, given, work)

    async def _run(self, name: str, arguments: Json, call: Call) -> Json:
        admitted = await self.admit(name, arguments, call)
        if admitted.must_wait:
            known = await admitted.known()
            if known is not None:
                return self._told(admitted, known)
            if self.hold is None:
                raise RuntimeError("nobody keeps calls that have to be confirmed")
            raise await self.hold(admitted)
        return self._told(admitted, await admitted.bound.run(admitted.call))

    async def _run_confirmed(self, name: str, arguments: Json, call: Call) -> Json:
        admitted = await self.admit(name, arguments, call)
        return self._told(admitted, await admitted.bound.run(admitted.call))

    def _told(self, admitted: Admitted, body: Json) -> Json:
        if admitted.work is None or self.works is None:
            return body
        return {**body, FIELD: self.works.coordination(admitted.work)}

    def _permitted(self, tool: Tool, workspace_id: WorkspaceId | None) -> Workspace | None:
        if workspace_id is None:
            return None
        workspace = self.workspaces.get(workspace_id)
        if workspace is None:
            raise workspace_not_found(workspace_id)
        authorize(workspace, tool.effect)
        return workspace

    async def _answered(
        self,
        name: str,
        arguments: Json,
        call: Call,
        run: Callable[[str, Json, Call], Awaitable[Json]],
    ) -> Outcome:
        tool = self._tool(name)
        started = time.monotonic()
        try:
            body = await run(name, arguments, call)
            shown = None if tool.show is None else tool.show(body)
            outcome = Outcome(body, is_error=False, shown=shown)
        except CodeSpaceError as error:
            outcome = Outcome(error.body(), is_error=True)
        except Exception:  # noqa: BLE001 -- the one place where a bug becomes an answer
            outcome = Outcome(internal(f"call failed tool={name}").body(), is_error=True)
        if log.isEnabledFor(logging.INFO):
            log.info(
                "call tool=%s outcome=%s ms=%.1f",
                name,
                outcome.body.get("code", "ok") if outcome.is_error else "ok",
                (time.monotonic() - started) * 1000,
            )
        return outcome

    def _tool(self, name: str) -> Tool:
        tool = self.toolbox.get(name)
        if tool is None:
            raise UnknownToolError(name)
        return tool


async def _bound(tool: Tool, arguments: Json) -> BoundCall:
    if is_large(arguments, LARGE):
        return await anyio.to_thread.run_sync(tool.bind, arguments)
    return tool.bind(arguments)


def workspace_not_found(workspace_id: WorkspaceId) -> CodeSpaceError:
    """The error for an id that the operator did not register."""
    return CodeSpaceError(
        ErrorCode.WORKSPACE_NOT_FOUND,
        f"No workspace is registered as {shown(workspace_id)};"
        " workspace_info without arguments lists those that are.",
    )


def internal(what: str) -> CodeSpaceError:
    """Log the bug that is being handled, and return the error that tells nothing of it.

    `what` says what failed, for the log.
    """
    reference = secrets.token_hex(6)
    log.error("%s reference=%s", what, reference, exc_info=True)  # noqa: LOG014 -- called where the bug is caught
    return CodeSpaceError(
        ErrorCode.INTERNAL,
        f"The gateway failed in a way that it should not; its log has the reference {reference}.",
    )
