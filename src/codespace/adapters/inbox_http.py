"""The inbox over HTTP: which route a request means, whether it fits, and what it is answered.

It stands inside the guard of `http_app`, which has judged Host, Origin and token already.
"""

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from urllib.parse import parse_qs

from pydantic import BaseModel, ValidationError
from pydantic_core import from_json
from starlette.types import Receive, Scope, Send

from codespace.adapters.inbox_openapi import ID, describe
from codespace.adapters.inbox_routes import Asked, Given, Route, by_path
from codespace.domain.errors import CodeSpaceError, ErrorCode
from codespace.domain.tool import Json, Params, invalid_argument
from codespace.domain.unicode_text import broken_text
from codespace.gateway.dispatch import internal

OPENAPI_PATH = "/inbox/openapi.json"
QUERY_MAX_CHARS = 2_000

_STATUS: Mapping[ErrorCode, int] = {
    ErrorCode.INVALID_ARGUMENT: 422,
    ErrorCode.UNAUTHORIZED: 403,
    ErrorCode.WORKSPACE_NOT_FOUND: 404,
    ErrorCode.WORK_NOT_FOUND: 404,
    ErrorCode.INTENT_NOT_FOUND: 404,
    ErrorCode.APPROVAL_NOT_FOUND: 404,
    ErrorCode.FILE_OPERATION_FAILED: 500,
    ErrorCode.INTERNAL: 500,
}
"""What is not here is a conflict with how things stand."""
CONFLICT = 409


class AnsweredError(Exception):
    """A request is answered by its status alone: no route has seen it."""

    def __init__(self, status: int, code: ErrorCode, message: str, **headers: str) -> None:
        super().__init__(message)
        self.status = status
        self.body: Json = {"code": code.value, "message": message}
        self.headers = headers


@dataclass(frozen=True, slots=True)
class _Answer:
    status: int
    content: bytes
    headers: Mapping[str, str]


class InboxApp:
    """An ASGI application over routes. Every answer, also a refusal, is a JSON object."""

    def __init__(self, routes: list[Route], *, version: str, body_max_bytes: int) -> None:
        self._routes = [(_pattern(path), found) for path, found in by_path(routes).items()]
        self._openapi = json.dumps(describe(routes, version)).encode()
        self._body_max_bytes = body_max_bytes

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        try:
            answer = await self._answer(scope, receive)
        except AnsweredError as error:
            answer = _told(error.status, error.body, error.headers)
        except CodeSpaceError as error:
            answer = _told(_STATUS.get(error.code, CONFLICT), error.body())
        except Exception:  # noqa: BLE001 -- a bug becomes an answer, as in the dispatcher
            answer = _told(500, internal("inbox failed").body())
        headers = {
            "content-type": "application/json",
            "content-length": str(len(answer.content)),
            "cache-control": "no-store",
            "x-content-type-options": "nosniff",
            **answer.headers,
        }
        raw = [(name.encode(), value.encode()) for name, value in headers.items()]
        await send({"type": "http.response.start", "status": answer.status, "headers": raw})
        await send({"type": "http.response.body", "body": answer.content})

    async def _answer(self, scope: Scope, receive: Receive) -> _Answer:
        path = _plain_path(scope)
        if path == OPENAPI_PATH:
            _require_method(scope, ["GET"])
            return _Answer(200, self._openapi, {})
        methods, given_id = self._find(path)
        _require_method(scope, methods)
        route = methods[scope["method"]]
        body = None
        if route.takes is not None:
            body = await self._body(route, scope, receive)
        asked = Asked(given_id, _query(route, scope), body)
        return _told(route.status, _json(await route.run(asked)))

    def _find(self, path: str) -> tuple[Mapping[str, Route], str]:
        for pattern, methods in self._routes:
            found = pattern.fullmatch(path)
            if found is not None:
                return methods, found.groupdict().get("id", "")
        raise _no_such_address()

    async def _body(self, route: Route, scope: Scope, receive: Receive) -> Params:
        model = route.takes
        if model is None:
            raise TypeError(route.path)
        content = await self._content(scope, receive)
        if not content and route.empty:
            return model()
        _require_json(scope)
        try:
            parsed: object = from_json(content, allow_inf_nan=False)
        except ValueError as error:
            raise _bad("", "The body is not valid JSON, or is nested too deep.") from error
        if not isinstance(parsed, dict):
            raise _bad("", "The body is a JSON object.")
        try:
            checked = model.model_validate(parsed)
        except ValidationError as error:
            raise invalid_argument("body", error) from None
        broken = broken_text(vars(checked))
        if broken is not None:
            raise _bad(str(broken[0]), "Text should be valid Unicode, without lone surrogates.")
        return checked

    async def _content(self, scope: Scope, receive: Receive) -> bytes:
        pieces, size = list[bytes](), 0
        while True:
            message = await receive()
            if message["type"] == "http.disconnect":
                raise AnsweredError(400, ErrorCode.INVALID_ARGUMENT, "The body did not arrive.")
            piece: bytes = message.get("body", b"")
            size += len(piece)
            if size > self._body_max_bytes:
                raise AnsweredError(
                    413,
                    ErrorCode.LIMIT_EXCEEDED,
                    f"The body is larger than {self._body_max_bytes} bytes; make it smaller.",
                    connection="close",
                )
            pieces.append(piece)
            if not message.get("more_body"):
                return b"".join(pieces)


def _plain_path(scope: Scope) -> str:
    # No address of ours needs an escape: one that has some is another name for something else.
    path: str = scope["path"]
    raw: bytes = scope.get("raw_path") or path.encode()
    if raw.partition(b"?")[0] != path.encode():
        raise _no_such_address()
    return path


def _pattern(path: str) -> re.Pattern[str]:
    return re.compile(re.escape(path).replace(r"\{id\}", f"(?P<id>{ID[1:-1]})"))


def _no_such_address() -> AnsweredError:
    return AnsweredError(
        404, ErrorCode.INVALID_ARGUMENT, f"There is nothing at this address; see {OPENAPI_PATH}."
    )


def _require_method(scope: Scope, allowed: "Mapping[str, object] | list[str]") -> None:
    if scope["method"] not in allowed:
        names = ", ".join(sorted(allowed))
        raise AnsweredError(
            405, ErrorCode.INVALID_ARGUMENT, f"This address takes {names}.", allow=names
        )


def _require_json(scope: Scope) -> None:
    given = [value for name, value in scope["headers"] if name == b"content-type"]
    kind = given[0].partition(b";")[0].strip().lower() if len(given) == 1 else b""
    if kind != b"application/json":
        raise AnsweredError(
            415, ErrorCode.INVALID_ARGUMENT, "Send the body with Content-Type: application/json."
        )


def _query(route: Route, scope: Scope) -> str | None:
    text: bytes = scope["query_string"]
    if route.query is None or not text:
        return None
    try:
        given = parse_qs(
            text.decode("ascii"), keep_blank_values=True, errors="strict", max_num_fields=20
        ).get(route.query, [])
    except ValueError as error:
        raise _bad(route.query, "The query is not valid.") from error
    if len(given) > 1 or any(len(value) > QUERY_MAX_CHARS for value in given):
        raise _bad(route.query, f"Name one {route.query}.")
    return given[0] if given else None


def _bad(place: str, sentence: str) -> CodeSpaceError:
    return CodeSpaceError(ErrorCode.INVALID_ARGUMENT, sentence, details={"path": place})


def _json(given: Given) -> Json:
    if isinstance(given, BaseModel):
        return given.model_dump(mode="json", exclude_none=True)
    return given


def _told(status: int, body: Json, headers: Mapping[str, str] | None = None) -> _Answer:
    text = json.dumps(body, ensure_ascii=False, separators=(",", ":"))
    return _Answer(status, text.encode("utf-8", "replace"), headers or {})
