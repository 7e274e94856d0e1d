"""Works, the user's instructions to them, and what may become of either.

Pure: the store keeps the records and hands them in; times and ids come from outside.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from enum import StrEnum

from codespace.domain.errors import CodeSpaceError, ErrorCode
from codespace.domain.ids import IntentId, WorkId, WorkspaceId
from codespace.domain.paths import shown


class WorkState(StrEnum):
    """How far a work is. `closing`: its agent is done, and the user still has something to say."""

    ACTIVE = "active"
    CLOSING = "closing"
    CLOSED = "closed"


class IntentKind(StrEnum):
    """What an instruction is."""

    FOLLOW_UP = "follow_up"
    NOTE = "note"
    STOP_NOTICE = "stop_notice"


class Delivery(StrEnum):
    """When an instruction may be claimed."""

    NEXT_CHECKPOINT = "next_checkpoint"
    AFTER_CURRENT_WORK = "after_current_work"
    NEXT_WORK = "next_work"
    """It waits for the next work that is opened in the workspace, and moves to it."""


class IntentState(StrEnum):
    """Where an instruction is. Only `draft` and `queued` can be edited or cancelled."""

    DRAFT = "draft"
    QUEUED = "queued"
    CLAIMED = "claimed"
    DONE = "done"
    BLOCKED = "blocked"
    CANCELLED = "cancelled"


CLAIMABLE: Mapping[WorkState, frozenset[Delivery]] = {
    WorkState.ACTIVE: frozenset({Delivery.NEXT_CHECKPOINT}),
    WorkState.CLOSING: frozenset({Delivery.NEXT_CHECKPOINT, Delivery.AFTER_CURRENT_WORK}),
    WorkState.CLOSED: frozenset(),
}
"""The deliveries whose queued instructions an agent can claim, by the state of the work."""


@dataclass(frozen=True, slots=True)
class Work:
    """One logical job of an agent. Times are Unix milliseconds.

    Attributes:
        queue_revision: grows with every change of what waits in its queue.
        queued: instructions that wait for it; those for the next work do not count.
        claimed: instructions that its agent has taken and not completed.
        claimable: the queued ones that can be claimed now.
    """

    work_id: WorkId
    workspace_id: WorkspaceId
    title: str
    state: WorkState
    queue_revision: int
    created_at: int
    closed_at: int | None = None
    queued: int = 0
    claimed: int = 0
    claimable: int = 0

    @property
    def pending(self) -> bool:
        """Whether the user is owed something before the work can be closed."""
        return self.queued + self.claimed > 0

    def finished(self, now_ms: int) -> "Work":
        """Return the work after its agent said that it is done."""
        if self.state is WorkState.CLOSED:
            return self
        if self.pending:
            return replace(self, state=WorkState.CLOSING)
        return replace(self, state=WorkState.CLOSED, closed_at=now_ms)

    def require_open(self) -> None:
        """Return when the work is not closed.

        Raises:
            CodeSpaceError: WORK_CLOSED.
        """
        if self.state is WorkState.CLOSED:
            raise work_closed(self.work_id)

    def require_takes(self, delivery: Delivery) -> None:
        """Return when an instruction with this delivery can still come to somebody.

        Raises:
            CodeSpaceError: WORK_CLOSED.
        """
        if delivery is not Delivery.NEXT_WORK:
            self.require_open()


@dataclass(frozen=True, slots=True)
class Intent:
    """One instruction of the user. Times are Unix milliseconds.

    Attributes:
        revision: from 1; grows with every change. An edit carries the one that it saw.
        place: where it stands in the user's order: the lowest queued one is claimed first.
        note: what the agent said when it completed it.
    """

    intent_id: IntentId
    work_id: WorkId
    workspace_id: WorkspaceId
    kind: IntentKind
    delivery: Delivery
    state: IntentState
    body: str
    revision: int
    place: int
    created_at: int
    changed_at: int
    note: str | None = None

    @property
    def waits_for_its_work(self) -> bool:
        """Whether it is in the queue of its work: not one for the next."""
        return self.state is IntentState.QUEUED and self.delivery is not Delivery.NEXT_WORK

    def edited(
        self, seen: int, now_ms: int, body: str | None, delivery: Delivery | None
    ) -> "Intent":
        """Return it with another text or delivery.

        Raises:
            CodeSpaceError: as `_require_editable`.
        """
        self._require_editable(seen)
        return self._changed(
            now_ms,
            replace(
                self,
                body=self.body if body is None else body,
                delivery=delivery or self.delivery,
            ),
        )

    def queued(self, seen: int, now_ms: int, place: int) -> "Intent":
        """Return the draft as the last of the queue.

        Raises:
            CodeSpaceError: as `_require_editable`; INTENT_NOT_EDITABLE when it is queued already.
        """
        self._require_editable(seen)
        if self.state is IntentState.QUEUED:
            raise self._not_editable("is queued already")
        return self._changed(now_ms, replace(self, state=IntentState.QUEUED, place=place))

    def cancelled(self, seen: int, now_ms: int) -> "Intent":
        """Return it withdrawn; its text stays, so that the user has it back.

        Raises:
            CodeSpaceError: as `_require_editable`.
        """
        self._require_editable(seen)
        return self._changed(now_ms, replace(self, state=IntentState.CANCELLED))

    def taken(self, now_ms: int) -> "Intent":
        """Return the queued instruction as an agent has it: frozen."""
        return self._changed(now_ms, replace(self, state=IntentState.CLAIMED))

    def handed_back(self, now_ms: int) -> "Intent":
        """Return a claimed instruction that reached nobody to its old place in the queue."""
        return self._changed(now_ms, replace(self, state=IntentState.QUEUED))

    def moved(self, work_id: WorkId, now_ms: int) -> "Intent":
        """Return one for the next work as the first thing that this work is to take."""
        return self._changed(
            now_ms, replace(self, work_id=work_id, delivery=Delivery.NEXT_CHECKPOINT)
        )

    def completed(self, outcome: IntentState, note: str | None, now_ms: int) -> "Intent":
        """Return it done or blocked. The same again is the same.

        Raises:
            CodeSpaceError: INTENT_NOT_EDITABLE: it is not claimed, or ended in another way.
        """
        if (self.state, self.note) == (outcome, note):
            return self
        if self.state is not IntentState.CLAIMED:
            raise self._not_editable(f"is {self.state.value}; complete what steer_claim_next gave")
        return self._changed(now_ms, replace(self, state=outcome, note=note))

    def placed(self, place: int, now_ms: int) -> "Intent":
        """Return it at another place of the queue."""
        return self._changed(now_ms, replace(self, place=place))

    def require_queued(self) -> None:
        """Return when it waits in a queue.

        Raises:
            CodeSpaceError: INTENT_ALREADY_CLAIMED, or INTENT_NOT_EDITABLE.
        """
        self._require_not_taken()
        if self.state is not IntentState.QUEUED:
            raise self._not_editable(f"is {self.state.value}, not queued")

    def _require_editable(self, seen: int) -> None:
        """Return when the user may still change it.

        Raises:
            CodeSpaceError: INTENT_ALREADY_CLAIMED, INTENT_NOT_EDITABLE (it has ended), or
                INTENT_REVISION_CONFLICT (it was changed since it was seen).
        """
        self._require_not_taken()
        if self.state not in (IntentState.DRAFT, IntentState.QUEUED):
            raise self._not_editable(f"is {self.state.value}; add a new one")
        if seen != self.revision:
            raise CodeSpaceError(
                ErrorCode.INTENT_REVISION_CONFLICT,
                f"{shown(self.intent_id)} was changed since it was seen;"
                " look at it again and repeat with its revision.",
                details={"expected": seen, "actual": self.revision, "state": self.state.value},
            )

    def _require_not_taken(self) -> None:
        if self.state is IntentState.CLAIMED:
            raise CodeSpaceError(
                ErrorCode.INTENT_ALREADY_CLAIMED,
                f"The agent has claimed {shown(self.intent_id)} already; add another instruction.",
                details={"state": self.state.value, "revision": self.revision},
            )

    def _not_editable(self, why: str) -> CodeSpaceError:
        return CodeSpaceError(
            ErrorCode.INTENT_NOT_EDITABLE,
            f"{shown(self.intent_id)} {why}.",
            details={"state": self.state.value, "revision": self.revision},
        )

    def _changed(self, now_ms: int, new: "Intent") -> "Intent":
        return replace(new, revision=self.revision + 1, changed_at=now_ms)


def claimable(state: WorkState, intent: Intent) -> bool:
    """Say whether an agent of a work in this state can claim the instruction."""
    return intent.state is IntentState.QUEUED and intent.delivery in CLAIMABLE[state]


def work_not_found(work_id: str) -> CodeSpaceError:
    """The error for an id that no work has."""
    return CodeSpaceError(
        ErrorCode.WORK_NOT_FOUND, f"No work is known as {shown(work_id)}; open one with work_open."
    )


def work_closed(work_id: str) -> CodeSpaceError:
    """The error for a work that has ended."""
    return CodeSpaceError(
        ErrorCode.WORK_CLOSED, f"{shown(work_id)} is closed; open another work with work_open."
    )


def intent_not_found(intent_id: str) -> CodeSpaceError:
    """The error for an id that no instruction has, or none of this work."""
    return CodeSpaceError(
        ErrorCode.INTENT_NOT_FOUND, f"No instruction is known as {shown(intent_id)} here."
    )
