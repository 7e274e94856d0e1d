"""What a person reads before they agree."""

import unicodedata

from hypothesis import given
from hypothesis import strategies as st

from codespace.cli.approvals_view import HIDDEN, detail_lines, hold_line
from codespace.domain.tool import Json

HOLD: Json = {
    "approval_id": "appr-1",
    "workspace_id": "demo",
    "tool": "bash",
    "state": "pending",
    "granted_by": "operator",
    "summary": "ls",
    "interrupted": False,
    "created_at": 0,
    "arguments_digest": "d" * 64,
    "hidden_characters": False,
}


def test_a_hold_is_one_line() -> None:
    assert hold_line(HOLD) == "appr-1  demo  pending  bash  ls"
    cut = {**HOLD, "state": "resuming", "interrupted": True, "summary": None}
    assert hold_line(cut) == "appr-1  demo  interrupted  bash"


def test_the_detail_ends_with_the_text_that_would_run() -> None:
    arguments = {"command": "cd src\nmake", "timeout_ms": 5, "workspace_id": "demo"}
    lines = list(detail_lines({**HOLD, "arguments": arguments}))
    assert lines[0] == "appr-1  demo  pending  bash"
    assert lines[1].startswith("held: 19")
    assert lines[2:] == [
        "timeout_ms: 5",
        'workspace_id: "demo"',
        "command:",
        "    cd src",
        "    make",
    ]


def test_an_argv_is_shown_argument_by_argument() -> None:
    lines = list(detail_lines({**HOLD, "arguments": {"command": ["echo", "a b", "'"]}}))
    assert lines[2:] == ['command: ["echo", "a b", "\'"]']


def test_that_something_would_hide_is_said() -> None:
    assert HIDDEN in list(detail_lines({**HOLD, "hidden_characters": True, "arguments": {}}))


def test_after_the_end_there_is_who_decided_and_what_it_came_to() -> None:
    ended = {
        **HOLD,
        "state": "consumed",
        "resolved_by": "operator",
        "resolved_at": 0,
        "error": {"code": "TIMEOUT"},
    }
    lines = list(detail_lines(ended))
    assert lines[2].endswith("by the operator")
    assert lines[3:] == [
        f"arguments: gone after the end; SHA-256 {'d' * 64}",
        'error: {"code": "TIMEOUT"}',
    ]


@given(st.text(), st.text())
def test_nothing_steers_the_terminal(summary: str, command: str) -> None:
    told = {**HOLD, "summary": summary, "arguments": {"command": command, summary: [command]}}
    for line in [hold_line(told), *detail_lines(told)]:
        assert not [char for char in line if unicodedata.category(char) in {"Cf", "Cs", "Zl"}]
        assert not [char for char in line if unicodedata.category(char) == "Cc" and char != "\t"]
