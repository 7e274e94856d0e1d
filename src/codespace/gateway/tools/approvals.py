"""`approval_create`, `approval_resolve` and `operation_resume`: calls that wait to be confirmed."""

from dataclasses import dataclass
from typing import Literal

from pydantic import Field

from codespace.domain.approval import Resolver
from codespace.domain.ids import ApprovalId
from codespace.domain.tool import Call, Effect, Params, Result, Tool, define
from codespace.gateway.approval_views import ApprovalView
from codespace.gateway.approvals import Approvals


class ApprovalCreateParams(Params):
    """Arguments of `approval_create`."""

    tool: Literal["apply_patch", "exec_command", "bash"]
    """The tool to be called once it is granted."""
    arguments: dict[str, object]
    """That tool's arguments."""


class ApprovalParams(Params):
    """Arguments of tools that take only a hold."""

    approval_id: str
    """The hold, as APPROVAL_REQUIRED or approval_create named it."""


class ApprovalResolveParams(ApprovalParams):
    """Arguments of `approval_resolve`."""

    decision: Literal["grant", "deny"]
    """What the user decided. The first decision is the only one."""


class OperationResumeResult(Result):
    """The held call was made, now or by an earlier resume. A failed call is its own error."""

    approval_id: str
    state: Literal["consumed"] = "consumed"
    tool: str
    """The tool that was called."""
    result: dict[str, object] = Field(default_factory=dict)
    """What that tool answered."""


@dataclass(frozen=True, slots=True)
class ApprovalTools:
    """Confirmations, as far as the MCP caller has a part in them."""

    approvals: Approvals

    def tools(self) -> list[Tool]:
        """Return the family."""
        return [
            define(
                "approval_create",
                Effect.WRITE,
                ApprovalCreateParams,
                ApprovalView,
                self.approval_create,
                title="Have a call confirmed",
                idempotent=True,
            ),
            define(
                "approval_resolve",
                Effect.WRITE,
                ApprovalResolveParams,
                ApprovalView,
                self.approval_resolve,
                title="Grant or deny a held call",
            ),
            define(
                "operation_resume",
                Effect.EXECUTE,
                ApprovalParams,
                OperationResumeResult,
                self.operation_resume,
                title="Make a granted call",
                idempotent=True,
            ),
        ]

    async def approval_create(self, params: ApprovalCreateParams, call: Call) -> ApprovalView:
        """Hold a patch or a command until somebody grants it, also where no call has to be.

        Nothing is done yet. The same request has one hold as long as that is active. When it is
        granted, make the call with operation_resume.
        """
        return await self.approvals.create(params.tool, params.arguments)

    async def approval_resolve(self, params: ApprovalResolveParams, call: Call) -> ApprovalView:
        """Grant or deny a held call, once the user has said so. Never decide it yourself.

        Where the operator alone grants, this is UNAUTHORIZED.
        """
        return await self.approvals.resolve(
            ApprovalId(params.approval_id), params.decision, by=Resolver.CALLER
        )

    async def operation_resume(self, params: ApprovalParams, call: Call) -> OperationResumeResult:
        """Make a held call that was granted: exactly once, however often this is called.

        Again, it returns the recorded result. A call that is refused or fails is answered with its
        own error, and is over, too; after WORKSPACE_BUSY and UNAUTHORIZED it stays granted. Until
        it is granted this is APPROVAL_CONFLICT. APPROVAL_AMBIGUOUS: the gateway ended while the
        command ran, and nobody knows how far it came.
        """
        resumed = await self.approvals.resume(ApprovalId(params.approval_id))
        return OperationResumeResult(
            approval_id=resumed.approval.approval_id,
            tool=resumed.approval.tool,
            result=dict(resumed.result),
        )
