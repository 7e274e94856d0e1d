"""The inbox shot at with what its own description allows, and with what it does not.

Every answer must be one that the description has: its status, and a body of its schema.
"""

import json
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import cast

import anyio
import jsonschema
import pytest
from anyio.from_thread import start_blocking_portal
from hypothesis import given, settings
from hypothesis import strategies as st

from codespace.adapters.inbox_http import InboxApp
from codespace.adapters.inbox_routes import Inbox
from codespace.bootstrap import open_gateway
from codespace.domain.tool import Json
from codespace.settings import load
from doubles.asgi import Answered, ask

ANY = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner),
    max_leaves=8,
)
WORDS = st.sampled_from(
    ["follow_up", "note", "stop_notice", "next_checkpoint", "after_current_work", "next_work"]
)
FIELDS = ("body", "kind", "delivery", "revision", "intent_ids", "reason", "decision")
NUMBERS = st.integers(-1, 4) | st.integers()
ROUTES = 9


NAMES = st.lists(st.text("abc", max_size=3), max_size=4)
GOOD = st.fixed_dictionaries({"body": st.text(min_size=1, max_size=9)}) | st.fixed_dictionaries(
    {"revision": st.integers(1, 3)}
)
NEAR = st.dictionaries(st.sampled_from(FIELDS), WORDS | NUMBERS | NAMES | ANY, max_size=4)
BODIES = GOOD | NEAR | ANY
"""What is taken, near to it, and nothing like it."""


def test_every_answer_is_one_that_the_description_has(tmp_path: Path) -> None:
    loaded = load(path=str(tmp_path), environ={"PATH": "/usr/bin:/bin"})
    with start_blocking_portal() as portal:
        opened = portal.wrap_async_context_manager(open_gateway(loaded))
        with opened as gateway:
            routes = Inbox(gateway.works, gateway.stops).routes()
            app = InboxApp(routes, version="9", body_max_bytes=10_000)
            described = portal.call(ask, app, "GET", "/inbox/openapi.json").body
            operations = [
                (method.upper(), path, operation)
                for path, methods in cast(
                    "Mapping[str, Mapping[str, Json]]", described["paths"]
                ).items()
                for method, operation in methods.items()
            ]
            assert len(operations) == ROUTES
            work = portal.call(gateway.call, "work_open", {"workspace_id": "default"})
            ids = [str(work["work_id"])]
            seen = set[int]()

            @settings(max_examples=400, deadline=None)
            @given(data=st.data())
            def shoot(data: st.DataObject) -> None:
                method, path, operation = data.draw(st.sampled_from(operations))
                # A place, and not an id: what is drawn must not depend on what there is.
                place = data.draw(st.integers(0, 5))
                body = None if method == "GET" else data.draw(BODIES)
                near = ids[0] if "/works/" in path else ids[-1 - place % len(ids)]
                target = path.replace("{id}", near if place else "work-x")
                answer = portal.call(partial(ask, app, method, target, body))
                seen.add(answer.status)
                fits(described, operation, answer)
                if answer.status == 201:
                    ids.append(str(answer.body["intent_id"]))

            shoot()
    assert seen >= {200, 201, 404, 409, 422}


def fits(described: Json, operation: Json, answer: Answered) -> None:
    """Hold an answer to what the description says of its operation."""
    responses = cast("Mapping[str, Json]", operation["responses"])
    assert str(answer.status) in responses, answer.content
    content = cast("Mapping[str, Json]", responses[str(answer.status)]["content"])
    schema = cast("Json", content["application/json"]["schema"])
    jsonschema.validate(
        json.loads(answer.content), {**schema, "components": described["components"]}
    )


@pytest.mark.anyio
async def test_edits_at_once_have_one_winner(tmp_path: Path) -> None:
    loaded = load(path=str(tmp_path), environ={"PATH": "/usr/bin:/bin"})
    async with open_gateway(loaded) as gateway:
        app = InboxApp(
            Inbox(gateway.works, gateway.stops).routes(), version="9", body_max_bytes=10_000
        )
        work = await gateway.call("work_open", {"workspace_id": "default"})
        draft = await ask(app, "POST", f"/inbox/works/{work['work_id']}/intents", {"body": "b"})
        statuses = list[int]()

        async def edit(number: int) -> None:
            path = f"/inbox/intents/{draft.body['intent_id']}"
            body = {"revision": 1, "body": str(number)}
            statuses.append((await ask(app, "PATCH", path, body)).status)

        async with anyio.create_task_group() as tasks:
            for number in range(8):
                tasks.start_soon(edit, number)
        assert sorted(statuses) == [200] + [409] * 7
