"""One held call: its states, which step leads from which to which, and what marks a request.

Pure: the store keeps the holds and lets one step win, the gateway says who may take which.
"""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Literal

from codespace.domain.ids import ApprovalId, WorkspaceId

Decision = Literal["grant", "deny"]

_NOT_OF_THE_REQUEST = frozenset({"work_id"})
"""Arguments that say on whose behalf a call is made, not what it does."""


class ApprovalState(StrEnum):
    """Where a hold is. `denied` and `consumed` are final."""

    PENDING = "pending"
    GRANTED = "granted"
    RESUMING = "resuming"
    CONSUMED = "consumed"
    DENIED = "denied"


ACTIVE = (ApprovalState.PENDING, ApprovalState.GRANTED, ApprovalState.RESUMING)
"""While a hold is in one of these, the same request finds it again."""


class Step(StrEnum):
    """What can happen to a hold."""

    GRANT = "grant"
    DENY = "deny"
    WITHDRAW = "withdraw"
    """The grant came from somebody who may not grant any more."""
    BEGIN = "begin"
    GIVE_BACK = "give back"
    """The call was turned away before anything was done: the grant is not used up."""
    CONSUME = "consume"


_NEXT: Mapping[tuple[ApprovalState, Step], ApprovalState] = {
    (ApprovalState.PENDING, Step.GRANT): ApprovalState.GRANTED,
    (ApprovalState.PENDING, Step.DENY): ApprovalState.DENIED,
    (ApprovalState.GRANTED, Step.WITHDRAW): ApprovalState.PENDING,
    (ApprovalState.GRANTED, Step.BEGIN): ApprovalState.RESUMING,
    (ApprovalState.RESUMING, Step.GIVE_BACK): ApprovalState.GRANTED,
    (ApprovalState.RESUMING, Step.CONSUME): ApprovalState.CONSUMED,
}


class Resolver(StrEnum):
    """Who grants and denies."""

    CALLER = "caller"
    """The MCP caller that asked, on its user's behalf."""
    OPERATOR = "operator"
    """A person at the gateway: by the HTTP API, its page, or the command line."""


@dataclass(frozen=True, slots=True)
class HeldOutcome:
    """What a held call came to: a result, or the body of an error."""

    body: Mapping[str, object]
    is_error: bool


@dataclass(frozen=True, slots=True)
class Approval:
    """What is known of one hold. Times are Unix milliseconds.

    `root` is the directory that the call was for. `arguments` is JSON, and gone after the end, as
    is `summary`; `digest` stays.
    """

    approval_id: ApprovalId
    workspace_id: WorkspaceId
    root: str
    tool: str
    fingerprint: str
    digest: str
    created_at: int
    arguments: str | None = None
    summary: str | None = None
    state: ApprovalState = ApprovalState.PENDING
    resolved_at: int | None = None
    resolved_by: Resolver | None = None
    finished_at: int | None = None
    outcome: HeldOutcome | None = None

    def after(
        self,
        step: Step,
        at: int,
        *,
        by: Resolver | None = None,
        outcome: HeldOutcome | None = None,
    ) -> "Approval | None":
        """Return the hold after a step, or `None` where its state does not permit that step.

        Raises:
            ValueError: the end without an outcome, or a decision by nobody.
        """
        state = _NEXT.get((self.state, step))
        if state is None:
            return None
        if (step is Step.CONSUME) is (outcome is None):
            raise ValueError("an outcome belongs to the end, and only to it")
        if step in (Step.GRANT, Step.DENY):
            if by is None:
                raise ValueError("a decision is somebody's")
            decided = replace(self, state=state, resolved_at=at, resolved_by=by)
            return _erased(decided, at) if step is Step.DENY else decided
        if step is Step.WITHDRAW:
            return replace(self, state=state, resolved_at=None, resolved_by=None)
        if outcome is not None:
            return _erased(replace(self, state=state, outcome=outcome), at)
        return replace(self, state=state)


def _erased(approval: Approval, at: int) -> Approval:
    return replace(approval, arguments=None, summary=None, finished_at=at)


def canonical(arguments: Mapping[str, object]) -> str:
    """Return the one JSON text of these arguments, however they were ordered."""
    return json.dumps(dict(arguments), sort_keys=True, separators=(",", ":"))


def digest_of(arguments: str) -> str:
    """Return what stays of the arguments' JSON after the end: its SHA-256."""
    return hashlib.sha256(arguments.encode()).hexdigest()


def request_mark(
    tool: str, workspace_id: WorkspaceId, root: str, arguments: Mapping[str, object]
) -> str:
    """Return what two requests have in common exactly when they ask for the same thing."""
    asked = {key: value for key, value in arguments.items() if key not in _NOT_OF_THE_REQUEST}
    return digest_of(canonical({"tool": tool, "at": [workspace_id, root], "asked": asked}))
