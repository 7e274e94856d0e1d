"""Who may talk to the HTTP server: Host, Origin, token, and where it listens."""

import socket
from pathlib import Path

import pytest

from codespace.adapters.client import connect_http
from codespace.adapters.http_guard import Access
from codespace.domain.errors import ErrorCode
from codespace.settings import load
from contract.houses import House
from contract.raw import HttpAnswer, http_request, initialize_body, mcp_headers
from contract.servers import RefusedStart, Server, serving
from contract.session import Session

TOKEN = "a-token-of-the-operator-0123456789"
ROUTES = ("/mcp", "/inbox/works", "/inbox/approvals", "/", "/no/such/route", "/.well-known/x")


def opened(server: Server, **headers: str) -> HttpAnswer:
    return http_request(server.url, headers=mcp_headers(**headers), body=initialize_body())


def address(server: Server) -> str:
    return server.url.removeprefix("http://").removesuffix("/mcp")


@pytest.mark.requirement("http.host-is-checked")
def test_only_names_of_this_server_are_hosts(house: House) -> None:
    port = address(house.running).rpartition(":")[2]
    for host in (f"127.0.0.1:{port}", f"localhost:{port}", "localhost", f"[::1]:{port}"):
        assert opened(house.running, host=host).status == 200
    for host in (
        *("evil.example", f"evil.example:{port}", f"127.0.0.1.evil.example:{port}"),
        *(f"localhost.evil.example:{port}", f"user@localhost:{port}", f"127.0.0.2:{port}", "["),
    ):
        assert opened(house.running, host=host).status == 421


@pytest.mark.requirement("http.origin-is-checked")
def test_only_pages_of_this_server_are_origins(house: House) -> None:
    here = address(house.running)
    for origin in (f"http://{here}", f"https://{here}", "http://localhost", ""):
        assert opened(house.running, origin=origin).status == 200
    for origin in (
        *("null", "http://evil.example", f"http://{here}.evil.example", f"http://evil@{here}"),
        *("file://", f"ftp://{here}", f"http://{here}/page", "http://["),
    ):
        answer = opened(house.running, origin=origin)
        assert answer.status == 403
        assert "access-control-allow-origin" not in answer.headers


@pytest.mark.requirement("http.extra-names")
def test_the_operators_extra_names_are_hosts_and_origins(tmp_path: Path, config: Path) -> None:
    variables = {"CODESPACE_HTTP_ALLOWED_HOSTS": "code.example, other.example:444"}
    errors = tmp_path / "stderr.txt"
    with serving(errors, "--config", str(config), variables=variables) as server:
        for host in ("code.example", "CODE.example:80", "other.example:444"):
            assert opened(server, host=host).status == 200
            assert opened(server, host=host, origin=f"https://{host}").status == 200
        for host in ("other.example", "other.example:445", "third.example"):
            assert opened(server, host=host).status == 421


@pytest.mark.anyio
@pytest.mark.requirement(
    "http.token-guards-every-route", "http.token-is-never-told", "config.token-flag-is-a-file"
)
async def test_with_a_token_every_route_asks_for_it_and_never_tells_it(
    tmp_path: Path, config: Path
) -> None:
    file = tmp_path / "token"
    file.write_text(f"{TOKEN}\n", encoding="utf-8")
    errors = tmp_path / "stderr.txt"
    arguments = ("--config", str(config), "--http-token-file", str(file), "--log-level", "DEBUG")
    with serving(errors, *arguments) as server:
        wrong = (
            *("", TOKEN, f"Basic {TOKEN}", "Bearer", "Bearer ", f"Bearer {TOKEN}x"),
            *(f"Bearer {TOKEN[:-1]}", f"Bearer {TOKEN.upper()}", f"Token {TOKEN}", "Bearer \xff"),
        )
        for path in ROUTES:
            for authorization in wrong:
                for method in ("GET", "POST", "DELETE", "OPTIONS", "PATCH"):
                    answer = http_request(
                        server.url,
                        method,
                        path=path,
                        headers=mcp_headers(authorization=authorization),
                        body=initialize_body() if method == "POST" else b"",
                    )
                    assert answer.status == 401, (path, authorization, method)
                    assert answer.headers["www-authenticate"] == "Bearer"
                    assert TOKEN not in answer.body.decode() + str(answer.headers)
        assert opened(server, authorization=f"Bearer {TOKEN}").status == 200
        assert opened(server, authorization=f"bearer {TOKEN}").status == 200
        authorized = mcp_headers(authorization=f"Bearer {TOKEN}")
        assert http_request(server.url, path="/none", headers=authorized).status == 404
        for era in ("2025-11-25", "2026-07-28"):
            async with connect_http(server.url, era=era, token=TOKEN) as connection:
                session = Session(connection.client)
                for workspace_id in ("default", TOKEN):
                    answer = await session.ask(
                        "read", {"workspace_id": workspace_id, "path": "missing"}
                    )
                    assert answer.is_error
                environment = await session.call(
                    "bash", workspace_id="default", command="env; tr '\\0' ' ' </proc/$PPID/cmdline"
                )
                assert TOKEN not in environment.text("output")
        assert server.end() == 0
        assert TOKEN not in server.said()


@pytest.mark.requirement("errors.transport-failures-mint-nothing")
@pytest.mark.anyio
async def test_http_failures_reach_no_tool(house: House, session: Session) -> None:
    workspace_id, root = house.take()
    patch = "*** Begin Patch\\n*** Add File: a.txt\\n+a\\n*** End Patch"
    call = (
        '{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"apply_patch","arguments":'
        f'{{"workspace_id":"{workspace_id}","operation_key":"k","patch":"{patch}"}}}}}}'
    ).encode()
    large = b'{"x":"' + b"x" * (33 * 1024 * 1024) + b'"}'
    failures = (
        (421, http_request(house.url, headers=mcp_headers(host="evil.example"), body=call)),
        (403, http_request(house.url, headers=mcp_headers(origin="http://evil"), body=call)),
        (404, http_request(house.url, path="/other", headers=mcp_headers(), body=call)),
        (
            404,
            http_request(house.url, headers=mcp_headers(mcp_session_id="0" * 32), body=call),
        ),
        (413, http_request(house.url, headers=mcp_headers(), body=large)),
        (406, http_request(house.url, headers=mcp_headers(accept="text/html"), body=call)),
        (400, http_request(house.url, headers=mcp_headers(content_type="text/plain"), body=call)),
        (400, http_request(house.url, headers=mcp_headers(), body=call[:-1])),
        (405, http_request(house.url, "PUT", headers=mcp_headers(), body=call)),
    )
    assert [answer.status for _, answer in failures] == [status for status, _ in failures]
    await session.refused(
        ErrorCode.OPERATION_NOT_FOUND,
        "operation_status",
        operation_key="k",
        workspace_id=workspace_id,
    )
    assert list(root.iterdir()) == []


@pytest.mark.requirement("http.token-is-optional")
def test_without_a_token_the_server_says_who_can_use_it(house: House) -> None:
    assert opened(house.running).status == 200
    assert "no token is set" in house.running.said()


@pytest.mark.requirement("http.token-in-constant-time")
def test_the_token_is_compared_by_the_function_made_for_it() -> None:
    assert "compare_digest" in Access.admits.__code__.co_names
    guarded = Access(frozenset(), TOKEN)
    assert guarded.admits(f"Bearer {TOKEN}")
    assert not guarded.admits("Bearer \ud800")


@pytest.mark.requirement("http.default-address")
def test_the_default_address_is_loopback_port_8787(house: House) -> None:
    settings = load(path=".", environ={}).settings
    assert (settings.http_host, settings.http_port) == ("127.0.0.1", 8787)
    assert address(house.running).startswith("127.0.0.1:")
    port = int(address(house.running).rpartition(":")[2])
    with socket.socket() as beside, pytest.raises(OSError, match="refused"):
        beside.connect(("127.0.0.2", port))


@pytest.mark.requirement("http.public-bind-needs-a-token")
@pytest.mark.parametrize("host", ["0.0.0.0", "::", "192.0.2.1", "example.com"])
def test_a_public_address_without_a_token_is_refused_at_start(
    config: Path, refused_start: RefusedStart, host: str
) -> None:
    refusal = refused_start("--config", str(config), "--http", "--http-host", host)
    assert "http_token" in refusal
    assert "http_allow_insecure_bind" in refusal


@pytest.mark.requirement("http.public-bind-flag", "http.public-bind-needs-a-token")
@pytest.mark.parametrize("permission", ["token", "flag"])
def test_a_public_address_is_served_with_a_token_or_the_operators_insistence(
    tmp_path: Path, config: Path, permission: str
) -> None:
    flags = ("--http-allow-insecure-bind",) if permission == "flag" else ()
    variables = {"CODESPACE_HTTP_TOKEN": TOKEN} if permission == "token" else {}
    arguments = ("--config", str(config), "--http-host", "0.0.0.0", *flags)
    with serving(tmp_path / "stderr.txt", *arguments, variables=variables) as server:
        port = address(server).rpartition(":")[2]
        url = f"http://127.0.0.1:{port}/mcp"
        given = mcp_headers(authorization=f"Bearer {TOKEN}")
        assert http_request(url, headers=given, body=initialize_body()).status == 200
        plain = http_request(url, headers=mcp_headers(), body=initialize_body())
        assert plain.status == (401 if permission == "token" else 200)
        assert ("no token is set" in server.said()) is (permission == "flag")


def test_a_taken_port_is_refused_at_start(
    house: House, config: Path, refused_start: RefusedStart
) -> None:
    port = address(house.running).rpartition(":")[2]
    assert "in use" in refused_start("--config", str(config), "--http", "--http-port", port)
