"""`codespace approvals`: what agents on a running gateway may not do before a person agrees."""

from collections.abc import Iterable
from typing import Annotated, cast

from cyclopts import App, Parameter

from codespace.cli.approvals_view import detail_lines, hold_line
from codespace.cli.inbox_remote import There, as_id, ask, tell
from codespace.domain.tool import Json

approvals = App(name="approvals", help="Grant or deny calls that a running gateway holds.")

Hold = Annotated[str, Parameter(name="id", help="The hold, as `approvals list` lists it.")]
ANYWHERE = There()
_LISTED = "`codespace approvals list` lists those there are"
_ACTIVE = ("pending", "granted", "resuming")


@approvals.command(name="list")
def list_holds(
    *,
    workspace: str | None = None,
    ended: Annotated[bool, Parameter(help="Those that ended, too.", negative=())] = False,
    there: There = ANYWHERE,
) -> int:
    """List held calls, the oldest first."""
    query = None if workspace is None else {"workspace_id": workspace}

    def lines(body: Json) -> Iterable[str]:
        for hold in cast("list[Json]", body["approvals"]):
            if ended or hold["state"] in _ACTIVE:
                yield hold_line(hold)

    return tell(there, ask(there, "GET", "approvals", query=query), lines)


@approvals.command(name="show")
def show(hold: Hold, *, there: There = ANYWHERE) -> int:
    """Show exactly what a held call would do; characters that hide are written out."""
    return tell(there, ask(there, "GET", _path(hold)), detail_lines)


@approvals.command(name="grant")
def grant(hold: Hold, *, there: There = ANYWHERE) -> int:
    """Let the agent make a held call, once."""
    return _decide(there, hold, "grant")


@approvals.command(name="deny")
def deny(hold: Hold, *, there: There = ANYWHERE) -> int:
    """Refuse a held call for good."""
    return _decide(there, hold, "deny")


def _decide(there: There, hold: str, decision: str) -> int:
    answer = ask(there, "POST", _path(hold), body={"decision": decision})
    return tell(there, answer, lambda body: [hold_line(body)])


def _path(hold: str) -> str:
    return f"approvals/{as_id(hold, _LISTED)}"
