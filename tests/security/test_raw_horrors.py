"""Lines and bodies that no SDK would send, at a real gateway: each is answered, and it lives on."""

import contextlib
import itertools
import json
from collections.abc import Callable, Generator
from dataclasses import dataclass
from pathlib import Path

import pytest

from codespace.domain.errors import ErrorCode
from contract.answers import Reply
from contract.raw import http_request, initialize_body, mcp_headers, raw_stdio
from contract.servers import serving, write_config
from contract.session import tree

PROTOCOL_ERRORS = (-32700, -32600, -32602)
MEGABYTE = 1_000_000
DEEP = 100_000


@dataclass(frozen=True, slots=True)
class Gate:
    """A gateway that takes raw messages, and the one workspace that it serves."""

    send: Callable[[bytes], Reply]
    root: Path

    def call(self, tool: str, arguments: str) -> Reply:
        """Send a call with the text of its arguments as it is."""
        text = (
            '{"jsonrpc":"2.0","id":77,"method":"tools/call",'
            f'"params":{{"name":"{tool}","arguments":{arguments}}}}}'
        )
        return self.send(text.encode("utf-8", "surrogatepass"))


@pytest.fixture(scope="module", params=["stdio", "http"])
def gate(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Generator[Gate]:
    base = tmp_path_factory.mktemp("horrors")
    root = base / "root"
    root.mkdir()
    (root / "a.txt").write_text("one\n", encoding="utf-8")
    config = write_config(
        base / "codespace.json", {"default": {"root": str(root), "profile": "workspace-write"}}
    )
    errors = base / "stderr.txt"
    if request.param == "stdio":
        with raw_stdio(errors, "--config", str(config)) as gateway:
            gateway.open()

            def over_stdio(line: bytes) -> Reply:
                gateway.send(line)
                return gateway.receive()

            yield Gate(over_stdio, root)
            assert gateway.leave() == (0, b"")
    else:
        with serving(errors, "--config", str(config)) as server:
            opened = http_request(server.url, headers=mcp_headers(), body=initialize_body())
            given = mcp_headers(mcp_session_id=opened.headers["mcp-session-id"])

            def over_http(body: bytes) -> Reply:
                return http_request(server.url, headers=given, body=body).message()

            yield Gate(over_http, root)
            assert server.end() == 0
    said = errors.read_text(encoding="utf-8", errors="replace")
    assert "Traceback" not in said
    assert " ERROR " not in said


def judged(answer: Reply) -> str:
    """Return the tool's code, `ok`, or `protocol`, once the answer is one of these."""
    if "error" in answer:
        assert answer["error", "code"] in PROTOCOL_ERRORS, answer.body
        return "protocol"
    body = answer.at("result", "structuredContent")
    if not answer.at("result").body.get("isError"):
        return "ok"
    code = ErrorCode(body.text("code"))
    assert code is not ErrorCode.INTERNAL
    return code.value


def workspace(**arguments: object) -> str:
    return json.dumps({"workspace_id": "default", **arguments})


@pytest.mark.parametrize(
    ("tool", "field"),
    [
        ("read", "path"),
        ("find", "glob"),
        ("grep", "pattern"),
        ("apply_patch", "patch"),
        ("apply_patch", "operation_key"),
        ("bash", "command"),
        ("write_stdin", "data"),
        ("operation_status", "operation_id"),
        ("read", "workspace_id"),
        ("no_such_argument", "x"),
    ],
)
def test_a_text_of_ten_megabytes_is_refused(gate: Gate, tool: str, field: str) -> None:
    before = tree(gate.root)
    other = {"patch": "x", "path": "a.txt", "process_id": "proc-none", "pattern": "x"}
    if tool == "operation_status":
        other = {}
    named = "read" if tool == "no_such_argument" else tool
    answer = gate.call(named, workspace(**{**other, field: "x" * 10 * MEGABYTE}))
    assert (judged(answer) == "ok") is (tool == "no_such_argument")
    assert len(json.dumps(answer.body)) < 10_000
    assert tree(gate.root) == before


TEXTS = (
    r'"\ud800"',
    r'"\udc00\ud800"',
    r'"a\u0000b"',
    r'"\ud83d"',
    '"\ud800"',
    '"..\\u002f.."',
    '"a.txt\\n../x"',
    '"a.txt."',
    '"' + "n" * 255 + '"',
    '"' + "n" * 256 + '"',
    '"' + "\\u00e4" * 128 + '"',
    '"' + "d/" * 3_000 + '"',
)
VALUES = (
    "null",
    "true",
    "-1",
    "-0",
    "0.5",
    "1e400",
    "-1e400",
    "1e308",
    "NaN",
    "Infinity",
    "9" * 19,
    "9" * 400,
    "9" * 5_000,
    "[]",
    "{}",
    "[[[[[[]]]]]]",
    '{"a":{"b":{"c":[]}}}',
)


@pytest.mark.parametrize(
    ("tool", "fields"),
    [
        ("read", ("path", "offset", "max_bytes")),
        ("find", ("glob", "limit", "include_ignored")),
        ("grep", ("pattern", "context", "fixed")),
        ("apply_patch", ("patch", "expected_versions", "operation_key", "check_only")),
        ("exec_command", ("command", "tty")),
        ("write_stdin", ("process_id", "data")),
        ("process_resize", ("rows", "cols")),
        ("operation_status", ("operation_id", "operation_key")),
        ("workspace_info", ("workspace_id",)),
    ],
)
def test_odd_values_anywhere_are_answered(gate: Gate, tool: str, fields: tuple[str, ...]) -> None:
    before = tree(gate.root)
    whole: dict[str, str] = {
        "workspace_id": '"default"',
        "path": '"a.txt"',
        "pattern": '"one"',
        "patch": '"x"',
        "command": '["true"]',
        "process_id": '"proc-none"',
        "data": '"x"',
        "rows": "1",
        "cols": "1",
    }
    for field, value in itertools.product(fields, (*TEXTS, *VALUES)):
        arguments = {**whole, field: value}
        text = ",".join(f'"{key}":{item}' for key, item in arguments.items())
        judged(gate.call(tool, f"{{{text}}}"))
    assert tree(gate.root) == before


@pytest.mark.parametrize("opening", ["[", '{"a":'], ids=["arrays", "objects"])
def test_deep_nesting_is_answered(gate: Gate, opening: str) -> None:
    closing = "]" if opening == "[" else "}"
    deep = opening * DEEP + "0" + closing * DEEP
    assert judged(gate.send(deep.encode())) == "protocol"
    assert judged(gate.call("read", f'{{"workspace_id":"default","path":{deep}}}')) == "protocol"
    unfinished = f'{{"jsonrpc":"2.0","id":77,"method":{opening * DEEP}'
    assert judged(gate.send(unfinished.encode())) == "protocol"
    shallow = opening * 100 + "0" + closing * 100
    assert judged(gate.call("read", f'{{"workspace_id":"default","path":{shallow}}}')) in (
        "INVALID_ARGUMENT",
        "protocol",
    )


def test_a_duplicate_key_does_not_slip_past_the_checks(gate: Gate) -> None:
    before = tree(gate.root)
    for path, other in (("a.txt", "../x"), ("../x", "a.txt"), ("a.txt", "/etc/passwd")):
        answer = gate.call("read", f'{{"workspace_id":"default","path":"{path}","path":"{other}"}}')
        told = judged(answer)
        assert told in ("ok", "PATH_ESCAPE", "protocol")
        if told == "ok":
            assert answer["result", "structuredContent", "content"] == "one\n"
    answer = gate.call(
        "apply_patch",
        '{"workspace_id":"nobody","workspace_id":"default","check_only":true,"check_only":1,'
        '"patch":"x"}',
    )
    assert judged(answer) in ("INVALID_ARGUMENT", "INVALID_PATCH", "protocol")
    assert tree(gate.root) == before


def test_it_still_serves_after_all_that(gate: Gate) -> None:
    answer = gate.call("read", workspace(path="a.txt"))
    assert answer["result", "structuredContent", "content"] == "one\n"


@pytest.mark.slow
def test_a_line_without_end_ends_the_conversation_with_an_error(tmp_path: Path) -> None:
    root = tmp_path / "root"
    root.mkdir()
    with raw_stdio(tmp_path / "stderr.txt", str(root)) as gateway:
        gateway.open()
        with contextlib.suppress(BrokenPipeError):  # it stops reading when it has had enough
            gateway.send(b'{"x":"' + b"x" * (65 * 1024 * 1024))
        assert gateway.receive()["error", "code"] == -32700
        assert gateway.ended() == (0, b"")
        assert "Traceback" not in gateway.said()
