from hypothesis import given
from hypothesis import strategies as st

from codespace.domain.errors import CodeSpaceError, ErrorCode
from codespace.domain.ids import OperationId, WorkspaceId
from codespace.domain.operation import (
    FileImage,
    Operation,
    OperationEvent,
    fingerprint,
    settle,
    version_of,
)
from codespace.domain.patch import ABSENT, PatchStatus

MINTED = Operation(OperationId("op-1"), WorkspaceId("demo"), "/w", "f", created_at=10)


def test_an_unfinished_record_has_one_event_and_no_known_status() -> None:
    assert MINTED.events == (OperationEvent(10, "minted"),)
    assert MINTED.status is PatchStatus.UNKNOWN
    assert MINTED.refusal() is None


def test_a_finished_record_tells_when_and_how() -> None:
    ended = MINTED.finish(PatchStatus.APPLIED, 20)
    assert ended.events == (
        OperationEvent(10, "minted"),
        OperationEvent(20, "finished", PatchStatus.APPLIED),
    )


def test_an_unknown_end_gives_its_reason_by_itself() -> None:
    assert MINTED.finish(PatchStatus.UNKNOWN, 20).events[1].reason == "unknown"


def test_a_recorded_refusal_is_the_same_error_with_its_operation() -> None:
    error = CodeSpaceError(ErrorCode.VERSION_CONFLICT, "Read it.", details={"path": "a"})
    recorded = MINTED.finish(PatchStatus.REJECTED, 20, error=error.of_operation("op-other"))
    refusal = recorded.refusal()
    assert refusal is not None
    assert refusal.body() == error.of_operation("op-1").body()


def test_a_fingerprint_covers_everything_that_changes_the_outcome() -> None:
    first = fingerprint("p", {"a": "1", "b": "2"}, check_only=False)
    assert fingerprint("p", {"b": "2", "a": "1"}, check_only=False) == first
    assert fingerprint("q", {"a": "1", "b": "2"}, check_only=False) != first
    assert fingerprint("p", {"a": "1"}, check_only=False) != first
    assert fingerprint("p", {"a": "1", "b": "2"}, check_only=True) != first


def test_a_fingerprint_takes_any_text() -> None:
    assert fingerprint("\ud800", {"\udfff": "é"}, check_only=False)


def test_a_version_is_the_hash_of_the_bytes_or_absent() -> None:
    assert version_of(None) == ABSENT
    assert version_of(b"").startswith("e3b0c44298fc1c14")


STATES = ("before", "after", "other")


def remains(states: list[str]) -> list[tuple[FileImage, str]]:
    versions = {"before": "old", "after": "new", "other": "third"}
    return [
        (FileImage(str(number), b"", "old", "new"), versions[state])
        for number, state in enumerate(states)
    ]


@given(st.lists(st.sampled_from(STATES), min_size=1, max_size=6))
def test_remains_are_settled_as_the_contract_says(states: list[str]) -> None:
    settlement = settle(remains(states))
    kinds = set(states)
    if kinds == {"after"}:
        assert settlement.status is PatchStatus.APPLIED
    elif "other" in kinds:
        assert settlement.status is PatchStatus.UNKNOWN
    else:
        assert settlement.status is PatchStatus.FAILED_ROLLED_BACK
    expected = {str(number) for number, state in enumerate(states) if state == "after"}
    restored = kinds == {"before", "after"}
    assert set(settlement.restore) == (expected if restored else set[str]())


def test_an_unreadable_file_leaves_everything_alone() -> None:
    images = [FileImage("a", None, ABSENT, "new"), FileImage("b", b"", "old", ABSENT)]
    settlement = settle([(images[0], "new"), (images[1], "other")])
    assert settlement == settle(remains(["other"]))
