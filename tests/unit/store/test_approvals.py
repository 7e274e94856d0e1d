"""Holds in the database: one active hold a request, and one winner of two steps."""

import threading
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest

from codespace.domain.approval import Approval, ApprovalState, HeldOutcome, Resolver, Step
from codespace.domain.ids import ApprovalId, WorkspaceId
from codespace.store.approvals import ENDED_SHOWN, Holds
from codespace.store.engine import Store

DEMO, OTHER = WorkspaceId("demo"), WorkspaceId("other")
MOST = 1_000
DONE = HeldOutcome({"output": "ä", "exit_code": 0}, is_error=False)
FAILED = HeldOutcome({"code": "TIMEOUT", "message": "Late."}, is_error=True)


@pytest.fixture(params=["file", "memory"])
def holds(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Holds]:
    with closing(Store(str(tmp_path / "l.db") if request.param == "file" else None)) as store:
        yield Holds(store)


def pending(number: int = 1, mark: str | None = None, workspace: WorkspaceId = DEMO) -> Approval:
    return Approval(
        approval_id=ApprovalId(f"appr-{number}"),
        workspace_id=workspace,
        root="/work",
        tool="bash",
        fingerprint=mark or f"mark {number}",
        digest="d",
        created_at=number,
        arguments='{"command": "secret"}',
        summary="secret",
    )


def kept(holds: Holds, wanted: Approval) -> Approval:
    found = holds.hold(wanted, most=MOST)
    assert found is not None
    return found


def taken(holds: Holds, approval: Approval, step: Step) -> bool:
    by = Resolver.CALLER if step in (Step.GRANT, Step.DENY) else None
    outcome = DONE if step is Step.CONSUME else None
    moved = holds.step(approval.approval_id, step, 5, by=by, outcome=outcome)
    assert moved is not None
    return moved.after is not None


def test_a_hold_comes_back_as_it_went_in(holds: Holds) -> None:
    assert kept(holds, pending()) == pending()
    assert holds.find(ApprovalId("appr-1")) == pending()
    assert holds.find(ApprovalId("appr-none")) is None
    assert holds.step(ApprovalId("appr-none"), Step.BEGIN, 1) is None


@pytest.mark.parametrize("outcome", [DONE, FAILED])
def test_the_end_and_its_outcome_come_together_and_erase_the_arguments(
    holds: Holds, outcome: HeldOutcome
) -> None:
    hold = kept(holds, pending())
    assert taken(holds, hold, Step.GRANT)
    assert taken(holds, hold, Step.BEGIN)
    moved = holds.step(hold.approval_id, Step.CONSUME, 9, outcome=outcome)
    assert moved is not None
    assert moved.before.arguments == hold.arguments
    ended = holds.find(hold.approval_id)
    assert ended == moved.after
    assert ended is not None
    assert (ended.state, ended.outcome) == (ApprovalState.CONSUMED, outcome)
    assert (ended.arguments, ended.summary, ended.digest) == (None, None, "d")


def test_the_same_request_finds_its_hold_while_that_is_active(holds: Holds) -> None:
    first = kept(holds, pending(1, "same"))
    for number, step in ((2, Step.GRANT), (3, Step.BEGIN), (4, Step.CONSUME)):
        assert kept(holds, pending(number, "same")).approval_id == first.approval_id
        assert taken(holds, first, step)
    again = kept(holds, pending(5, "same"))
    assert again.approval_id == "appr-5"
    assert taken(holds, again, Step.DENY)
    assert kept(holds, pending(6, "same")).approval_id == "appr-6"


def test_a_workspace_has_only_so_many_active_holds(holds: Holds) -> None:
    first = holds.hold(pending(1), most=2)
    assert first is not None
    assert holds.hold(pending(2), most=2) is not None
    assert holds.hold(pending(3), most=2) is None
    assert holds.find(ApprovalId("appr-3")) is None
    assert holds.hold(pending(4, first.fingerprint), most=2) == first
    assert holds.hold(pending(5, workspace=OTHER), most=2) is not None
    assert taken(holds, first, Step.DENY)
    assert holds.hold(pending(6), most=2) is not None


def test_a_step_that_the_state_does_not_permit_changes_nothing(holds: Holds) -> None:
    hold = kept(holds, pending())
    for step in (Step.BEGIN, Step.CONSUME, Step.GIVE_BACK, Step.WITHDRAW):
        assert not taken(holds, hold, step)
    assert holds.find(hold.approval_id) == hold


@pytest.mark.parametrize(
    ("way", "steps", "ends"),
    [
        ([], [Step.GRANT, Step.GRANT], {"granted"}),
        ([], [Step.GRANT, Step.DENY], {"granted", "denied"}),
        ([], [Step.DENY, Step.DENY], {"denied"}),
        ([Step.GRANT], [Step.BEGIN, Step.BEGIN], {"resuming"}),
        ([Step.GRANT], [Step.BEGIN, Step.WITHDRAW], {"resuming", "pending"}),
        ([Step.GRANT, Step.BEGIN], [Step.CONSUME, Step.CONSUME], {"consumed"}),
    ],
)
def test_of_steps_at_once_one_wins(
    holds: Holds, way: list[Step], steps: list[Step], ends: set[str]
) -> None:
    for number in range(20):
        hold = kept(holds, pending(number))
        for step in way:
            assert taken(holds, hold, step)
        together, won = threading.Barrier(len(steps)), list[Step]()

        def race(step: Step, hold: Approval, together: threading.Barrier, won: list[Step]) -> None:
            together.wait(10)
            if taken(holds, hold, step):
                won.append(step)

        threads = [
            threading.Thread(target=race, args=(step, hold, together, won)) for step in steps
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(10)
        assert len(won) == 1
        found = holds.find(hold.approval_id)
        assert found is not None
        assert found.state.value in ends


def test_of_equal_requests_at_once_there_is_one_hold(holds: Holds) -> None:
    together, found = threading.Barrier(8), set[str]()

    def race(number: int) -> None:
        together.wait(10)
        found.add(kept(holds, pending(number, "same")).approval_id)

    threads = [threading.Thread(target=race, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(10)
    assert len(found) == 1
    assert len(holds.listed()) == 1


def test_the_list_has_the_active_holds_and_the_last_that_ended(holds: Holds) -> None:
    for number in range(ENDED_SHOWN + 5):
        hold = kept(holds, pending(number))
        if number != 1:
            assert taken(holds, hold, Step.DENY)
    kept(holds, pending(900, workspace=OTHER))
    numbers = [hold.created_at for hold in holds.listed(DEMO)]
    assert numbers == [1, *range(5, ENDED_SHOWN + 5)]
    everything = holds.listed()
    assert everything[-1] == replace(pending(900, workspace=OTHER), arguments=None)


def test_what_was_held_is_there_after_the_end_of_the_process(tmp_path: Path) -> None:
    path = str(tmp_path / "l.db")
    with closing(Store(path)) as store:
        assert Holds(store).lasting
        kept(Holds(store), pending())
    with closing(Store(path)) as store:
        assert Holds(store).find(ApprovalId("appr-1")) == pending()
