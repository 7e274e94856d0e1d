"""`read`, `find` and `grep` as tools: what they pass on, and that no answer is too large."""

import hashlib
import json
import os
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import cast

import anyio
import anyio.lowlevel
import pytest

from binding import check_binding
from codespace.domain.ids import WorkspaceId
from codespace.domain.limits import Limits
from codespace.domain.sizes import KIB
from codespace.domain.tool import Effect, Json, Tool
from codespace.domain.workspace import Workspace
from codespace.gateway.dispatch import Dispatcher
from codespace.gateway.toolbox import Toolbox
from codespace.gateway.tools.files import END_SECONDS, FileTools
from codespace.workspace.directory import register
from schemas import fits


def family(limits: Limits | None = None) -> list[Tool]:
    return FileTools(limits or Limits(), anyio.CapacityLimiter(2)).tools()


TOOLS = {tool.name: tool for tool in family()}


async def call(root: Path, name: str, **arguments: object) -> Json:
    """Call a tool of the family and return what it answers, which fits its schema."""
    return await call_within(Limits(), root, name, arguments)


async def call_within(
    limits: Limits, root: Path, name: str, arguments: Mapping[str, object]
) -> Json:
    toolbox = Toolbox(family(limits))
    demo = Workspace(WorkspaceId("demo"), register(str(root)))
    outcome = await Dispatcher(toolbox, {demo.workspace_id: demo}).call(
        name, {"workspace_id": "demo", **arguments}
    )
    assert fits(TOOLS[name].output_schema, outcome.body)
    return outcome.body


def wire_bytes(body: Json) -> int:
    return len(json.dumps(body, ensure_ascii=False).encode())


@pytest.mark.parametrize("name", TOOLS)
def test_the_schema_and_the_binding_say_the_same(name: str) -> None:
    check_binding(TOOLS[name])


def test_all_of_them_only_read() -> None:
    assert {(tool.effect, tool.idempotent) for tool in TOOLS.values()} == {(Effect.READ, True)}


@pytest.mark.anyio
async def test_a_file_is_read_with_its_version(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_bytes("hé\n".encode())
    assert await call(tmp_path, "read", path="./a.txt") == {
        "path": "a.txt",
        "content": "hé\n",
        "encoding": "utf-8",
        "version": hashlib.sha256("hé\n".encode()).hexdigest(),
        "size": 4,
        "truncated": False,
    }


@pytest.mark.anyio
async def test_a_piece_says_where_the_next_begins(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("0123456789", encoding="utf-8")
    piece = await call(tmp_path, "read", path="a.txt", offset=2.0, max_bytes=3)
    assert (piece["content"], piece["truncated"], piece["next_offset"]) == ("234", True, 5)
    last = await call(tmp_path, "read", path="a.txt", offset=5)
    assert (last["content"], last["truncated"]) == ("56789", False)
    assert "next_offset" not in last


@pytest.mark.anyio
async def test_what_is_not_text_comes_as_base64(tmp_path: Path) -> None:
    (tmp_path / "a.bin").write_bytes(b"\xff\x00")
    answer = await call(tmp_path, "read", path="a.bin")
    assert (answer["content"], answer["encoding"]) == ("/wA=", "base64")


@pytest.mark.anyio
async def test_reading_behind_the_end_is_empty_and_no_bug(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("abc", encoding="utf-8")
    answer = await call(tmp_path, "read", path="a.txt", offset=2**53 - 1)
    assert (answer["content"], answer["truncated"]) == ("", False)


@pytest.mark.parametrize("content", ["\x01", "é", "a", "\u2028", '"', "😀"])
@pytest.mark.anyio
async def test_what_is_read_by_default_is_small_enough_for_every_client(
    tmp_path: Path, content: str
) -> None:
    (tmp_path / "a.txt").write_text(content * (600 * KIB), encoding="utf-8")
    answer = await call(tmp_path, "read", path="a.txt")
    assert answer["truncated"] is True
    assert wire_bytes(answer) < 1024 * KIB
    assert len(str(answer["content"]).encode()) == answer["next_offset"]
    assert cast("int", answer["next_offset"]) > 64 * KIB


@pytest.mark.anyio
async def test_a_client_that_asks_for_a_mebibyte_gets_it(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("x" * (1025 * KIB), encoding="utf-8")
    answer = await call(tmp_path, "read", path="a.txt", max_bytes=1024 * KIB)
    assert answer["next_offset"] == 1024 * KIB


@pytest.mark.anyio
async def test_files_are_found_by_their_names(tmp_path: Path) -> None:
    (tmp_path / "src").mkdir()
    for name in ("b.py", "a.py", "src/c.py", "note.txt", "built.py"):
        (tmp_path / name).touch()
    (tmp_path / ".gitignore").write_text("built.py\n", encoding="utf-8")
    assert await call(tmp_path, "find", glob="**/*.py") == {
        "paths": ["a.py", "b.py", "src/c.py"],
        "truncated": False,
    }
    all_of_them = await call(tmp_path, "find", glob="*.py", include_ignored=True, limit=2)
    assert all_of_them == {"paths": ["a.py", "b.py"], "truncated": True}


@pytest.mark.anyio
async def test_a_name_that_is_not_text_is_counted_and_not_shown(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("needle", encoding="utf-8")
    Path(os.fsdecode(os.fsencode(tmp_path) + b"/\xff.txt")).write_text("needle", encoding="utf-8")
    found = await call(tmp_path, "find")
    assert (found["paths"], found["skipped"]) == (["a.txt"], 1)
    hit = await call(tmp_path, "grep", pattern="needle")
    assert (len(cast("list[Json]", hit["matches"])), hit["skipped"]) == (1, 1)


@pytest.mark.anyio
async def test_lines_are_found_with_their_surroundings_where_asked_for(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("one\ntwo Needle\nthree\n", encoding="utf-8")
    place = {"path": "a.txt", "line": 2, "column": 5, "text": "two Needle"}
    assert await call(tmp_path, "grep", pattern="Needle") == {
        "matches": [place],
        "truncated": False,
    }
    around = await call(tmp_path, "grep", pattern="needle", case_sensitive=False, context=1)
    assert around["matches"] == [{**place, "before": ["one"], "after": ["three"]}]
    assert (await call(tmp_path, "grep", pattern="needle"))["matches"] == []


@pytest.mark.anyio
async def test_plain_text_and_a_glob_narrow_a_search(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("a.c\nabc\n", encoding="utf-8")
    (tmp_path / "b.md").write_text("a.c\n", encoding="utf-8")
    answer = await call(tmp_path, "grep", pattern="a.c", fixed=True, glob="*.txt")
    assert [(item["path"], item["line"]) for item in cast("list[Json]", answer["matches"])] == [
        ("a.txt", 1)
    ]


@pytest.mark.parametrize("character", ["x", "€", "😀"])
@pytest.mark.anyio
async def test_matches_stop_where_the_answer_would_grow_too_large(
    tmp_path: Path, character: str
) -> None:
    (tmp_path / "a.txt").write_text((character * 400 + "\n") * 50, encoding="utf-8")
    small = replace(Limits(), result_max_bytes=10 * KIB)
    answer = await call_within(small, tmp_path, "grep", {"pattern": character})
    assert answer["truncated"] is True
    assert len(cast("list[Json]", answer["matches"])) > 3
    assert wire_bytes(answer) <= 10 * KIB + 64


@pytest.mark.anyio
async def test_paths_stop_where_the_answer_would_grow_too_large(tmp_path: Path) -> None:
    for number in range(30):
        (tmp_path / (f"{number:02}" + "é" * 100)).touch()
    small = replace(Limits(), result_max_bytes=4 * KIB)
    answer = await call_within(small, tmp_path, "find", {})
    assert answer["truncated"] is True
    assert 3 < len(cast("list[str]", answer["paths"])) < 30
    assert wire_bytes(answer) <= 4 * KIB + 64


@pytest.mark.parametrize(
    ("name", "arguments", "code"),
    [
        ("read", {"path": "../x"}, "PATH_ESCAPE"),
        ("read", {"path": "none"}, "FILE_NOT_FOUND"),
        ("read", {"path": "a", "max_bytes": 1024 * KIB + 1}, "INVALID_ARGUMENT"),
        ("read", {"path": "a\ud800"}, "INVALID_ARGUMENT"),
        ("find", {"limit": 10_001}, "INVALID_ARGUMENT"),
        ("grep", {"pattern": "("}, "INVALID_ARGUMENT"),
        ("grep", {"pattern": "x", "context": 11}, "INVALID_ARGUMENT"),
    ],
)
@pytest.mark.anyio
async def test_a_refusal_has_the_contracts_code(
    tmp_path: Path, name: str, arguments: dict[str, object], code: str
) -> None:
    assert (await call(tmp_path, name, **arguments))["code"] == code


@pytest.mark.anyio
async def test_a_cancelled_call_leaves_no_thread_at_work(tmp_path: Path) -> None:
    endless = tmp_path / "endless"
    with endless.open("wb") as file:
        file.truncate(1024**4)
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(partial(call, tmp_path, "read", path="endless"))
        while not is_open(endless):
            await anyio.lowlevel.checkpoint()
        tasks.cancel_scope.cancel()
    assert not is_open(endless)


@pytest.mark.anyio
async def test_a_call_that_is_cancelled_before_its_turn_ends_at_once(tmp_path: Path) -> None:
    limiter = anyio.CapacityLimiter(1)
    (find,) = (tool for tool in FileTools(Limits(), limiter).tools() if tool.name == "find")
    demo = Workspace(WorkspaceId("demo"), register(str(tmp_path)))
    dispatcher = Dispatcher(Toolbox([find]), {demo.workspace_id: demo})
    began = anyio.current_time()
    async with limiter, anyio.create_task_group() as tasks:
        tasks.start_soon(dispatcher.call, "find", {"workspace_id": "demo"})
        while not limiter.statistics().tasks_waiting:
            await anyio.lowlevel.checkpoint()
        tasks.cancel_scope.cancel()
    assert anyio.current_time() - began < END_SECONDS


def is_open(file: Path) -> bool:
    """Say whether this process has the file open."""
    found: list[str] = []
    for descriptor in Path("/proc/self/fd").iterdir():
        with suppress(OSError):
            found.append(str(descriptor.readlink()))
    return str(file) in found


@pytest.mark.anyio
async def test_a_file_that_is_not_there_is_answered_with_what_may_have_been_meant(
    tmp_path: Path,
) -> None:
    (tmp_path / "module.py").write_text("", encoding="utf-8")
    body = await call(tmp_path, "read", path="modul.py")
    assert body["code"] == "FILE_NOT_FOUND"
    assert "did you mean 'module.py'?" in str(body["message"])
    assert body["details"] == {"path": "modul.py", "near": ["module.py"]}
    assert "find lists what there is" in str((await call(tmp_path, "read", path="x"))["message"])
