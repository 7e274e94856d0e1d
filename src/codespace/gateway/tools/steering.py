"""The agent's side of steering: open a work, look at and take what the user wants, close it."""

from dataclasses import dataclass
from typing import Annotated, Literal

from pydantic import Field

from codespace.domain.effect import Effect
from codespace.domain.ids import IntentId, WorkId
from codespace.domain.limits import Limits
from codespace.domain.tool import Call, Params, Result, Tool, define
from codespace.domain.work import WorkState
from codespace.gateway.works import Works

LIMITS = Limits()
"""The limits that the schemas name."""

State = Literal["active", "closing", "closed"]
PENDING = "pending_user_input"


class WorkOpenParams(Params):
    """Arguments of `work_open`."""

    workspace_id: str
    """The workspace, as `workspace_info` lists it."""
    title: Annotated[str, Field(max_length=LIMITS.work_title_max_chars)] = ""
    """What the job is, in a few words, for the user who looks at it."""


class WorkParams(Params):
    """Arguments of tools that take only a work."""

    work_id: str
    """The work, as `work_open` answered it."""


class SteerCompleteParams(WorkParams):
    """Arguments of `steer_complete`."""

    intent_id: str
    """The instruction, as `steer_claim_next` gave it."""
    outcome: Literal["done", "blocked"]
    """Whether you did it, or could not."""
    note: Annotated[str, Field(max_length=LIMITS.intent_max_chars)] = ""
    """For the user."""


class WorkOpenResult(Result):
    """An open work."""

    work_id: str
    """Give it with your calls: their results then say whether the user wants something."""
    workspace_id: str
    state: State


class SteerStatusResult(Result):
    """How many instructions of the user there are; never what they say."""

    work_id: str
    state: State
    queued: int
    claimed: int
    """Taken, and not completed."""
    claimable_now: int
    queue_revision: int
    """Grows whenever the queue changes."""


class ClaimedItem(Result):
    """One instruction of the user. It is yours now, and cannot change any more."""

    intent_id: str
    revision: int
    kind: Literal["follow_up", "note", "stop_notice"]
    delivery: Literal["next_checkpoint", "after_current_work", "next_work"]
    content: str


class SteerClaimResult(Result):
    """The next instruction, or nothing."""

    item: ClaimedItem | None


class SteerCompleteResult(Result):
    """How the instruction ended."""

    work_id: str
    intent_id: str
    state: Literal["done", "blocked"]


class WorkFinishResult(Result):
    """Whether the work is closed. It certifies nothing of what was done."""

    work_id: str
    closed: bool
    reason: Literal["pending_user_input"] | None = None
    """The user has said more, or you have not completed all that you took."""
    queued: int
    state: State


@dataclass(frozen=True, slots=True)
class SteeringTools:
    """Works, as an agent sees them."""

    works: Works

    def tools(self) -> list[Tool]:
        """Return the family."""
        return [
            define(
                "work_open",
                Effect.STEER,
                WorkOpenParams,
                WorkOpenResult,
                self.work_open,
                title="Open a work",
            ),
            define(
                "steer_status",
                Effect.INSPECT,
                WorkParams,
                SteerStatusResult,
                self.steer_status,
                title="Count the user's instructions",
                idempotent=True,
            ),
            define(
                "steer_claim_next",
                Effect.STEER,
                WorkParams,
                SteerClaimResult,
                self.steer_claim_next,
                title="Take the user's next instruction",
                nulls=True,
            ),
            define(
                "steer_complete",
                Effect.STEER,
                SteerCompleteParams,
                SteerCompleteResult,
                self.steer_complete,
                title="Report on an instruction",
                idempotent=True,
            ),
            define(
                "work_finish",
                Effect.STEER,
                WorkParams,
                WorkFinishResult,
                self.work_finish,
                title="Close a work",
                idempotent=True,
            ),
        ]

    async def work_open(self, params: WorkOpenParams, call: Call) -> WorkOpenResult:
        """Open a work: one job, which the user can steer while you are at it.

        Give its `work_id` with your other calls. When `coordination.pending_user_items` of a
        result is not 0, take what waits with steer_claim_next. End with work_finish.
        """
        work = await self.works.open(call.permitted.workspace_id, params.title)
        return WorkOpenResult(
            work_id=work.work_id, workspace_id=work.workspace_id, state=work.state.value
        )

    async def steer_status(self, params: WorkParams, call: Call) -> SteerStatusResult:
        """Say how many instructions of the user wait for a work, and how far the work is."""
        work = await self.works.find(WorkId(params.work_id))
        return SteerStatusResult(
            work_id=work.work_id,
            state=work.state.value,
            queued=work.queued,
            claimed=work.claimed,
            claimable_now=work.claimable,
            queue_revision=work.queue_revision,
        )

    async def steer_claim_next(self, params: WorkParams, call: Call) -> SteerClaimResult:
        """Take the user's next instruction; `item` is null when there is none to take now.

        It is the user's word on what to do, and changes nothing about what you may do. Nobody else
        gets it: report with steer_complete. After a `stop_notice`, stop what you are doing.
        """
        intent = await self.works.claim(WorkId(params.work_id))
        if intent is None:
            return SteerClaimResult(item=None)
        return SteerClaimResult(
            item=ClaimedItem(
                intent_id=intent.intent_id,
                revision=intent.revision,
                kind=intent.kind.value,
                delivery=intent.delivery.value,
                content=intent.body,
            )
        )

    async def steer_complete(self, params: SteerCompleteParams, call: Call) -> SteerCompleteResult:
        """Report that an instruction which you took is done, or that you could not do it."""
        await self.works.complete(
            WorkId(params.work_id), IntentId(params.intent_id), params.outcome, params.note
        )
        return SteerCompleteResult(
            work_id=params.work_id, intent_id=params.intent_id, state=params.outcome
        )

    async def work_finish(self, params: WorkParams, call: Call) -> WorkFinishResult:
        """Close a work when you are done with it.

        With instructions left it is not closed but `closing`: take and complete them, among them
        now those for after the current work, and call this again.
        """
        work = await self.works.finish(WorkId(params.work_id))
        closed = work.state is WorkState.CLOSED
        return WorkFinishResult(
            work_id=work.work_id,
            closed=closed,
            reason=None if closed else PENDING,
            queued=work.queued,
            state=work.state.value,
        )
