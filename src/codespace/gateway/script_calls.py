"""The calls of one script on the one path of every call, with the patience that a script needs."""

import time
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Protocol, cast

import anyio

from codespace.codemode.tool import Invocation, ToolError
from codespace.domain.errors import ErrorCode
from codespace.domain.ids import IntentId, RunId, WorkId, WorkspaceId
from codespace.domain.tool import Json
from codespace.gateway.dispatch import Outcome

FIRST_PAUSE_SECONDS = 0.01
LONGEST_PAUSE_SECONDS = 0.2

HandBack = Callable[[IntentId], Awaitable[None]]
"""Puts an instruction of the user that a script had claimed back into its queue."""


async def keep(intent_id: IntentId) -> None:
    """Hand nothing back: there are no works."""


class CallTool(Protocol):
    """The dispatcher, as a script's calls use it."""

    def __call__(self, name: str, arguments: Json, *, owned: bool) -> Awaitable[Outcome]:
        """Run one call to its end."""
        ...


@dataclass(slots=True)
class ScriptCalls:
    """Sends out the calls of one run.

    Attributes:
        call: the one path.
        run_id: whose calls these are.
        workspace_id: stands where a call names no workspace.
        busy_wait_ms: how long a call waits for a lease that somebody outside the run holds.
        work_id: stands where a call names no work.
    """

    call: CallTool
    run_id: RunId
    workspace_id: WorkspaceId
    busy_wait_ms: int
    work_id: WorkId | None = None
    _processes: set[str] = field(default_factory=set[str], init=False)
    _claimed: set[IntentId] = field(default_factory=set[IntentId], init=False)

    async def __call__(self, invocation: Invocation) -> object:
        """Make one call; wait for the workspace's lease where it needs it.

        A lease that a process of this very run holds is waited for as long as the run lasts.

        Raises:
            ToolError: the call was refused or failed.
        """
        name, arguments = invocation.tool.name, self._completed(invocation)
        pause, until = FIRST_PAUSE_SECONDS, time.monotonic() + self.busy_wait_ms / 1000
        while True:
            outcome = await self.call(name, arguments, owned=True)
            if not outcome.is_error:
                return self._noted(invocation, outcome.body)
            # Nothing was begun by a call that found the workspace busy: it can be made again.
            holder = _holder(outcome.body)
            if holder is None or (holder not in self._processes and time.monotonic() >= until):
                raise _refusal(outcome.body)
            try:
                await anyio.sleep(pause)
            except anyio.get_cancelled_exc_class():
                # The run has ended. That this call has changed nothing is sure, so it is said.
                raise _refusal(outcome.body) from None
            pause = min(2 * pause, LONGEST_PAUSE_SECONDS)

    async def hand_back(self, how: HandBack) -> None:
        """Hand back what the run has claimed of the user's instructions and not completed."""
        while self._claimed:
            await how(self._claimed.pop())

    def _completed(self, invocation: Invocation) -> Json:
        given = dict(invocation.arguments)
        if given.get("workspace_id") is None and _works_in_one(invocation):
            given["workspace_id"] = self.workspace_id
        if given.get("work_id") is None and _takes(invocation, "work_id"):
            given["work_id"] = self.work_id
        if given.get("operation_key") is None and _takes(invocation, "patch"):
            # Settles later, by the ledger, whether the patch of this very call was applied.
            given["operation_key"] = f"{self.run_id}:{invocation.call_no}"
        return given

    def _noted(self, invocation: Invocation, body: Json) -> Json:
        # Only what takes a lease has started a process; any tool can name somebody else's.
        process_id = body.get("process_id")
        if isinstance(process_id, str) and invocation.tool.serialize is not None:
            self._processes.add(process_id)
        match invocation.tool.name, body:
            case "steer_claim_next", {"item": {"intent_id": str(intent_id)}}:
                self._claimed.add(IntentId(intent_id))
            case "steer_complete", {"intent_id": str(intent_id)}:
                self._claimed.discard(IntentId(intent_id))
            case _:
                pass
        return body


def _takes(invocation: Invocation, name: str) -> bool:
    return name in _declared(invocation)


def _works_in_one(invocation: Invocation) -> bool:
    # A tool that takes a workspace and nothing else is asked about workspaces: without one, about
    # all of them.
    declared = _declared(invocation)
    return "workspace_id" in declared and len(declared) > 1


def _declared(invocation: Invocation) -> Mapping[str, object]:
    schema = invocation.tool.input_schema or {}
    return cast("Mapping[str, object]", schema.get("properties", {}))


def _holder(body: Json) -> str | None:
    if body.get("code") != ErrorCode.WORKSPACE_BUSY:
        return None
    details = cast("Mapping[str, Mapping[str, str]]", body.get("details") or {})
    return details.get("holder", {}).get("id", "")


def _refusal(body: Json) -> ToolError:
    ids = {name: body[name] for name in ("operation_id", "approval_id") if name in body}
    details = body.get("details")
    if ids:
        details = {**cast("Json", details or {}), **ids}
    return ToolError(str(body["code"]), str(body["message"]), details)
