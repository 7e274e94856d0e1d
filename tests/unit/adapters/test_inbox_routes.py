"""The inbox's routes over a real gateway: every row of the table, and the held calls' behind it."""

from collections.abc import AsyncIterator
from pathlib import Path
from typing import cast

import pytest

from codespace.adapters.inbox_http import InboxApp
from codespace.adapters.inbox_models import NewIntent
from codespace.adapters.inbox_openapi import describe
from codespace.adapters.inbox_routes import Asked, Inbox, approval_routes
from codespace.bootstrap import Gateway, open_gateway
from codespace.domain.approval import Resolver
from codespace.domain.tool import Json
from codespace.settings import load
from doubles.asgi import Answered, ask
from doubles.held_world import held_world

pytestmark = pytest.mark.anyio


class World:
    """A gateway and its inbox, with one open work."""

    def __init__(self, gateway: Gateway, work_id: str) -> None:
        self.gateway, self.work_id = gateway, work_id
        routes = Inbox(gateway.works, gateway.stops).routes()
        self.app = InboxApp(routes, version="9", body_max_bytes=100_000)

    async def ask(self, method: str, path: str, body: object = None) -> Answered:
        return await ask(self.app, method, f"/inbox/{path}", body)

    async def add(self, **body: object) -> Json:
        answer = await self.ask("POST", f"works/{self.work_id}/intents", body)
        assert answer.status == 201
        return answer.body

    async def queued(self, body: str) -> Json:
        draft = await self.add(body=body)
        answer = await self.ask("POST", f"intents/{draft['intent_id']}/queue", {"revision": 1})
        assert (answer.status, answer.body["state"]) == (200, "queued")
        return answer.body

    async def bodies(self) -> list[object]:
        listed = (await self.ask("GET", f"works/{self.work_id}/intents")).body["intents"]
        return [intent["body"] for intent in cast("list[Json]", listed)]


@pytest.fixture
async def world(tmp_path: Path) -> AsyncIterator[World]:
    loaded = load(path=str(tmp_path), environ={"PATH": "/usr/bin:/bin"})
    async with open_gateway(loaded) as gateway:
        work = await gateway.call("work_open", {"workspace_id": "default", "title": "job"})
        yield World(gateway, str(work["work_id"]))


async def test_works_are_listed_and_shown(world: World) -> None:
    shown = await world.ask("GET", f"works/{world.work_id}")
    assert (shown.status, shown.body["title"], shown.body["state"]) == (200, "job", "active")
    for query, expected in (("", [shown.body]), ("?workspace_id=default", [shown.body])):
        assert (await world.ask("GET", f"works{query}")).body == {"works": expected}
    assert (await world.ask("GET", "works?workspace_id=else")).body == {"works": []}


async def test_an_instruction_is_a_draft_with_the_usual_kind_and_delivery(world: World) -> None:
    draft = await world.add(body="b")
    assert (draft["state"], draft["revision"]) == ("draft", 1)
    assert (draft["kind"], draft["delivery"]) == ("follow_up", "after_current_work")
    other = await world.add(body="b", kind="note", delivery="next_checkpoint")
    assert (other["kind"], other["delivery"]) == ("note", "next_checkpoint")


async def test_an_edit_carries_the_revision_that_it_saw(world: World) -> None:
    draft = await world.add(body="b")
    path = f"intents/{draft['intent_id']}"
    edit = {"revision": 1, "body": "c", "delivery": "next_work"}
    edited = await world.ask("PATCH", path, edit)
    assert (edited.status, edited.body["body"], edited.body["revision"]) == (200, "c", 2)
    again = await world.ask("PATCH", path, edit)
    assert (again.status, again.body["code"]) == (409, "INTENT_REVISION_CONFLICT")
    assert cast("Json", again.body["details"])["actual"] == 2


async def test_a_withdrawn_instruction_comes_back_with_its_text(world: World) -> None:
    intent = await world.queued("b")
    path = f"intents/{intent['intent_id']}/cancel"
    cancelled = await world.ask("POST", path, {"revision": 2})
    assert (cancelled.status, cancelled.body["state"]) == (200, "cancelled")
    assert cancelled.body["body"] == "b"
    again = await world.ask("POST", path, {"revision": 3})
    assert (again.status, again.body["code"]) == (409, "INTENT_NOT_EDITABLE")


async def test_the_whole_queue_takes_a_new_order(world: World) -> None:
    names = [(await world.queued(body))["intent_id"] for body in "abc"]
    path = f"works/{world.work_id}/reorder"
    answer = await world.ask("POST", path, {"intent_ids": names[::-1]})
    assert (answer.status, await world.bodies()) == (200, ["c", "b", "a"])
    assert cast("Json", answer.body["work"])["queue_revision"] == 4
    for wrong, status in (
        ([names[0], *names], 422),
        (names[:2], 409),
        ([*names, "int-none"], 404),
        ("int-1", 422),
    ):
        assert (await world.ask("POST", path, {"intent_ids": wrong})).status == status
    assert await world.bodies() == ["c", "b", "a"]


async def test_a_stop_tells_what_it_ended_and_what_the_agent_will_read(world: World) -> None:
    stopped = await world.ask("POST", f"works/{world.work_id}/stop", {"reason": "enough"})
    assert (stopped.status, stopped.body["ok"], stopped.body["killed"]) == (200, True, False)
    intent = cast("Json", stopped.body["intent"])
    assert (intent["kind"], intent["state"], intent["body"]) == ("stop_notice", "queued", "enough")


async def test_unknown_ids_are_not_found(world: World) -> None:
    asked: list[tuple[str, str, Json | None]] = [
        ("GET", "works/work-x", None),
        ("GET", "works/work-x/intents", None),
        ("POST", "works/work-x/intents", {"body": "b"}),
        ("PATCH", "intents/int-x", {"revision": 1}),
        ("POST", "intents/int-x/queue", {"revision": 1}),
        ("POST", "intents/int-x/cancel", {"revision": 1}),
        ("POST", "works/work-x/reorder", {"intent_ids": []}),
        ("POST", "works/work-x/stop", None),
    ]
    for method, path, body in asked:
        assert (await world.ask(method, path, body)).status == 404


async def test_the_operator_sees_and_resolves_held_calls(tmp_path: Path) -> None:
    with held_world(tmp_path / "root") as world:
        world.start(granted_by=Resolver.OPERATOR, token=True)
        first, second = await world.held(), await world.held(command="rm -rf \u202ex")
        routes = approval_routes(world.approvals)
        app = InboxApp(routes, version="9", body_max_bytes=1_000)

        async def asked(method: str, path: str, body: object = None) -> Answered:
            return await ask(app, method, f"/inbox/approvals{path}", body)

        for query, ids in (("", [first, second]), ("?workspace_id=demo", [first, second])):
            listed = cast("list[Json]", (await asked("GET", query)).body["approvals"])
            assert [hold["approval_id"] for hold in listed] == ids
        assert (await asked("GET", "?workspace_id=other")).body == {"approvals": []}
        shown = await asked("GET", f"/{second}")
        assert cast("Json", shown.body["arguments"])["command"] == "rm -rf <U+202E>x"
        for decision, state in (("grant", "granted"), ("deny", "denied")):
            hold = first if decision == "grant" else second
            decided = await asked("POST", f"/{hold}", {"decision": decision})
            assert (decided.status, decided.body["state"]) == (200, state)
            assert decided.body["resolved_by"] == "operator"
            late = await asked("POST", f"/{hold}", {"decision": decision})
            assert (late.status, late.body["code"]) == (409, "APPROVAL_CONFLICT")
        assert (await asked("POST", f"/{first}", {"decision": "yes"})).status == 422
        for method in ("GET", "POST"):
            unknown = await asked(method, "/appr-x", {"decision": "grant"})
            assert (unknown.status, unknown.body["code"]) == (404, "APPROVAL_NOT_FOUND")
        assert "/inbox/approvals/{id}" in cast("Json", describe(routes, "9")["paths"])


async def test_without_a_token_nobody_over_http_is_the_operator(tmp_path: Path) -> None:
    with held_world(tmp_path / "root") as world:
        world.start(granted_by=Resolver.OPERATOR)
        hold = await world.held()
        app = InboxApp(approval_routes(world.approvals), version="9", body_max_bytes=1_000)
        refused = await ask(app, "POST", f"/inbox/approvals/{hold}", {"decision": "grant"})
        assert (refused.status, refused.body["code"]) == (403, "UNAUTHORIZED")
        assert world.state(hold) == "pending"


def test_a_body_is_of_its_routes_model_or_a_fault_of_ours() -> None:
    with pytest.raises(TypeError):
        Asked("x").has(NewIntent)
