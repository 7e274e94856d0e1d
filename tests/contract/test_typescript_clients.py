"""The TypeScript SDK's two generations as clients, over both transports and revisions."""

import base64
import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NotRequired, TypedDict, cast

import pytest

from contract.answers import Json, Reply
from contract.houses import House
from contract.servers import command
from programs.foreign import run_node

TEXT_MAX_BYTES = 256 * 1024
MIB = 1024 * 1024
LEGACY, MODERN = "2025-11-25", "2026-07-28"
HARD_TEXT = 'a\u2028b\u2029c\x85d\x0be\x0cf\r\n\rg\x00h\x7f"\\\ufeff\U0001f600\ud7ff\n\n'
"""What JSON lines, event streams and careless splitting of lines would trip over."""


class Call(TypedDict):
    tool: str
    arguments: Json
    whole: NotRequired[bool]


class Text(TypedDict):
    type: str
    text: str


class Thrown(TypedDict):
    code: int | str | None
    message: str


class Answer(TypedDict, total=False):
    content: list[Text]
    structuredContent: Json
    isError: bool
    thrown: Thrown
    pieces: list["Answer"]


class Report(TypedDict):
    protocol: str
    server: str
    tools: list[str]
    answers: list[list[Answer]]
    complaints: list[str]


@dataclass(frozen=True, slots=True)
class Foreign:
    """A client of another maker: which program, how it opens, and what it should come to."""

    program: str
    mode: str
    protocol: str
    transport: str

    def play(self, place: "Place", turns: Sequence[Sequence[Call]]) -> list[list[Answer]]:
        """Let the client take its turns, and return what it got."""
        script = {"transport": place.transport, "mode": self.mode, "turns": turns}
        ended = run_node(f"{self.program}.mjs", home=place.home, given=json.dumps(script))
        assert ended.code == 0, ended.errors
        report = cast("Report", json.loads(ended.out))
        assert report["complaints"] == []
        assert report["protocol"] == self.protocol
        assert report["server"] == "codespace"
        assert {"read", "apply_patch", "exec_command"} <= set(report["tools"])
        return report["answers"]


TS1, TS2_LEGACY = ("ts1", "legacy", LEGACY), ("ts2", "legacy", LEGACY)
TS2_AUTO, TS2_MODERN = ("ts2", "auto", MODERN), ("ts2", MODERN, MODERN)


def clients(*openings: tuple[str, str, str]) -> pytest.MarkDecorator:
    """Run a test with each program, opening and expected revision, over both transports."""
    cells = [
        Foreign(*opening, transport)
        for opening in openings
        for transport in ("stdio", "http")
        # Has a test of its own, since every such opening starts the gateway twice.
        if (opening, transport) != (TS2_AUTO, "stdio")
    ]
    return pytest.mark.parametrize(
        "foreign", cells, ids=[f"{cell.program}-{cell.mode}-{cell.transport}" for cell in cells]
    )


@dataclass(frozen=True, slots=True)
class Place:
    """A workspace of one test's own, and how a client reaches its gateway."""

    workspace_id: str
    root: Path
    home: Path
    transport: Json

    def call(self, tool: str, **arguments: object) -> Call:
        """Return a call in this workspace."""
        return {"tool": tool, "arguments": {"workspace_id": self.workspace_id, **arguments}}

    def whole(self, path: str) -> Call:
        """Return a read that goes on to the end of the file."""
        return {**self.call("read", path=path), "whole": True}


@pytest.fixture
def place(foreign: Foreign, request: pytest.FixtureRequest, tmp_path: Path) -> Place:
    if foreign.transport == "http":
        house = cast("House", request.getfixturevalue("house"))
        workspace_id, root = house.take()
        return Place(workspace_id, root, tmp_path, {"url": house.url})
    return over_stdio(tmp_path)


def over_stdio(tmp_path: Path, *wrapper: str) -> Place:
    """Return a workspace that the client serves to itself, with a ledger in a file."""
    root = tmp_path / "workspace"
    root.mkdir()
    ledger = str(tmp_path / "state" / "ledger.db")
    line = [*wrapper, *command("serve", str(root), "--operations-db", ledger)]
    environment = {"PYTHONWARNINGS": "error"}
    started = {"command": line[0], "args": line[1:], "env": environment, "stderr": "inherit"}
    return Place("default", root, tmp_path, started)


@pytest.mark.requirement("errors.are-results", "errors.text-is-the-object")
@clients(TS1, TS2_LEGACY, TS2_AUTO, TS2_MODERN)
def test_results_and_errors_arrive_as_they_were_sent(foreign: Foreign, place: Place) -> None:
    (place.root / "hello.txt").write_bytes(b"hello\n")
    [answers] = foreign.play(
        place,
        [
            [
                {"tool": "workspace_info", "arguments": {}},
                place.call("read", path="hello.txt", approved=True, network=True),
                place.call("find"),
                place.call("bash", command="echo said; exit 3"),
                place.call("read", path="missing.txt"),
                place.call("read"),
                {"tool": "no_such_tool", "arguments": {}},
            ]
        ],
    )
    info, read, found, shell, missing, invalid, unknown = answers
    assert place.workspace_id in str(result(info)["workspaces"])
    assert result(read)["content"] == "hello\n"
    assert result(found)["paths"] == ["hello.txt"]
    assert "said" in body(shell).text("output")
    assert refusal(missing)["code"] == "FILE_NOT_FOUND"
    assert refusal(missing)["details", "path"] == "missing.txt"
    assert refusal(invalid)["code"] == "INVALID_ARGUMENT"
    assert refusal(invalid)["details", "path"] == "path"
    assert unknown.get("thrown", {}).get("code") == -32602


@clients(TS1, TS2_MODERN)
def test_a_patch_is_applied_replayed_and_refused(foreign: Foreign, place: Place) -> None:
    add = "*** Begin Patch\n*** Add File: made.txt\n+made\n*** End Patch\n"
    delete = "*** Begin Patch\n*** Delete File: made.txt\n*** End Patch\n"
    keyed = place.call("apply_patch", patch=add, operation_key="k1")
    stale = place.call("apply_patch", patch=delete, expected_versions={"made.txt": "absent"})
    status = place.call("operation_status", operation_key="k1")
    [applied], [again], [conflict], [known] = foreign.play(
        place, [[keyed], [keyed], [stale], [status]]
    )

    assert result(applied)["status"] == "applied"
    assert result(applied)["replayed"] is False
    assert result(again)["replayed"] is True
    assert result(again)["operation_id"] == result(applied)["operation_id"]
    assert result(known)["status"] == "applied"
    assert refusal(conflict)["code"] == "VERSION_CONFLICT"
    assert refusal(conflict)["details", "path"] == "made.txt"
    assert refusal(conflict).text("operation_id").startswith("op-")
    assert (place.root / "made.txt").read_bytes() == b"made\n"


@pytest.mark.slow
@pytest.mark.requirement("read.default-reaches-clients", "errors.large-text-is-a-summary")
@clients(TS1, TS2_LEGACY, TS2_MODERN)
def test_large_and_hard_and_simultaneous_answers_arrive_whole(
    foreign: Foreign, place: Place
) -> None:
    contents = {
        "large.txt": b"0123456789abcde\n" * 37_500,
        "control.txt": bytes(range(1, 9)) * 65_536,
        "full.txt": "é".encode() * (MIB // 2),
        "hard.txt": HARD_TEXT.encode(),
        "blob.bin": bytes(range(256)) * 100,
        "lines.txt": (b"needle " + b"x" * 440 + b"\n") * 2_000,
    }
    many = {f"{number}.txt": b"%d " % number * (1 + number % 3 * 2_000) for number in range(40)}
    for path, data in (contents | many).items():
        (place.root / path).write_bytes(data)
    answers = foreign.play(
        place,
        [
            [place.call("read", path="large.txt"), place.whole("control.txt")],
            [place.call("read", path="full.txt", max_bytes=MIB)],
            [place.whole("hard.txt"), place.whole("blob.bin")],
            [place.call("grep", pattern="needle", glob="lines.txt", limit=2_000)],
            [place.call("read", path=path) for path in many],
        ],
    )
    [large, control], [full], [hard, blob], [lines], together = answers
    first = result(large)
    assert first["next_offset"] == 512 * 1024
    assert first.text("content").encode() == contents["large.txt"][: 512 * 1024]
    assert first["version"] == hashlib.sha256(contents["large.txt"]).hexdigest()
    assert len(control.get("pieces", [])) > 1
    assert joined(control) == contents["control.txt"]
    assert result(full).text("content").encode() == contents["full.txt"]
    assert joined(hard) == contents["hard.txt"]
    assert joined(blob) == contents["blob.bin"]
    assert len(result(lines).list("matches")) > 1_500
    assert len(compact(result(lines).body)) > 800_000
    for answer, (path, data) in zip(together, many.items(), strict=True):
        assert result(answer)["path"] == path
        assert result(answer).text("content").encode() == data


@pytest.mark.slow
def test_a_throw_away_copy_that_only_probes_leaves_the_ledger_to_the_next(tmp_path: Path) -> None:
    starts = tmp_path / "starts"
    place = over_stdio(tmp_path, "sh", "-c", f'echo >>"{starts}"; exec "$@"', "sh")
    patch = "*** Begin Patch\n*** Add File: made.txt\n+made\n*** End Patch\n"
    keyed = place.call("apply_patch", patch=patch, operation_key="k1")

    missing = place.call("read", path="missing.txt")
    [[applied, refused]] = Foreign(*TS2_AUTO, "stdio").play(place, [[keyed, missing]])
    assert starts.read_bytes() == b"\n" * 2, "this client no longer starts a server twice"
    [[replayed]] = Foreign(*TS2_LEGACY, "stdio").play(place, [[keyed]])
    assert result(applied)["replayed"] is False
    assert refusal(refused)["code"] == "FILE_NOT_FOUND"
    assert result(replayed)["replayed"] is True
    assert result(replayed)["operation_id"] == result(applied)["operation_id"]


@pytest.mark.slow
@pytest.mark.requirement("shutdown.stdio-eof")
@pytest.mark.parametrize("opening", [TS1, TS2_LEGACY], ids=["ts1", "ts2"])
def test_a_gateway_ends_by_itself_when_its_client_closes(
    opening: tuple[str, str, str], tmp_path: Path
) -> None:
    code = tmp_path / "code"
    # Deaf to the client's SIGTERM, so that only an end of the gateway's own gets written down.
    script = f'trap "" TERM; "$@"; echo $? >"{code}"'
    place = over_stdio(tmp_path, "sh", "-c", script, "sh")
    Foreign(*opening, "stdio").play(place, [[place.call("find")]])
    assert code.read_text(encoding="utf-8") == "0\n"


def result(answer: Answer) -> Reply:
    """Return the body of an answer that must be a result."""
    assert answer.get("isError") is not True, answer.get("structuredContent")
    return body(answer)


def refusal(answer: Answer) -> Reply:
    """Return the body of an answer that must be an error."""
    assert answer.get("isError") is True, answer
    return body(answer)


def body(answer: Answer) -> Reply:
    """Return the structured content, which the single text item must tell, too, or sum up."""
    assert "structuredContent" in answer, answer
    structured = answer["structuredContent"]
    [item] = answer.get("content", [])
    if len(compact(structured)) > TEXT_MAX_BYTES:
        assert len(item["text"]) < 200
    else:
        assert json.loads(item["text"]) == structured
    return Reply(structured)


def joined(answer: Answer) -> bytes:
    """Return the bytes of a file that was read in pieces."""
    replies = [result(piece) for piece in answer.get("pieces", [])]
    return b"".join(
        base64.b64decode(reply.text("content"))
        if reply["encoding"] == "base64"
        else reply.text("content").encode()
        for reply in replies
    )


def compact(value: Json) -> bytes:
    """Return an object as the gateway writes it."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode()
