"""The inbox as an application: addresses, methods, bodies, and what everything is answered."""

import json
from collections.abc import Sequence

import pytest

from codespace.adapters.inbox_http import InboxApp
from codespace.adapters.inbox_models import NewIntent, StopRequest
from codespace.adapters.inbox_routes import Asked, Route
from codespace.domain.errors import CodeSpaceError, ErrorCode
from codespace.domain.tool import Json
from doubles.asgi import Answered, ask

pytestmark = pytest.mark.anyio

MOST = 1_000
JSON_KIND = (b"content-type", b"application/json")


class World:
    """An application of four routes; `asked` has what reached one."""

    def __init__(self) -> None:
        self.asked: list[Asked] = []
        self.failure: Exception | None = None
        routes = [
            Route("GET", "/inbox/works", "List", self.run, query="workspace_id"),
            Route("GET", "/inbox/works/{id}", "Show", self.run),
            Route(
                "POST", "/inbox/works/{id}/intents", "Add", self.run, None, NewIntent, status=201
            ),
            Route(
                "POST", "/inbox/works/{id}/stop", "Stop", self.run, None, StopRequest, empty=True
            ),
        ]
        self.app = InboxApp(routes, version="9", body_max_bytes=MOST)

    async def run(self, asked: Asked) -> Json:
        self.asked.append(asked)
        if self.failure is not None:
            raise self.failure
        return {"text": "é"}

    async def get(self, target: str) -> Answered:
        return await ask(self.app, "GET", target)

    async def add(
        self,
        *pieces: bytes,
        headers: Sequence[tuple[bytes, bytes]] = (JSON_KIND,),
    ) -> Answered:
        return await ask(
            self.app, "POST", "/inbox/works/work-1/intents", pieces=pieces, headers=headers
        )


@pytest.fixture
def world() -> World:
    return World()


async def test_a_request_reaches_its_route_with_all_that_it_says(world: World) -> None:
    answer = await ask(world.app, "POST", "/inbox/works/work-1/intents", {"body": "b", "more": 1})
    assert (answer.status, answer.body) == (201, {"text": "é"})
    assert world.asked == [Asked("work-1", None, NewIntent(body="b"))]
    assert answer.headers["content-type"] == "application/json"
    assert answer.headers["content-length"] == str(len(answer.content))
    assert answer.headers["cache-control"] == "no-store"


@pytest.mark.parametrize(
    ("query", "seen"),
    [
        ("", None),
        ("?", None),
        ("?workspace_id=", ""),
        ("?workspace_id=a%20b", "a b"),
        ("?other=1", None),
    ],
)
async def test_a_list_is_of_one_workspace_or_of_all(
    world: World, query: str, seen: str | None
) -> None:
    assert (await world.get(f"/inbox/works{query}")).status == 200
    assert world.asked[0].query == seen


@pytest.mark.parametrize(
    "query", ["workspace_id=a&workspace_id=b", "workspace_id=%ff", "a=" + "&a=" * 50]
)
async def test_a_query_that_is_none_is_refused(world: World, query: str) -> None:
    answer = await world.get(f"/inbox/works?{query}")
    assert (answer.status, answer.body["code"]) == (422, "INVALID_ARGUMENT")
    assert world.asked == []


@pytest.mark.parametrize(
    ("target", "path"),
    [
        ("/inbox/", None),
        ("/inbox/works/", None),
        ("/inbox//works", None),
        ("/inbox/works/..", None),
        ("/inbox/../mcp", None),
        ("/inbox/works/a.b", None),
        ("/inbox/works/" + "a" * 101, None),
        ("/inbox/works/%77ork-1", "/inbox/works/work-1"),
        ("/inbox/works/a%2Fintents", "/inbox/works/a/intents"),
        ("/inbox/%2e%2e/inbox/works", "/inbox/../inbox/works"),
        ("/inbox/works%00", "/inbox/works\0"),
        ("/inbox/works\n", None),
        ("/INBOX/works", None),
        ("/inbox/approvals", None),
    ],
)
async def test_an_address_has_one_name_and_there_are_no_others(
    world: World, target: str, path: str | None
) -> None:
    answer = await ask(world.app, "GET", target, path=path)
    assert answer.status == 404
    assert set(answer.body) == {"code", "message"}
    assert world.asked == []


@pytest.mark.parametrize("method", ["DELETE", "PUT", "POST", "HEAD", "OPTIONS", "TRACE", "get", ""])
async def test_an_address_takes_its_methods_alone(world: World, method: str) -> None:
    answer = await ask(world.app, method, "/inbox/works")
    assert (answer.status, answer.headers["allow"]) == (405, "GET")
    assert (await ask(world.app, "POST", "/inbox/openapi.json")).status == 405
    assert world.asked == []


@pytest.mark.parametrize(
    "content",
    [
        *(b"", b"{", b"[]", b"1", b"null", b'"x"', b"{}", b'{"body": 1}', b'{"body": ""}'),
        *(b'{"body": "b", "kind": "x"}', b'{"body": "b", "delivery": null}', b"\xff\xfe"),
        *(b'{"body": "\\ud800"}', b'{"body": NaN}', b'{"a": ' + b"[" * 400 + b"]" * 400 + b"}"),
    ],
)
async def test_a_body_that_does_not_fit_is_refused_before_anything_is_done(
    world: World, content: bytes
) -> None:
    answer = await world.add(content)
    assert (answer.status, answer.body["code"]) == (422, "INVALID_ARGUMENT")
    assert str(answer.body["message"]).endswith(".")
    assert world.asked == []


async def test_a_body_nested_without_end_harms_nobody(world: World) -> None:
    big = InboxApp(
        [Route("POST", "/inbox/works/{id}/intents", "Add", world.run, None, NewIntent)],
        version="9",
        body_max_bytes=10_000_000,
    )
    for deep in (b"[" * 2_000_000, b'{"a":' * 500_000):
        answer = await ask(big, "POST", "/inbox/works/w/intents", pieces=[b'{"body":', deep])
        assert answer.status == 422


async def test_a_body_above_the_limit_is_not_read_to_its_end(world: World) -> None:
    fits = json.dumps({"body": "b" * (MOST - 13)}).encode()
    assert (len(fits), (await world.add(fits)).status) == (MOST - 1, 201)
    answer = await world.add(fits, b"  ", *[b" " * MOST] * 1_000)
    assert (answer.status, answer.body["code"]) == (413, "LIMIT_EXCEEDED")
    assert answer.headers["connection"] == "close"


async def test_a_body_may_come_in_pieces_and_must_come_to_its_end(world: World) -> None:
    assert (await world.add(b'{"bo', b"", b'dy": "b"}')).status == 201
    assert (await world.add()).status == 400


@pytest.mark.parametrize(
    ("kinds", "status"),
    [
        ([b"application/json"], 201),
        ([b"Application/JSON; charset=utf-8"], 201),
        ([], 415),
        ([b"text/plain"], 415),
        ([b"application/x-www-form-urlencoded"], 415),
        ([b"application/json-patch+json"], 415),
        ([b"application/json", b"text/plain"], 415),
    ],
)
async def test_a_body_says_that_it_is_json(world: World, kinds: list[bytes], status: int) -> None:
    headers = [(b"content-type", kind) for kind in kinds]
    assert (await world.add(b'{"body": "b"}', headers=headers)).status == status
    assert len(world.asked) == (status == 201)


async def test_a_body_that_may_be_left_out_is_as_empty(world: World) -> None:
    answer = await ask(world.app, "POST", "/inbox/works/work-1/stop", headers=[])
    assert answer.status == 200
    assert world.asked == [Asked("work-1", None, StopRequest())]


@pytest.mark.parametrize(
    ("code", "status"),
    [
        (ErrorCode.WORK_NOT_FOUND, 404),
        (ErrorCode.INTENT_NOT_FOUND, 404),
        (ErrorCode.APPROVAL_NOT_FOUND, 404),
        (ErrorCode.WORK_CLOSED, 409),
        (ErrorCode.INTENT_ALREADY_CLAIMED, 409),
        (ErrorCode.INTENT_NOT_EDITABLE, 409),
        (ErrorCode.INTENT_REVISION_CONFLICT, 409),
        (ErrorCode.APPROVAL_CONFLICT, 409),
        (ErrorCode.LIMIT_EXCEEDED, 409),
        (ErrorCode.INVALID_ARGUMENT, 422),
        (ErrorCode.UNAUTHORIZED, 403),
        (ErrorCode.FILE_OPERATION_FAILED, 500),
    ],
)
async def test_a_refusal_has_its_status_and_the_contracts_body(
    world: World, code: ErrorCode, status: int
) -> None:
    world.failure = CodeSpaceError(code, "No.", details={"state": "é"})
    answer = await world.get("/inbox/works/work-1")
    assert answer.status == status
    assert answer.body == {"code": code.value, "message": "No.", "details": {"state": "é"}}


async def test_a_bug_is_an_answer_that_tells_nothing_but_where_to_look(
    world: World, caplog: pytest.LogCaptureFixture
) -> None:
    world.failure = ValueError("secret")
    answer = await world.get("/inbox/works")
    assert (answer.status, answer.body["code"]) == (500, "INTERNAL")
    assert b"secret" not in answer.content
    reference = str(answer.body["message"]).split()[-1].rstrip(".")
    assert reference in caplog.text


async def test_the_description_is_served(world: World) -> None:
    answer = await world.get("/inbox/openapi.json")
    assert (answer.status, answer.body["openapi"]) == (200, "3.1.0")
