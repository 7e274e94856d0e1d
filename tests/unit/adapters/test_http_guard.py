"""Host, Origin and token: every spelling that somebody will try."""

import json
import re
from dataclasses import dataclass, field

import pytest
from hypothesis import given
from hypothesis import strategies as st
from starlette.types import Message, Receive, Scope, Send

from codespace.adapters.http_guard import Access, Guard, access_for, canonical, split_host

TOKEN = "0123456789abcdef"
LOCAL = access_for("127.0.0.1", (), None)
GUARDED = access_for("127.0.0.1", (), TOKEN)

KNOWN_HOSTS = [
    "127.0.0.1",
    "127.0.0.1:8787",
    "localhost",
    "localhost:1",
    "LocalHost:8787",
    "localhost:",
    "[::1]",
    "[::1]:8787",
    "[0:0:0:0:0:0:0:1]:8787",
    "[0000::0001]",
]
FOREIGN_HOSTS = [
    "",
    ":8787",
    "evil.com",
    "127.0.0.1.evil.com",
    "evil.com.127.0.0.1",
    "localhost.evil.com",
    "localhost.",
    "127.0.0.1.",
    "xlocalhost",
    "localhost@evil.com",
    "evil.com@localhost",
    "localhost:8787@evil.com",
    "localhost/",
    "localhost/../evil.com",
    "localhost\\evil.com",
    "localhost#evil.com",
    "localhost?evil.com",
    "localhost, evil.com",
    "localhost evil.com",
    " localhost",
    "localhost ",
    "local\thost",
    "localhost\n",
    "localhost\x00",
    "localhost:80:80",
    "localhost:80a",
    "localhost:-1",
    "localhost:٣",
    "localhost:+80",
    "::1",
    "[::1",
    "::1]",
    "[::1]evil.com",
    "[::1].evil.com",
    "[::1]:80@evil.com",
    "[localhost]",
    "[127.0.0.1]",
    "[]",
    "[::2]",
    "[::1%25lo]",
    "[::ffff:127.0.0.1]",
    "[[::1]]",
    "127.1",
    "2130706433",
    "0x7f.1",
    "0.0.0.0",
    "127.0.0.2",
    "null",
    "http://localhost",
]


@pytest.mark.parametrize("host", KNOWN_HOSTS)
def test_a_name_of_this_server_is_known_in_every_spelling(host: str) -> None:
    assert LOCAL.knows_host(host)
    assert LOCAL.knows_origin(f"http://{host}")
    assert LOCAL.knows_origin(f"https://{host}")


@pytest.mark.parametrize("host", FOREIGN_HOSTS)
def test_what_only_looks_like_this_server_is_foreign(host: str) -> None:
    assert not LOCAL.knows_host(host)
    assert not LOCAL.knows_origin(f"http://{host}")


@pytest.mark.parametrize(
    "origin",
    [
        "null",
        "",
        "localhost",
        "//localhost",
        "://localhost",
        "file://localhost",
        "ftp://localhost",
        "chrome-extension://localhost",
        "javascript://localhost",
        "http:localhost",
        "http:/localhost",
        "http:///localhost",
        "http://localhost/",
        "http://localhost/path",
        "http://localhost?x",
        "http://localhost#x",
        "http://user@localhost",
        "http://user:password@localhost",
        " http://localhost",
        "http://localhost ",
        "ht\ttp://localhost",
        "http://http://localhost",
        "http://localhost http://evil.com",
        "http://[::1",
    ],
)
def test_what_is_no_plain_origin_is_foreign(origin: str) -> None:
    assert not LOCAL.knows_origin(origin)


def test_a_scheme_is_known_in_any_case() -> None:
    assert LOCAL.knows_origin("HTTP://localhost:3000")


@given(st.text(st.sampled_from("localhost127.:/@[]#? \t\\"), max_size=24) | st.text(max_size=24))
def test_a_known_host_is_one_of_few_names(host: str) -> None:
    name = r"localhost|127\.0\.0\.1|\[[0:.]*1\]"
    known = re.fullmatch(rf"({name})(:[0-9]*)?", host.lower()) is not None
    assert known or not LOCAL.knows_host(host)


# The names that the operator adds.


def test_an_extra_name_is_known_at_every_port() -> None:
    access = access_for("127.0.0.1", ["Code.Example.org"], None)
    assert access.knows_host("code.example.ORG")
    assert access.knows_host("code.example.org:1")
    assert access.knows_origin("https://code.example.org")
    assert not access.knows_host("x.code.example.org")
    assert not access.knows_host("code.example.org.")


def test_an_extra_name_with_a_port_is_known_at_that_port_alone() -> None:
    access = access_for("127.0.0.1", ["code.example.org:8443"], None)
    assert access.knows_host("code.example.org:8443")
    assert not access.knows_host("code.example.org:84430")
    assert not access.knows_host("code.example.org:443")
    assert not access.knows_host("code.example.org")
    assert not access.knows_host("code.example.org:")


@pytest.mark.parametrize("extra", ["2001:DB8::1", "[2001:db8::1]", "2001:db8:0:0::1"])
def test_an_extra_address_is_known_however_it_is_written(extra: str) -> None:
    access = access_for("127.0.0.1", [extra], None)
    assert access.knows_host("[2001:db8::1]:8787")
    assert access.knows_host("[2001:0db8::0001]")
    assert not access.knows_host("2001:db8::1")


def test_an_extra_address_with_a_port_is_known_at_that_port_alone() -> None:
    access = access_for("127.0.0.1", ["[2001:db8::1]:8443"], None)
    assert access.knows_host("[2001:db8::1]:8443")
    assert not access.knows_host("[2001:db8::1]")
    assert not access.knows_host("[2001:db8::1:8443]")


@pytest.mark.parametrize(
    ("bound", "host"),
    [("192.0.2.7", "192.0.2.7:8787"), ("::1", "[::1]"), ("[2001:db8::1]", "[2001:db8::1]:1")],
)
def test_the_address_that_it_is_bound_to_is_a_name(bound: str, host: str) -> None:
    assert access_for(bound, (), None).knows_host(host)


@pytest.mark.parametrize("bound", ["0.0.0.0", "::", "[::]", "0:0:0:0:0:0:0:0", ""])
def test_every_address_is_no_name(bound: str) -> None:
    access = access_for(bound, (), None)
    assert not access.knows_host("0.0.0.0")
    assert not access.knows_host("[::]")
    assert not access.knows_host("")
    assert access.knows_host("localhost")


def test_a_host_is_split_into_name_and_port() -> None:
    assert split_host("Example.org:80") == ("example.org", "80")
    assert split_host("example.org") == ("example.org", "")
    assert split_host("[::1]:80") == ("[::1]", "80")
    assert split_host("[::g]") is None


def test_what_is_no_host_has_a_spelling_that_no_host_has() -> None:
    assert split_host(canonical("a/b")) is None


# The token.


@pytest.mark.parametrize("header", [f"Bearer {TOKEN}", f"bearer {TOKEN}", f"BEARER  {TOKEN} "])
def test_the_token_is_admitted_in_any_case_of_its_scheme(header: str) -> None:
    assert GUARDED.admits(header)


@pytest.mark.parametrize(
    "header",
    [
        "",
        "Bearer",
        "Bearer ",
        TOKEN,
        f"Basic {TOKEN}",
        f"Bearer{TOKEN}",
        f"Bearer {TOKEN[:-1]}",
        f"Bearer {TOKEN}x",
        f"Bearer {TOKEN.upper()}",
        f"Bearer {TOKEN}, Bearer {TOKEN}",
        f"Bearer {TOKEN} {TOKEN}",
        "Bearer é",
        "Bearer \ud800",
    ],
)
def test_anything_else_is_not(header: str) -> None:
    assert not GUARDED.admits(header)


def test_without_a_token_everybody_is_admitted() -> None:
    assert LOCAL.admits("")
    assert LOCAL.admits("Bearer anything")


def test_an_empty_header_is_not_admitted_even_by_an_empty_token() -> None:
    assert not Access(frozenset(), "").admits("")


# The guard around an application.


@dataclass(slots=True)
class World:
    """A guard around an application that notes what reaches it."""

    access: Access
    reached: list[str] = field(default_factory=list[str])
    sent: list[Message] = field(default_factory=list[Message])

    async def app(self, scope: Scope, receive: Receive, send: Send) -> None:
        self.reached.append(scope["type"])

    async def ask(self, *headers: tuple[str, str], kind: str = "http") -> int | None:
        """Send one request; return the status of the refusal, or nothing if it went through."""
        self.reached.clear()
        self.sent.clear()
        raw = [(name.encode(), value.encode("latin-1")) for name, value in headers]

        async def receive() -> Message:
            return {"type": "http.request", "body": b""}

        async def send(message: Message) -> None:
            self.sent.append(message)

        scope: Scope = {"type": kind, "headers": raw}
        await Guard(self.app, self.access)(scope, receive, send)
        return self.sent[0]["status"] if self.sent else None


HOST = ("host", "127.0.0.1:8787")
BEARER = ("authorization", f"Bearer {TOKEN}")


@pytest.mark.anyio
@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ([HOST], None),
        ([HOST, ("origin", "http://localhost:3000")], None),
        ([], 421),
        ([("host", "evil.com")], 421),
        ([HOST, HOST], 421),
        ([HOST, ("host", "evil.com")], 421),
        ([("host", "evil.com"), HOST], 421),
        ([HOST, ("origin", "http://evil.com")], 403),
        ([HOST, ("origin", "null")], 403),
        ([HOST, ("origin", "")], 403),
        ([HOST, ("origin", "http://localhost"), ("origin", "http://evil.com")], 403),
        ([HOST, ("origin", "http://localhost"), ("origin", "http://localhost")], 403),
        ([("host", "evil.com"), ("origin", "http://evil.com")], 421),
        ([("host", "l\xf6calhost")], 421),
    ],
)
async def test_only_requests_to_this_server_from_its_own_pages_go_through(
    headers: list[tuple[str, str]], status: int | None
) -> None:
    world = World(LOCAL)
    assert await world.ask(*headers) == status
    assert world.reached == (["http"] if status is None else [])


@pytest.mark.anyio
@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ([HOST, BEARER], None),
        ([HOST], 401),
        ([HOST, ("authorization", "Bearer wrong")], 401),
        ([HOST, BEARER, BEARER], 401),
        ([HOST, BEARER, ("authorization", "Bearer wrong")], 401),
        ([("host", "evil.com"), BEARER], 421),
        ([HOST, BEARER, ("origin", "http://evil.com")], 403),
        ([HOST, ("origin", "http://evil.com")], 403),
    ],
)
async def test_with_a_token_only_requests_that_have_it_go_through(
    headers: list[tuple[str, str]], status: int | None
) -> None:
    world = World(GUARDED)
    assert await world.ask(*headers) == status
    assert world.reached == (["http"] if status is None else [])


@pytest.mark.anyio
@pytest.mark.parametrize("headers", [[("host", "evil.com")], [HOST], [HOST, ("origin", "null")]])
async def test_a_refusal_is_an_error_body_that_ends_the_connection(
    headers: list[tuple[str, str]],
) -> None:
    world = World(GUARDED)
    status = await world.ask(*headers)
    start, body = world.sent
    answered = dict(start["headers"])
    assert json.loads(body["body"])["code"] == "UNAUTHORIZED"
    assert answered[b"content-length"] == str(len(body["body"])).encode()
    assert answered[b"connection"] == b"close"
    assert (answered.get(b"www-authenticate") == b"Bearer") is (status == 401)
    assert TOKEN not in body["body"].decode()


@pytest.mark.anyio
async def test_the_applications_own_start_and_end_go_through() -> None:
    world = World(GUARDED)
    assert await world.ask(kind="lifespan") is None
    assert world.reached == ["lifespan"]


@pytest.mark.anyio
async def test_a_websocket_reaches_nothing() -> None:
    world = World(LOCAL)
    await world.ask(HOST, kind="websocket")
    assert (world.reached, world.sent) == ([], [])
