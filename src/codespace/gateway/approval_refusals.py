"""What is said when a hold cannot do what was asked. Each sentence says what to do next."""

from codespace.domain.approval import Approval, ApprovalState, Resolver
from codespace.domain.errors import CodeSpaceError, ErrorCode

_RESUME = "call operation_resume with this approval_id"
_NEXT = {
    ApprovalState.PENDING: "it has not been granted yet",
    ApprovalState.GRANTED: f"it has been granted: {_RESUME}",
    ApprovalState.RESUMING: f"its call was begun: {_RESUME} for its result",
    ApprovalState.CONSUMED: f"its call was made: {_RESUME} for the result",
    ApprovalState.DENIED: "it was denied, which is final",
}
_WHO = {
    Resolver.CALLER: "ask the user, and then grant it with approval_resolve",
    Resolver.OPERATOR: "wait until the operator grants it; nothing else can",
}


def required(approval: Approval, granted_by: Resolver) -> CodeSpaceError:
    """The answer to a call that is held."""
    if approval.state is ApprovalState.PENDING:
        told = (
            "The operator wants this call to be confirmed, so nothing was done and it is held:"
            f" {_WHO[granted_by]}; then {_RESUME}."
        )
    else:
        told = f"This very call is held already, and {_NEXT[approval.state]}."
    return CodeSpaceError(
        ErrorCode.APPROVAL_REQUIRED,
        told,
        details={"state": approval.state.value, "granted_by": granted_by.value},
        approval_id=approval.approval_id,
    )


def not_found(*, lasting: bool) -> CodeSpaceError:
    """No hold has this id."""
    forgotten = " This gateway's holds are in memory, and its last start forgot them."
    return CodeSpaceError(
        ErrorCode.APPROVAL_NOT_FOUND,
        "No held call has this id; send the call itself again to have it held."
        + ("" if lasting else forgotten),
    )


def not_pending(approval: Approval) -> CodeSpaceError:
    """A decision came too late."""
    return _conflict(approval, f"This hold takes no decision any more: {_NEXT[approval.state]}.")


def not_granted(approval: Approval) -> CodeSpaceError:
    """A resume came too early, or for nothing."""
    return _conflict(approval, f"This held call cannot be made: {_NEXT[approval.state]}.")


def in_progress(approval: Approval) -> CodeSpaceError:
    """Somebody else is making the call."""
    return CodeSpaceError(
        ErrorCode.APPROVAL_CONFLICT,
        f"This held call is being made right now; {_RESUME} again in a moment for its result.",
        details={"state": ApprovalState.RESUMING.value},
        approval_id=approval.approval_id,
    )


def moved_away(approval: Approval) -> CodeSpaceError:
    """The workspace's name stands for another directory now."""
    return _conflict(
        approval,
        "This call was held when its workspace was another directory; send the call itself again.",
    )


def withdrawn(approval: Approval) -> CodeSpaceError:
    """The grant came from a caller, and only the operator's counts now."""
    return CodeSpaceError(
        ErrorCode.APPROVAL_CONFLICT,
        "Only the operator grants calls in this workspace now, so this hold waits again for that.",
        details={"state": ApprovalState.PENDING.value},
        approval_id=approval.approval_id,
    )


def ambiguous(approval: Approval) -> CodeSpaceError:
    """The gateway ended while a command was being started or run."""
    return CodeSpaceError(
        ErrorCode.APPROVAL_AMBIGUOUS,
        "The gateway ended while this held command was being run: it may have run in part, in full"
        " or not at all, and is not run again. Look at what it would have changed; to run it once"
        " more, send the call itself again.",
        details={"tool": approval.tool},
        approval_id=approval.approval_id,
    )


def not_kept(approval: Approval) -> CodeSpaceError:
    """The call was made, and the store cannot take what it came to."""
    return CodeSpaceError(
        ErrorCode.FILE_OPERATION_FAILED,
        "The held call was made, but the gateway's database could not take its result; tell the"
        f" operator, and {_RESUME} again.",
        details={"state": ApprovalState.RESUMING.value},
        approval_id=approval.approval_id,
    )


def reserved() -> CodeSpaceError:
    """The caller wants to decide what is the operator's."""
    return CodeSpaceError(
        ErrorCode.UNAUTHORIZED,
        "Only the operator grants and denies calls in this workspace: with `codespace approvals`,"
        " or the gateway's HTTP API.",
        details={"approvals_granted_by": Resolver.OPERATOR.value},
    )


def without_token() -> CodeSpaceError:
    """Over HTTP without a token, anybody could be the operator: a held command, too."""
    return CodeSpaceError(
        ErrorCode.UNAUTHORIZED,
        "The gateway has no HTTP token, so it cannot tell the operator from a command that it"
        " runs; start it with --http-token-file.",
        details={"approvals_granted_by": Resolver.OPERATOR.value},
    )


def workspace_is_gone(approval: Approval) -> CodeSpaceError:
    """A caller wants to decide for a workspace that nobody serves."""
    return CodeSpaceError(
        ErrorCode.WORKSPACE_NOT_FOUND,
        "The workspace of this held call is not registered any more; only the operator can decide"
        " about it.",
        details={"workspace_id": approval.workspace_id},
    )


def not_held(path: str) -> CodeSpaceError:
    """There is nothing to confirm in what was given to `approval_create`."""
    return CodeSpaceError(
        ErrorCode.INVALID_ARGUMENT,
        "Only calls that change something can be held: apply_patch without check_only,"
        " exec_command, and bash.",
        details={"path": path},
    )


def made_already() -> CodeSpaceError:
    """The patch of this key is in the ledger."""
    return CodeSpaceError(
        ErrorCode.INVALID_ARGUMENT,
        "The patch of this operation_key was applied already, so there is nothing to hold; send"
        " apply_patch itself for its recorded result.",
        details={"path": "arguments.operation_key"},
    )


def too_many(most: int) -> CodeSpaceError:
    """Somebody asks for confirmations faster than people can give them."""
    return CodeSpaceError(
        ErrorCode.LIMIT_EXCEEDED,
        f"{most} calls in this workspace are held already; resume those that were granted, or have"
        " some denied.",
        details={"limit": "active_approvals_max", "maximum": most},
    )


def _conflict(approval: Approval, sentence: str) -> CodeSpaceError:
    return CodeSpaceError(
        ErrorCode.APPROVAL_CONFLICT,
        sentence,
        details={"state": approval.state.value},
        approval_id=approval.approval_id,
    )
