"""The one path of every call: bind, policy, run, one log line. The only `except Exception`."""

import logging
import secrets
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import anyio.to_thread

from codespace.codemode.checking import is_large
from codespace.domain.coordination import FIELD
from codespace.domain.errors import CodeSpaceError, ErrorCode
from codespace.domain.ids import WorkspaceId
from codespace.domain.paths import shown
from codespace.domain.tool import BoundCall, Call, Json, Report, Tool
from codespace.domain.workspace import Workspace
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
class Dispatcher:
    """Takes every call, from whichever transport, through the same checks."""

    toolbox: Toolbox
    workspaces: Mapping[WorkspaceId, Workspace]
    works: Works | None = None

    async def call(
        self, name: str, arguments: Json, *, report: Report | None = None, owned: bool = False
    ) -> Outcome:
        """Run one call to its end. Never raises but for an unknown tool and cancellation.

        `report` and `owned` are the handler's, as `Call` has them.

        Raises:
            UnknownToolError: no tool is named `name`.
        """
        tool = self.toolbox.get(name)
        if tool is None:
            raise UnknownToolError(name)
        started = time.monotonic()
        try:
            body = await self._run(tool, arguments, Call(report=report, owned=owned))
            shown = None if tool.show is None else tool.show(body)
            outcome = Outcome(body, is_error=False, shown=shown)
        except CodeSpaceError as error:
            outcome = Outcome(error.body(), is_error=True)
        except Exception:  # noqa: BLE001 -- the one place where a bug becomes an answer
            outcome = Outcome(_internal(name).body(), is_error=True)
        if log.isEnabledFor(logging.INFO):
            log.info(
                "call tool=%s outcome=%s ms=%.1f",
                name,
                outcome.body.get("code", "ok") if outcome.is_error else "ok",
                (time.monotonic() - started) * 1000,
            )
        return outcome

    async def _run(self, tool: Tool, arguments: Json, call: Call) -> Json:
        bound = await _bound(tool, arguments)
        workspace = None
        if bound.workspace_id is not None:
            workspace = self.workspaces.get(bound.workspace_id)
            if workspace is None:
                raise workspace_not_found(bound.workspace_id)
            authorize(workspace, tool.effect)
        if bound.work_id is None or self.works is None:
            return await bound.run(Call(workspace, call.report, call.owned))
        work = await self.works.require_open(bound.work_id)
        body = await bound.run(Call(workspace, call.report, call.owned, work.work_id))
        return {**body, FIELD: self.works.coordination(work)}


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


def _internal(name: str) -> CodeSpaceError:
    reference = secrets.token_hex(6)
    log.error("call failed tool=%s reference=%s", name, reference, exc_info=True)  # noqa: LOG014 -- called where the bug is caught
    return CodeSpaceError(
        ErrorCode.INTERNAL,
        f"The gateway failed in a way that it should not; its log has the reference {reference}.",
    )
