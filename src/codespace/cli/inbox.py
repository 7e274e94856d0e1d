"""`codespace inbox`: what the user of a running agent says to it, and in which order."""

import sys
from collections.abc import Iterable
from typing import Annotated, Literal, cast

from cyclopts import App, Parameter

from codespace.cli.inbox_remote import There, as_id, ask, tell
from codespace.cli.inbox_view import intent_lines, list_lines, work_line
from codespace.domain.tool import Json
from codespace.settings import SettingsError

inbox = App(name="inbox", help="Steer agents that work on a running gateway.")

Work = Annotated[str, Parameter(help="The work, as `inbox works` lists it.")]
Intent = Annotated[str, Parameter(help="The instruction, as `inbox show` lists it.")]
Revision = Annotated[
    int | None,
    Parameter(help="The revision that you saw; a change since then is refused. Else the present."),
]
When = Annotated[
    Literal["next_checkpoint", "after_current_work", "next_work"] | None,
    Parameter(help="When the agent gets it."),
]
ANYWHERE = There()


@inbox.command(name="works")
def works(*, workspace: str | None = None, there: There = ANYWHERE) -> int:
    """List works, the open ones first."""
    query = None if workspace is None else {"workspace_id": workspace}

    def lines(body: Json) -> Iterable[str]:
        return map(work_line, cast("list[Json]", body["works"]))

    return tell(there, ask(there, "GET", "works", query=query), lines)


@inbox.command(name="show")
def show(work: Work, *, there: There = ANYWHERE) -> int:
    """Show a work and its instructions, in the order in which the agent gets them."""
    return tell(there, ask(there, "GET", f"works/{_id(work)}/intents"), list_lines)


@inbox.command(name="add")
def add(
    work: Work,
    text: Annotated[str, Parameter(help="The text; - is stdin.", allow_leading_hyphen=True)],
    *,
    when: When = None,
    kind: Annotated[
        Literal["follow_up", "note"] | None, Parameter(help="What it is; a follow_up if not said.")
    ] = None,
    queue: Annotated[bool, Parameter(help="Queue it at once.", negative=())] = False,
    there: There = ANYWHERE,
) -> int:
    """Write an instruction: as a draft, which the agent gets once it is queued."""
    given = {"body": _text(text), "kind": kind, "delivery": when}
    answer = ask(there, "POST", f"works/{_id(work)}/intents", body=_said(given))
    if queue and not answer.is_error:
        path = f"intents/{answer.body['intent_id']}/queue"
        answer = ask(there, "POST", path, body={"revision": answer.body["revision"]})
    return tell(there, answer, intent_lines)


@inbox.command(name="edit")
def edit(
    intent: Intent,
    text: Annotated[
        str | None, Parameter(help="The new text; - is stdin.", allow_leading_hyphen=True)
    ] = None,
    *,
    when: When = None,
    revision: Revision = None,
    there: There = ANYWHERE,
) -> int:
    """Change an instruction that the agent has not taken yet."""
    given = {"body": None if text is None else _text(text), "delivery": when}
    if not _said(given):
        raise SettingsError("say what to change: a new text, or --when")
    body = {"revision": _revision(there, intent, revision), **_said(given)}
    return tell(there, ask(there, "PATCH", f"intents/{_id(intent)}", body=body), intent_lines)


@inbox.command(name="queue")
def queue_intent(intent: Intent, *, revision: Revision = None, there: There = ANYWHERE) -> int:
    """Queue a draft, as the last."""
    return _change(there, intent, "queue", revision)


@inbox.command(name="cancel")
def cancel(intent: Intent, *, revision: Revision = None, there: There = ANYWHERE) -> int:
    """Withdraw an instruction that the agent has not taken yet; its text is printed."""
    return _change(there, intent, "cancel", revision)


@inbox.command(name="reorder")
def reorder(
    work: Work,
    *intents: Annotated[str, Parameter(help="Every queued instruction, the first one first.")],
    there: There = ANYWHERE,
) -> int:
    """Give a work's queue a new order."""
    body = {"intent_ids": list(intents)}
    return tell(there, ask(there, "POST", f"works/{_id(work)}/reorder", body=body), list_lines)


@inbox.command(name="stop")
def stop(
    work: Work,
    *,
    reason: Annotated[str | None, Parameter(help="What the agent is to read.")] = None,
    there: There = ANYWHERE,
) -> int:
    """End the live process of a work's workspace and its scripts, and tell the agent."""

    def lines(body: Json) -> Iterable[str]:
        yield "a live process was ended" if body["killed"] else "no process was live"
        yield from intent_lines(cast("Json", body["intent"]))

    body = _said({"reason": reason})
    return tell(there, ask(there, "POST", f"works/{_id(work)}/stop", body=body), lines)


def _change(there: There, intent: str, what: str, revision: int | None) -> int:
    body = {"revision": _revision(there, intent, revision)}
    return tell(there, ask(there, "POST", f"intents/{_id(intent)}/{what}", body=body), intent_lines)


def _revision(there: There, intent_id: str, given: int | None) -> object:
    """Return the revision that was given, or the present one of an instruction somewhere."""
    if given is not None:
        return given
    listed = ask(there, "GET", "works")
    for work in cast("list[Json]", listed.body.get("works", [])):
        found = ask(there, "GET", f"works/{work['work_id']}/intents")
        for intent in cast("list[Json]", found.body.get("intents", [])):
            if intent["intent_id"] == intent_id:
                return intent["revision"]
    return 1  # nobody knows it: the gateway says so


def _said(given: Json) -> Json:
    return {name: value for name, value in given.items() if value is not None}


def _text(given: str) -> str:
    return sys.stdin.read().removesuffix("\n") if given == "-" else given


def _id(given: str) -> str:
    return as_id(given, "`codespace inbox works` lists those there are")
