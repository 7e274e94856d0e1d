"""What every HTTP request must pass before any route sees it: Host, Origin, token.

It stands around the whole application, so that no route can be added outside of it.
"""

import hmac
import ipaddress
import json
import re
from collections.abc import Iterable
from dataclasses import dataclass

from starlette.types import ASGIApp, Receive, Scope, Send

from codespace.domain.errors import ErrorCode

LOOPBACK_NAMES = ("127.0.0.1", "localhost", "[::1]")
_HOST = re.compile(r"(?P<name>\[[0-9a-f:.]+\]|[^][\s/@\\?#:,\x00-\x20\x7f]+)(?::(?P<port>[0-9]*))?")


@dataclass(frozen=True, slots=True)
class Access:
    """Who may talk to the server: by which names, from which pages, with which token.

    `names` are as `canonical` returns them, with `:port` where only that port counts.
    """

    names: frozenset[str]
    token: str | None = None

    def knows_host(self, host: str) -> bool:
        """Say whether a `Host` header names this server."""
        split = split_host(host)
        if split is None:
            return False
        name, port = split
        return name in self.names or f"{name}:{port}" in self.names

    def knows_origin(self, origin: str) -> bool:
        """Say whether an `Origin` header is a page of this server. `null` never is."""
        scheme, separator, host = origin.partition("://")
        return bool(separator) and scheme.lower() in ("http", "https") and self.knows_host(host)

    def admits(self, authorization: str) -> bool:
        """Say whether an `Authorization` header has the token. Takes the same time either way."""
        if self.token is None:
            return True
        scheme, _, given = authorization.partition(" ")
        same = hmac.compare_digest(given.strip().encode("utf-8", "replace"), self.token.encode())
        return same and scheme.lower() == "bearer"


def access_for(bound: str, extra: Iterable[str], token: str | None) -> Access:
    """Return the access of a server bound to `bound`, reachable by the `extra` names, too."""
    names = {*LOOPBACK_NAMES, *map(canonical, extra)}
    if canonical(bound) not in ("0.0.0.0", "[::]"):  # noqa: S104 -- compared with, not bound to
        names.add(canonical(bound))
    return Access(frozenset(names), token)


def canonical(host: str) -> str:
    """Return the one spelling of a name or `name:port`: lower case, IPv6 short and in brackets."""
    if host.count(":") > 1 and not host.startswith("["):
        host = f"[{host}]"
    split = split_host(host)
    if split is None:
        return host.lower()
    name, port = split
    return f"{name}:{port}" if port else name


def split_host(host: str) -> tuple[str, str] | None:
    """Return name and port of a `Host` header, or nothing when it is not well formed."""
    found = _HOST.fullmatch(host.lower())
    if found is None:
        return None
    name, port = found["name"], found["port"] or ""
    if name.startswith("["):
        try:
            name = f"[{ipaddress.IPv6Address(name[1:-1]).compressed}]"
        except ValueError:
            return None
    return name, port


class Guard:
    """ASGI middleware that answers 421, 403 or 401 in place of the application."""

    def __init__(self, app: ASGIApp, access: Access) -> None:
        self._app = app
        self._access = access

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Let a request through, or answer it."""
        if scope["type"] == "lifespan":
            await self._app(scope, receive, send)
            return
        if scope["type"] != "http":
            return  # there are no websockets here
        refusal = self._refusal(scope)
        if refusal is None:
            await self._app(scope, receive, send)
        else:
            await _answer(send, *refusal)

    def _refusal(self, scope: Scope) -> tuple[int, str] | None:
        headers: dict[bytes, list[str]] = {}
        for name, value in scope["headers"]:
            headers.setdefault(name, []).append(value.decode("latin-1"))
        hosts, origins = headers.get(b"host", []), headers.get(b"origin", [])
        if len(hosts) != 1 or not self._access.knows_host(hosts[0]):
            return 421, "The Host header does not name this server; see http_allowed_hosts."
        if len(origins) > 1 or (origins and not self._access.knows_origin(origins[0])):
            return 403, "The Origin header is not a page of this server."
        tokens = headers.get(b"authorization", [""])
        if len(tokens) != 1 or not self._access.admits(tokens[0]):
            return 401, "This server asks for its bearer token in the Authorization header."
        return None


async def _answer(send: Send, status: int, message: str) -> None:
    body = json.dumps({"code": ErrorCode.UNAUTHORIZED.value, "message": message}).encode()
    headers = [
        (b"content-type", b"application/json"),
        (b"content-length", str(len(body)).encode()),
        (b"connection", b"close"),
    ]
    if status == 401:  # noqa: PLR2004 -- the status itself
        headers.append((b"www-authenticate", b"Bearer"))
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": body})
