"""A hold as people and programs are shown it; nothing in what they agree to is hidden."""

import json
import shlex
from collections.abc import Mapping
from typing import Literal, cast

from codespace.domain.approval import Approval
from codespace.domain.tool import Json, Result
from codespace.domain.visible import visible, visible_json

SUMMARY_CHARS = 200
_TEXTS = ("patch", "command")
"""Arguments of several lines; everything else is shown on one."""
_HEADERS = ("*** Add File: ", "*** Update File: ", "*** Delete File: ", "*** Move to: ")

State = Literal["pending", "granted", "resuming", "consumed", "denied"]
GrantedBy = Literal["caller", "operator"]


class ApprovalView(Result):
    """A held call, without its arguments."""

    approval_id: str
    workspace_id: str
    tool: str
    """The tool whose call is held."""
    state: State
    granted_by: GrantedBy
    """Who may grant and deny it: the MCP caller as well, or only the operator."""
    summary: str | None = None
    """What it would do, in one line; gone after the end."""
    interrupted: bool = False
    """Its resume was cut by the gateway's end; `operation_resume` says what is known."""
    created_at: int
    """Unix time in milliseconds, as are the other times."""
    resolved_at: int | None = None
    resolved_by: GrantedBy | None = None
    finished_at: int | None = None


class ApprovalDetail(ApprovalView):
    """A held call with its exact effect."""

    arguments: dict[str, object] | None = None
    """As the call would be made, with control, bidi and zero-width characters written as
    `<U+202E>`; gone after the end."""
    hidden_characters: bool = False
    """Some of its characters would not have been seen, and are written out."""
    arguments_digest: str
    """SHA-256 of the arguments' canonical JSON."""
    result: dict[str, object] | None = None
    """What the call came to."""
    error: dict[str, object] | None = None
    """The error that the call came to."""


def view(approval: Approval, granted_by: GrantedBy, *, interrupted: bool) -> ApprovalView:
    """Return a hold for a list."""
    return ApprovalView(
        approval_id=approval.approval_id,
        workspace_id=approval.workspace_id,
        tool=approval.tool,
        state=approval.state.value,
        granted_by=granted_by,
        summary=approval.summary,
        interrupted=interrupted,
        created_at=approval.created_at,
        resolved_at=approval.resolved_at,
        resolved_by=None if approval.resolved_by is None else approval.resolved_by.value,
        finished_at=approval.finished_at,
    )


def detail(approval: Approval, brief: ApprovalView) -> ApprovalDetail:
    """Return a hold with all that there is to know of it."""
    given = cast("Json | None", json.loads(approval.arguments) if approval.arguments else None)
    shown = None if given is None else _seen(given)
    outcome = approval.outcome
    body = None if outcome is None else dict(outcome.body)
    return ApprovalDetail(
        **brief.model_dump(),
        arguments=shown,
        hidden_characters=shown is not None and shown != _told(given or {}),
        arguments_digest=approval.digest,
        result=body if outcome is not None and not outcome.is_error else None,
        error=body if outcome is not None and outcome.is_error else None,
    )


def summary_of(arguments: Json) -> str:
    """Return what a call would do, in one line that hides nothing: files, argv or shell text."""
    patch, command = arguments.get("patch"), arguments.get("command")
    if isinstance(patch, str):
        text = ", ".join(_touched(patch)) or "a patch that names no file"
    elif isinstance(command, list):
        text = shlex.join(map(str, cast("list[object]", command)))
    else:
        text = str(command)
    text = visible(text[: SUMMARY_CHARS + 1], lines=False)
    return text if len(text) <= SUMMARY_CHARS else f"{text[:SUMMARY_CHARS]}…"


def _touched(patch: str) -> list[str]:
    return [
        f"{header.split()[1].lower()} {line.removeprefix(header).strip()}"
        for line in patch.split("\n")
        for header in _HEADERS
        if line.startswith(header)
    ]


def _seen(arguments: Json) -> dict[str, object]:
    return {
        key: visible_json(value, lines=key in _TEXTS) for key, value in _told(arguments).items()
    }


def _told(arguments: Json) -> Mapping[str, object]:
    return {key: value for key, value in arguments.items() if value is not None}
