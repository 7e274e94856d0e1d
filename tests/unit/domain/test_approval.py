"""The states of a hold: which step leads where, and what is left after the end."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from codespace.domain.approval import (
    ACTIVE,
    Approval,
    ApprovalState,
    HeldOutcome,
    Resolver,
    Step,
    canonical,
    digest_of,
    request_mark,
)
from codespace.domain.ids import ApprovalId, WorkspaceId

DEMO = WorkspaceId("demo")
PENDING = Approval(
    approval_id=ApprovalId("appr-1"),
    workspace_id=DEMO,
    root="/work",
    tool="bash",
    fingerprint="f",
    digest="d",
    created_at=1,
    arguments="{}",
    summary="ls",
)
DONE = HeldOutcome({"output": ""}, is_error=False)
PERMITTED = {
    (ApprovalState.PENDING, Step.GRANT): ApprovalState.GRANTED,
    (ApprovalState.PENDING, Step.DENY): ApprovalState.DENIED,
    (ApprovalState.GRANTED, Step.WITHDRAW): ApprovalState.PENDING,
    (ApprovalState.GRANTED, Step.BEGIN): ApprovalState.RESUMING,
    (ApprovalState.RESUMING, Step.GIVE_BACK): ApprovalState.GRANTED,
    (ApprovalState.RESUMING, Step.CONSUME): ApprovalState.CONSUMED,
}
TEXTS = st.dictionaries(st.text(), st.text() | st.integers() | st.booleans())


def taken(approval: Approval, step: Step, at: int = 9) -> Approval | None:
    """Take a step with whatever belongs to it."""
    by = Resolver.CALLER if step in (Step.GRANT, Step.DENY) else None
    return approval.after(step, at, by=by, outcome=DONE if step is Step.CONSUME else None)


@pytest.mark.parametrize("state", ApprovalState)
@pytest.mark.parametrize("step", Step)
def test_only_the_permitted_steps_lead_somewhere(state: ApprovalState, step: Step) -> None:
    after = taken(replace(PENDING, state=state), step)
    assert (None if after is None else after.state) == PERMITTED.get((state, step))


def test_nothing_leads_out_of_the_final_states() -> None:
    final = set(ApprovalState) - set(ACTIVE)
    assert final == {ApprovalState.DENIED, ApprovalState.CONSUMED}
    assert not {state for state, _ in PERMITTED} & final


def test_a_decision_says_who_took_it_and_when() -> None:
    granted = PENDING.after(Step.GRANT, 5, by=Resolver.OPERATOR)
    assert granted == replace(
        PENDING, state=ApprovalState.GRANTED, resolved_at=5, resolved_by=Resolver.OPERATOR
    )
    assert granted is not None
    assert granted.after(Step.WITHDRAW, 6) == PENDING


@pytest.mark.parametrize("way", [[Step.DENY], [Step.GRANT, Step.BEGIN, Step.CONSUME]])
def test_arguments_are_there_until_the_end_and_then_only_their_digest(way: list[Step]) -> None:
    approval = PENDING
    for step in way:
        assert approval.arguments == "{}"
        after = taken(approval, step)
        assert after is not None
        approval = after
    assert (approval.arguments, approval.summary) == (None, None)
    assert (approval.digest, approval.finished_at) == ("d", 9)


def test_there_is_no_end_without_an_outcome_and_no_outcome_without_the_end() -> None:
    resuming = replace(PENDING, state=ApprovalState.RESUMING)
    with pytest.raises(ValueError, match="outcome"):
        resuming.after(Step.CONSUME, 2)
    with pytest.raises(ValueError, match="outcome"):
        resuming.after(Step.GIVE_BACK, 2, outcome=DONE)
    with pytest.raises(ValueError, match="somebody"):
        PENDING.after(Step.GRANT, 2)


@given(TEXTS)
def test_the_order_of_arguments_makes_no_other_request(arguments: dict[str, object]) -> None:
    turned = dict(reversed(arguments.items()))
    assert canonical(arguments) == canonical(turned)
    assert request_mark("bash", DEMO, "/w", arguments) == request_mark("bash", DEMO, "/w", turned)


def test_what_is_done_where_and_by_which_tool_marks_a_request() -> None:
    marks = {
        request_mark("bash", DEMO, "/w", {"command": "ls"}),
        request_mark("bash", DEMO, "/w", {"command": "ls "}),
        request_mark("bash", DEMO, "/other", {"command": "ls"}),
        request_mark("bash", WorkspaceId("other"), "/w", {"command": "ls"}),
        request_mark("exec_command", DEMO, "/w", {"command": "ls"}),
    }
    assert len(marks) == 5


def test_the_work_of_a_call_does_not_mark_its_request() -> None:
    plain = request_mark("bash", DEMO, "/w", {"command": "ls"})
    assert request_mark("bash", DEMO, "/w", {"command": "ls", "work_id": "work-1"}) == plain


def test_a_digest_is_of_the_text() -> None:
    assert digest_of("{}") == "44136fa355b3678a1146ad16f7e8649e94fb4fc21fe77e8310c060f61caaff8a"
