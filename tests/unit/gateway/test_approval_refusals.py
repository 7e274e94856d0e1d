"""Each refusal has its code, the hold that it is about, and says what to do next."""

from collections.abc import Callable
from dataclasses import replace

import pytest

from codespace.domain.approval import Approval, ApprovalState, Resolver
from codespace.domain.errors import CodeSpaceError, ErrorCode
from codespace.domain.ids import ApprovalId, WorkspaceId
from codespace.gateway import approval_refusals as refusals

HOLD = Approval(
    approval_id=ApprovalId("appr-1"),
    workspace_id=WorkspaceId("demo"),
    root="/secret/root",
    tool="bash",
    fingerprint="f",
    digest="d",
    created_at=1,
    arguments='{"command": "hunter2"}',
    summary="hunter2",
)
OF_A_HOLD: list[tuple[Callable[[Approval], CodeSpaceError], ErrorCode]] = [
    (lambda hold: refusals.required(hold, Resolver.CALLER), ErrorCode.APPROVAL_REQUIRED),
    (lambda hold: refusals.required(hold, Resolver.OPERATOR), ErrorCode.APPROVAL_REQUIRED),
    (refusals.not_pending, ErrorCode.APPROVAL_CONFLICT),
    (refusals.not_granted, ErrorCode.APPROVAL_CONFLICT),
    (refusals.in_progress, ErrorCode.APPROVAL_CONFLICT),
    (refusals.moved_away, ErrorCode.APPROVAL_CONFLICT),
    (refusals.withdrawn, ErrorCode.APPROVAL_CONFLICT),
    (refusals.ambiguous, ErrorCode.APPROVAL_AMBIGUOUS),
    (refusals.not_kept, ErrorCode.FILE_OPERATION_FAILED),
]
OF_NONE = [
    (refusals.not_found(lasting=True), ErrorCode.APPROVAL_NOT_FOUND),
    (refusals.not_found(lasting=False), ErrorCode.APPROVAL_NOT_FOUND),
    (refusals.reserved(), ErrorCode.UNAUTHORIZED),
    (refusals.without_token(), ErrorCode.UNAUTHORIZED),
    (refusals.workspace_is_gone(HOLD), ErrorCode.WORKSPACE_NOT_FOUND),
    (refusals.not_held("tool"), ErrorCode.INVALID_ARGUMENT),
    (refusals.made_already(), ErrorCode.INVALID_ARGUMENT),
    (refusals.too_many(100), ErrorCode.LIMIT_EXCEEDED),
]


@pytest.mark.parametrize("state", ApprovalState)
@pytest.mark.parametrize(("refusal", "code"), OF_A_HOLD)
def test_a_refusal_about_a_hold_names_it_and_nothing_that_it_holds(
    state: ApprovalState, refusal: Callable[[Approval], CodeSpaceError], code: ErrorCode
) -> None:
    error = refusal(replace(HOLD, state=state))
    assert (error.code, error.approval_id) == (code, "appr-1")
    assert_says_plainly(error)


@pytest.mark.parametrize(("error", "code"), OF_NONE)
def test_a_refusal_about_no_hold_names_none(error: CodeSpaceError, code: ErrorCode) -> None:
    assert (error.code, error.approval_id) == (code, None)
    assert_says_plainly(error)


def assert_says_plainly(error: CodeSpaceError) -> None:
    assert error.message.endswith(".")
    assert "hunter2" not in str(error.body())
    assert "/secret" not in str(error.body())


def test_who_may_grant_is_told_with_the_hold() -> None:
    for who, word in (
        (Resolver.CALLER, "approval_resolve"),
        (Resolver.OPERATOR, "operator grants"),
    ):
        error = refusals.required(HOLD, who)
        assert error.details == {"state": "pending", "granted_by": who.value}
        assert word in error.message
