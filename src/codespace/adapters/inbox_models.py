"""What the inbox takes and gives as JSON. The description of the API is made of these."""

from typing import Annotated, Literal

from pydantic import Field

from codespace.domain.limits import Limits
from codespace.domain.tool import Params, Result
from codespace.domain.work import Intent, Work
from codespace.gateway.approval_views import ApprovalView

LIMITS = Limits()
"""The limits that the description names."""

Kind = Literal["follow_up", "note", "stop_notice"]
When = Literal["next_checkpoint", "after_current_work", "next_work"]
Text = Annotated[str, Field(min_length=1, max_length=LIMITS.intent_max_chars)]
Revision = Annotated[int, Field(ge=1)]


class NewIntent(Params):
    """An instruction, as a draft."""

    body: Text
    """What the agent is to read."""
    kind: Kind = "follow_up"
    delivery: When = "after_current_work"
    """When the agent may take it; `next_work` waits for the next work in the workspace."""


class IntentEdit(Params):
    """Changes of a draft or a queued instruction."""

    revision: Revision
    """The one that was seen; the instruction must still have it."""
    body: Text | None = None
    delivery: When | None = None


class IntentRevision(Params):
    """Which state of the instruction was seen."""

    revision: Revision
    """The one that was seen; the instruction must still have it."""


class NewOrder(Params):
    """The whole queue in its new order."""

    intent_ids: Annotated[list[str], Field(max_length=LIMITS.intents_max * 2)]
    """Each queued instruction of the work, once. Those for the next work may be left out."""


class StopRequest(Params):
    """Why the work is stopped."""

    reason: Text | None = None
    """What the agent is to read; a plain sentence when left out."""


class Decision(Params):
    """What is to become of a held call."""

    decision: Literal["grant", "deny"]


class ApprovalList(Result):
    """The held calls: those that wait and the last that ended, oldest first."""

    approvals: list[ApprovalView]


class WorkView(Result):
    """One job of an agent, and how much waits for it."""

    work_id: str
    workspace_id: str
    title: str
    state: Literal["active", "closing", "closed"]
    queued: int
    """Instructions that wait for it; those for the next work do not count."""
    claimed: int
    """Instructions that its agent has taken and not completed."""
    claimable_now: int
    queue_revision: int
    created_at: int
    """Unix time in milliseconds."""
    closed_at: int | None = None


class IntentView(Result):
    """One instruction."""

    intent_id: str
    work_id: str
    workspace_id: str
    kind: Kind
    delivery: When
    state: Literal["draft", "queued", "claimed", "done", "blocked", "cancelled"]
    body: str
    revision: int
    """Edits carry it."""
    created_at: int
    """Unix time in milliseconds."""
    changed_at: int
    note: str | None = None
    """What the agent said of it at its end."""


class WorkList(Result):
    """Works, the open ones first, then the newest first."""

    works: list[WorkView]


class IntentList(Result):
    """The instructions of a work, in the user's order."""

    work: WorkView
    intents: list[IntentView]


class StopResult(Result):
    """What was ended, and what the agent will read."""

    ok: Literal[True] = True
    killed: bool
    """A process was live in the workspace, and has ended."""
    intent: IntentView


def work_view(work: Work) -> WorkView:
    """Return a work as JSON tells of it."""
    return WorkView(
        work_id=work.work_id,
        workspace_id=work.workspace_id,
        title=work.title,
        state=work.state.value,
        queued=work.queued,
        claimed=work.claimed,
        claimable_now=work.claimable,
        queue_revision=work.queue_revision,
        created_at=work.created_at,
        closed_at=work.closed_at,
    )


def intent_view(intent: Intent) -> IntentView:
    """Return an instruction as JSON tells of it."""
    return IntentView(
        intent_id=intent.intent_id,
        work_id=intent.work_id,
        workspace_id=intent.workspace_id,
        kind=intent.kind.value,
        delivery=intent.delivery.value,
        state=intent.state.value,
        body=intent.body,
        revision=intent.revision,
        created_at=intent.created_at,
        changed_at=intent.changed_at,
        note=intent.note,
    )
