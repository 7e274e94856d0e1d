"""The use-cases of confirmations: hold, grant or deny, resume exactly once, show.

Which step a state permits is `domain.approval`'s; the call itself is made by the dispatcher.
"""

import asyncio
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import ParamSpec, TypeVar, cast

import anyio.to_thread
from anyio import CapacityLimiter

from codespace.domain.approval import (
    Approval,
    ApprovalState,
    Decision,
    HeldOutcome,
    Resolver,
    Step,
    canonical,
    digest_of,
    request_mark,
)
from codespace.domain.errors import CodeSpaceError, ErrorCode, from_body
from codespace.domain.ids import APPROVAL_PREFIX, RUN_PREFIX, ApprovalId, WorkspaceId
from codespace.domain.limits import Limits
from codespace.domain.tool import Json
from codespace.domain.workspace import Workspace
from codespace.gateway import approval_refusals as refusals
from codespace.gateway.approval_views import (
    ApprovalDetail,
    ApprovalView,
    detail,
    summary_of,
    view,
)
from codespace.gateway.dispatch import Admitted, Dispatcher, UnknownToolError
from codespace.gateway.leases import Leases
from codespace.gateway.writing import ledger_failed
from codespace.store.approvals import Holds, Moved
from codespace.store.errors import StoreError

P = ParamSpec("P")
T = TypeVar("T")

_THREADS = 4
_KEY = "operation_key"
"""The argument by which a call is found in the ledger, also after a crash."""


@dataclass(frozen=True, slots=True)
class Resumed:
    """A held call that was made, now or before, and what it came to."""

    approval: Approval
    result: Json


@dataclass(frozen=True, slots=True)
class OperatorAccess:
    """How the operator is told from an MCP caller.

    Attributes:
        known: an HTTP request carries a token, which commands cannot read.
    """

    known: bool = False


@dataclass(frozen=True, slots=True)
class Approvals:
    """Holds calls until somebody grants them, and makes each of them once.

    Attributes:
        holds: where they are kept.
        dispatcher: the one path of every call.
        workspaces: the operator's policy as it is now.
        leases: who may change which workspace.
        limits: counts.
        now_ms: Unix milliseconds.
        mint: makes an unguessable id of a prefix.
        operator: whether a request over HTTP can be taken for the operator's.
    """

    holds: Holds
    dispatcher: Callable[[], Dispatcher]
    workspaces: Mapping[WorkspaceId, Workspace]
    leases: Leases
    limits: Limits
    now_ms: Callable[[], int]
    mint: Callable[[str], str]
    operator: OperatorAccess = OperatorAccess()
    _resumes: dict[ApprovalId, asyncio.Task[Resumed]] = field(
        default_factory=dict[ApprovalId, asyncio.Task[Resumed]], init=False
    )
    _unkept: dict[ApprovalId, HeldOutcome] = field(
        default_factory=dict[ApprovalId, HeldOutcome], init=False
    )
    _threads: CapacityLimiter = field(default_factory=lambda: CapacityLimiter(_THREADS), init=False)

    async def required(self, admitted: Admitted) -> CodeSpaceError:
        """Hold a call and return APPROVAL_REQUIRED: what its client is told."""
        approval = await self._hold(admitted)
        return refusals.required(approval, self._granted_by(approval.workspace_id))

    async def create(self, tool: str, arguments: Json) -> ApprovalView:
        """Hold a call that nothing would have held; the same request has one active hold.

        Raises:
            CodeSpaceError: what the call itself would be refused with before its hold;
                INVALID_ARGUMENT for a call that changes nothing, or was made already.
        """
        try:
            admitted = await self.dispatcher().admit(tool, arguments)
        except UnknownToolError:
            raise refusals.not_held("tool") from None
        if not admitted.bound.mutates:
            raise refusals.not_held("tool")
        if await admitted.known() is not None:
            raise refusals.made_already()
        return self._view(await self._hold(admitted))

    async def resolve(
        self, approval_id: ApprovalId, decision: Decision, *, by: Resolver
    ) -> ApprovalView:
        """Grant or deny a pending hold. The first decision is the only one.

        Raises:
            CodeSpaceError: APPROVAL_NOT_FOUND; UNAUTHORIZED for a decision that is not this
                one's to take; APPROVAL_CONFLICT when it is not pending.
        """
        approval = await self._found(approval_id)
        self._require_may_decide(approval, by)
        step = Step.GRANT if decision == "grant" else Step.DENY
        moved = await self._step(approval_id, step, by=by)
        if moved.after is None:
            raise refusals.not_pending(moved.before)
        return self._view(moved.after)

    async def resume(self, approval_id: ApprovalId) -> Resumed:
        """Make a granted call, exactly once; later return what it came to.

        A caller that is cancelled leaves; the call goes on to its end and is recorded.

        Raises:
            CodeSpaceError: what the call came to; APPROVAL_NOT_FOUND; APPROVAL_CONFLICT when it
                is not granted, or being made; APPROVAL_AMBIGUOUS when the gateway ended while it
                was made. What policy does not permit now stays granted, as does WORKSPACE_BUSY.
        """
        approval = await self._found(approval_id)
        if approval.state is ApprovalState.CONSUMED:
            return _ended(approval)
        if approval.state not in (ApprovalState.GRANTED, ApprovalState.RESUMING):
            raise refusals.not_granted(approval)
        if approval.state is ApprovalState.GRANTED or _is_keyed(approval):
            await self._require_policy(approval)
        if approval_id in self._resumes:
            raise refusals.in_progress(approval)
        task = asyncio.create_task(self._carry_out(approval))
        self._resumes[approval_id] = task
        task.add_done_callback(lambda done: self._landed(approval_id, done))
        await asyncio.wait({task})
        return task.result()

    async def listed(self, workspace_id: WorkspaceId | None = None) -> list[ApprovalView]:
        """Return the active holds and the last that ended, oldest first."""
        found = await self._in_thread(self.holds.listed, workspace_id)
        return [self._view(approval) for approval in found]

    async def shown(self, approval_id: ApprovalId) -> ApprovalDetail:
        """Return a hold with its exact effect.

        Raises:
            CodeSpaceError: APPROVAL_NOT_FOUND.
        """
        approval = await self._found(approval_id)
        return detail(approval, self._view(approval))

    async def drain(self) -> None:
        """Wait for every call that is being made; call it before the store is closed."""
        while self._resumes:
            await asyncio.wait(set(self._resumes.values()))

    async def _hold(self, admitted: Admitted) -> Approval:
        workspace, given = admitted.call.permitted, admitted.bound.given()
        arguments = canonical(given)
        tool, root = admitted.tool.name, workspace.root.path
        wanted = Approval(
            approval_id=ApprovalId(self.mint(APPROVAL_PREFIX)),
            workspace_id=workspace.workspace_id,
            root=root,
            tool=tool,
            fingerprint=request_mark(tool, workspace.workspace_id, root, _asked(admitted)),
            digest=digest_of(arguments),
            created_at=self.now_ms(),
            arguments=arguments,
            summary=summary_of(given),
        )
        most = self.limits.active_approvals_max
        kept = await self._in_thread(self.holds.hold, wanted, most=most)
        if kept is None:
            raise refusals.too_many(most)
        return kept

    async def _require_policy(self, approval: Approval) -> None:
        """Judge a held call as if it came now; whatever was granted, this may refuse it."""
        admitted = await self.dispatcher().admit(approval.tool, _arguments(approval))
        if admitted.call.permitted.root.path != approval.root:
            raise refusals.moved_away(approval)
        reserved = self._granted_by(approval.workspace_id) is Resolver.OPERATOR
        if reserved and approval.resolved_by is Resolver.CALLER:
            moved = await self._step(approval.approval_id, Step.WITHDRAW)
            if moved.after is not None:
                raise refusals.withdrawn(approval)

    async def _carry_out(self, approval: Approval) -> Resumed:
        if approval.state is ApprovalState.GRANTED:
            # Not yet the lease: a busy workspace is known without a word in the store.
            await self.leases.require_free(approval.workspace_id)
        moved = await self._step(approval.approval_id, Step.BEGIN)
        if moved.after is not None:
            return await self._make(moved.after)
        now = moved.before
        if now.state is ApprovalState.CONSUMED:
            return _ended(now)
        if now.state is not ApprovalState.RESUMING:
            raise refusals.not_granted(now)
        if now.approval_id in self._unkept:
            return await self._consume(now, self._unkept[now.approval_id])
        # This gateway makes it nowhere, and no other has the store: its resume was cut.
        if _is_keyed(now):
            return await self._make(now)
        ambiguous = refusals.ambiguous(now)
        return await self._consume(now, HeldOutcome(ambiguous.body(), is_error=True))

    async def _make(self, approval: Approval) -> Resumed:
        arguments = _arguments(approval)
        if _KEY in arguments and arguments[_KEY] is None:
            # With a key of its own, a call that was cut is settled by the ledger, or not made yet.
            arguments[_KEY] = approval.approval_id
        outcome = await self.dispatcher().confirmed(approval.tool, arguments)
        if outcome.is_error and outcome.body["code"] == ErrorCode.WORKSPACE_BUSY:
            await self._step(approval.approval_id, Step.GIVE_BACK)
            raise from_body(outcome.body)
        return await self._consume(approval, HeldOutcome(outcome.body, outcome.is_error))

    async def _consume(self, approval: Approval, outcome: HeldOutcome) -> Resumed:
        self._unkept[approval.approval_id] = outcome
        try:
            moved = await self._moved(approval.approval_id, Step.CONSUME, outcome=outcome)
        except StoreError as error:
            raise refusals.not_kept(approval) from error
        del self._unkept[approval.approval_id]
        return _ended(moved.after or moved.before)

    def _landed(self, approval_id: ApprovalId, task: asyncio.Task[Resumed]) -> None:
        del self._resumes[approval_id]
        if not task.cancelled():
            # Looked at, so that the loop does not report it when every client is gone.
            task.exception()

    def _require_may_decide(self, approval: Approval, by: Resolver) -> None:
        if by is Resolver.CALLER and approval.workspace_id not in self.workspaces:
            raise refusals.workspace_is_gone(approval)
        if self._granted_by(approval.workspace_id) is Resolver.CALLER:
            return
        if by is Resolver.CALLER:
            raise refusals.reserved()
        if not self.operator.known:
            raise refusals.without_token()

    def _granted_by(self, workspace_id: WorkspaceId) -> Resolver:
        workspace = self.workspaces.get(workspace_id)
        return Resolver.OPERATOR if workspace is None else workspace.approvals_granted_by

    def _view(self, approval: Approval) -> ApprovalView:
        resuming = approval.state is ApprovalState.RESUMING
        interrupted = resuming and approval.approval_id not in self._resumes
        granted_by = self._granted_by(approval.workspace_id)
        return view(approval, granted_by.value, interrupted=interrupted)

    async def _found(self, approval_id: ApprovalId) -> Approval:
        approval = await self._in_thread(self.holds.find, approval_id)
        if approval is None:
            raise refusals.not_found(lasting=self.holds.lasting)
        return approval

    async def _step(
        self, approval_id: ApprovalId, step: Step, *, by: Resolver | None = None
    ) -> Moved:
        try:
            return await self._moved(approval_id, step, by=by)
        except StoreError as error:
            raise ledger_failed(error) from error

    async def _moved(
        self,
        approval_id: ApprovalId,
        step: Step,
        *,
        by: Resolver | None = None,
        outcome: HeldOutcome | None = None,
    ) -> Moved:
        moved = await anyio.to_thread.run_sync(
            partial(self.holds.step, approval_id, step, self.now_ms(), by=by, outcome=outcome),
            limiter=self._threads,
        )
        if moved is None:
            raise refusals.not_found(lasting=self.holds.lasting)
        return moved

    async def _in_thread(self, work: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        try:
            return await anyio.to_thread.run_sync(
                lambda: work(*args, **kwargs), limiter=self._threads
            )
        except StoreError as error:
            raise ledger_failed(error) from error


def _is_keyed(approval: Approval) -> bool:
    return _KEY in _arguments(approval)


def _asked(admitted: Admitted) -> dict[str, object]:
    """Return the arguments that make two requests the same one."""
    given = dict(admitted.bound.given())
    if admitted.call.owned and str(given.get(_KEY)).startswith(RUN_PREFIX):
        # The run's own key for this call, which the next attempt of the script has not.
        given[_KEY] = None
    return given


def _arguments(approval: Approval) -> dict[str, object]:
    return cast("dict[str, object]", json.loads(approval.arguments or "{}"))


def _ended(approval: Approval) -> Resumed:
    outcome = approval.outcome
    if outcome is None:
        raise RuntimeError("a hold was consumed without an outcome")
    if outcome.is_error:
        raise from_body({**outcome.body, "approval_id": approval.approval_id})
    return Resumed(approval, outcome.body)
