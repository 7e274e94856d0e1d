"""Held calls in the gateway's database. One method is one transaction; of two steps one wins.

Which step a state permits is `domain.approval`'s to decide.
"""

import json
from dataclasses import dataclass

from sqlalchemy import Connection, Row, func, insert, select, update

from codespace.domain.approval import (
    ACTIVE,
    Approval,
    ApprovalState,
    HeldOutcome,
    Resolver,
    Step,
)
from codespace.domain.ids import ApprovalId, WorkspaceId
from codespace.store.engine import Store
from codespace.store.schema import APPROVALS

ENDED_SHOWN = 100
"""Of the holds that ended, the list has only so many: the last ones."""

_BRIEF = [column for column in APPROVALS.columns if column.name not in ("arguments", "outcome")]


@dataclass(frozen=True, slots=True)
class Moved:
    """A hold before a step, and after it: `None` where its state did not permit the step."""

    before: Approval
    after: Approval | None


@dataclass(frozen=True, slots=True)
class Holds:
    """The held calls of one store. Its methods block; call them from a worker thread."""

    store: Store

    @property
    def lasting(self) -> bool:
        """Whether holds survive the end of this process."""
        return self.store.lasting

    def hold(self, wanted: Approval, *, most: int) -> Approval | None:
        """Return the active hold of the same request, or keep `wanted` and return that.

        `None`: the workspace has `most` active holds, and nothing was kept. A power cut may
        forget a hold that nobody has granted: its request is then simply held again.
        """
        table = APPROVALS.c
        with self.store.write(synced=False) as connection:
            active = table.state.in_(ACTIVE)
            same = select(APPROVALS).where(table.fingerprint == wanted.fingerprint, active)
            row = connection.execute(same).one_or_none()
            if row is not None:
                return _approval(row)
            counted = select(func.count()).where(table.workspace_id == wanted.workspace_id, active)
            if connection.execute(counted).scalar_one() >= most:
                return None
            connection.execute(insert(APPROVALS).values(_values(wanted)))
        return wanted

    def find(self, approval_id: ApprovalId) -> Approval | None:
        """Return the hold of that id."""
        with self.store.read() as connection:
            return _find(connection, approval_id)

    def listed(self, workspace_id: WorkspaceId | None = None) -> tuple[Approval, ...]:
        """Return the active holds and the last that ended, oldest first.

        Without arguments and outcomes: those may be large.
        """
        table = APPROVALS.c
        chosen = select(*_BRIEF).order_by(table.created_at.desc(), table.approval_id)
        if workspace_id is not None:
            chosen = chosen.where(table.workspace_id == workspace_id)
        active = chosen.where(table.state.in_(ACTIVE))
        ended = chosen.where(table.state.not_in(ACTIVE)).limit(ENDED_SHOWN)
        with self.store.read() as connection:
            rows = [*connection.execute(active), *connection.execute(ended)]
        found = (_brief(row) for row in rows)
        return tuple(sorted(found, key=lambda hold: (hold.created_at, hold.approval_id)))

    def step(
        self,
        approval_id: ApprovalId,
        step: Step,
        at: int,
        *,
        by: Resolver | None = None,
        outcome: HeldOutcome | None = None,
    ) -> Moved | None:
        """Take a step where the state permits it: looked at and written in one transaction.

        It is durable on return. `None`: there is no such hold.
        """
        with self.store.write() as connection:
            before = _find(connection, approval_id)
            if before is None:
                return None
            after = before.after(step, at, by=by, outcome=outcome)
            if after is not None:
                connection.execute(
                    update(APPROVALS)
                    .where(APPROVALS.c.approval_id == approval_id)
                    .values(_values(after))
                )
        return Moved(before, after)


def _find(connection: Connection, approval_id: ApprovalId) -> Approval | None:
    row = connection.execute(
        select(APPROVALS).where(APPROVALS.c.approval_id == approval_id)
    ).one_or_none()
    return None if row is None else _approval(row)


def _values(approval: Approval) -> dict[str, object]:
    outcome = approval.outcome
    return {
        "approval_id": approval.approval_id,
        "workspace_id": approval.workspace_id,
        "root": approval.root,
        "tool": approval.tool,
        "fingerprint": approval.fingerprint,
        "digest": approval.digest,
        "created_at": approval.created_at,
        "arguments": approval.arguments,
        "summary": approval.summary,
        "state": approval.state.value,
        "resolved_at": approval.resolved_at,
        "resolved_by": None if approval.resolved_by is None else approval.resolved_by.value,
        "finished_at": approval.finished_at,
        "outcome": None if outcome is None else json.dumps(dict(outcome.body)),
        "is_error": None if outcome is None else outcome.is_error,
    }


def _approval(row: Row[tuple[object, ...]]) -> Approval:
    outcome = None
    if row.outcome is not None:
        outcome = HeldOutcome(json.loads(row.outcome), is_error=bool(row.is_error))
    return _brief(row, arguments=row.arguments, outcome=outcome)


def _brief(
    row: Row[tuple[object, ...]],
    *,
    arguments: str | None = None,
    outcome: HeldOutcome | None = None,
) -> Approval:
    return Approval(
        approval_id=ApprovalId(row.approval_id),
        workspace_id=WorkspaceId(row.workspace_id),
        root=row.root,
        tool=row.tool,
        fingerprint=row.fingerprint,
        digest=row.digest,
        created_at=row.created_at,
        arguments=arguments,
        summary=row.summary,
        state=ApprovalState(row.state),
        resolved_at=row.resolved_at,
        resolved_by=None if row.resolved_by is None else Resolver(row.resolved_by),
        finished_at=row.finished_at,
        outcome=outcome,
    )
