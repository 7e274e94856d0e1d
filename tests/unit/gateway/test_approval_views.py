"""What people are shown of a hold: the exact effect, with nothing hidden in it."""

import json
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from codespace.domain.approval import Approval, ApprovalState, HeldOutcome, Resolver
from codespace.domain.ids import ApprovalId, WorkspaceId
from codespace.gateway.approval_views import SUMMARY_CHARS, detail, summary_of, view
from doubles.patch_world import add, delete, patch, update

HOLD = Approval(
    approval_id=ApprovalId("appr-1"),
    workspace_id=WorkspaceId("demo"),
    root="/secret/root",
    tool="exec_command",
    fingerprint="f",
    digest="d",
    created_at=1,
    summary="ls",
)


def held(**arguments: object) -> Approval:
    return replace(HOLD, arguments=json.dumps(arguments))


@pytest.mark.parametrize(
    ("arguments", "summary"),
    [
        ({"command": "make test"}, "make test"),
        ({"command": ["rm", "-rf", "a b", ""]}, "rm -rf 'a b' ''"),
        ({"command": "ls\nrm -rf ~"}, "ls<U+000A>rm -rf ~"),
        ({"command": ["a\u202eb"]}, "'a<U+202E>b'"),
        (
            {"patch": patch(add("n", "x"), update("o", "a", "b", move_to="p"), delete("d"))},
            "add n, update o, move p, delete d",
        ),
        ({"patch": "nothing"}, "a patch that names no file"),
    ],
)
def test_a_summary_says_in_one_line_what_would_be_done(
    arguments: dict[str, object], summary: str
) -> None:
    assert summary_of(arguments) == summary


@given(st.text() | st.lists(st.text()))
def test_a_summary_is_one_short_line(command: object) -> None:
    summary = summary_of({"command": command})
    assert len(summary) <= SUMMARY_CHARS + 1
    assert "\n" not in summary


def test_a_long_summary_is_cut_visibly() -> None:
    assert summary_of({"command": "x" * 201}) == "x" * 200 + "…"
    assert summary_of({"command": "x" * 200}) == "x" * 200


def test_the_detail_has_the_arguments_as_the_call_would_have_them() -> None:
    hold = held(command=["printf", "a\n\u200b"], tty=False, key=None, workspace_id="demo")
    told = detail(hold, view(hold, "caller", interrupted=False))
    assert told.arguments == {
        "command": ["printf", "a<U+000A><U+200B>"],
        "tty": False,
        "workspace_id": "demo",
    }
    assert told.hidden_characters
    assert "/secret" not in told.model_dump_json()


def test_the_lines_of_patches_and_shell_texts_stay_lines() -> None:
    text = patch(add("a", "\tx"))
    for arguments in ({"patch": text, "expected_versions": {"a": "absent"}}, {"command": "a\nb"}):
        told = detail(held(**arguments), view(HOLD, "caller", interrupted=False))
        assert (told.arguments, told.hidden_characters) == (arguments, False)


@pytest.mark.parametrize("is_error", [True, False])
def test_after_the_end_there_is_the_outcome_in_place_of_the_arguments(
    is_error: bool,  # noqa: FBT001 -- a parameter of the table
) -> None:
    hold = replace(
        HOLD,
        summary=None,
        state=ApprovalState.CONSUMED,
        resolved_by=Resolver.OPERATOR,
        resolved_at=2,
        finished_at=3,
        outcome=HeldOutcome({"a": 1}, is_error=is_error),
    )
    told = detail(hold, view(hold, "operator", interrupted=False))
    assert told.model_dump(exclude_none=True) == {
        "approval_id": "appr-1",
        "workspace_id": "demo",
        "tool": "exec_command",
        "state": "consumed",
        "granted_by": "operator",
        "interrupted": False,
        "created_at": 1,
        "resolved_at": 2,
        "resolved_by": "operator",
        "finished_at": 3,
        "hidden_characters": False,
        "arguments_digest": "d",
        "error" if is_error else "result": {"a": 1},
    }
