"""`apply_patch` and `operation_status` as tools, over a ledger in memory and a real directory."""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import cast

import pytest

from binding import check_binding
from codespace.domain.ids import WorkspaceId
from codespace.domain.limits import Limits
from codespace.domain.operation import version_of
from codespace.domain.tool import Effect, Json, Tool
from codespace.gateway.dispatch import Dispatcher
from codespace.gateway.leases import Leases
from codespace.gateway.patches import Patches
from codespace.gateway.toolbox import Toolbox
from codespace.gateway.tools.patch import PatchTools
from codespace.patching.grammar import parse
from codespace.store.engine import Store
from codespace.store.operations import Operations
from doubles.patch_world import NOW_MS, PatchWorld, add, delete, patch, patch_world, update
from schemas import fits

HELLO = version_of(b"hello\n")


@pytest.fixture
def world(tmp_path: Path) -> Iterator[PatchWorld]:
    with patch_world(tmp_path / "root") as made:
        (made.root / "a.txt").write_text("hello\n", encoding="utf-8")
        yield made


async def call(world: PatchWorld, name: str, **arguments: object) -> Json:
    """Call a tool of the family and return what it answers, which fits its schema."""
    toolbox = Toolbox(PatchTools(world.patches).tools())
    outcome = await Dispatcher(toolbox, {WorkspaceId("demo"): world.workspace}).call(
        name, arguments
    )
    tool = toolbox.get(name)
    assert tool is not None
    assert fits(tool.output_schema, outcome.body)
    return outcome.body


async def applied(world: PatchWorld, text: str, **arguments: object) -> Json:
    return await call(world, "apply_patch", workspace_id="demo", patch=text, **arguments)


def family() -> Mapping[str, Tool]:
    store = Store(None)
    try:
        patches = Patches(
            Operations(store),
            Leases(is_live=_never),
            Limits(),
            now_ms=lambda: NOW_MS,
            mint=lambda prefix: prefix,
        )
        return {tool.name: tool for tool in PatchTools(patches).tools()}
    finally:
        store.close()


async def _never(process_id: object) -> bool:
    return False


@pytest.mark.parametrize("name", ["apply_patch", "operation_status"])
def test_the_schema_and_the_binding_say_the_same(name: str) -> None:
    check_binding(family()[name])


def test_a_patch_writes_and_the_ledger_is_only_looked_at() -> None:
    tools = family()
    assert tools["apply_patch"].effect is Effect.WRITE
    assert tools["operation_status"].effect is Effect.INSPECT
    assert tools["operation_status"].idempotent


def test_the_patch_in_the_description_is_a_patch() -> None:
    lines = family()["apply_patch"].description.splitlines()
    begin, end = lines.index("*** Begin Patch"), lines.index("*** End Patch")
    assert len(parse("\n".join(lines[begin : end + 1])).sections) == 3


@pytest.mark.anyio
async def test_chunks_that_share_a_line_are_refused_as_the_description_says(
    world: PatchWorld,
) -> None:
    said = " ".join(family()["apply_patch"].description.split())
    assert "chunks, which stand in file order and share no line, not even of context" in said
    (world.root / "c.txt").write_text("one\ntwo\nthree\n", encoding="utf-8")
    lines = ["@@", "-one", "+1", " two", "@@", " two", "-three", "+3"]
    text = "\n".join(["*** Begin Patch", "*** Update File: c.txt", *lines, "*** End Patch"])
    assert (await applied(world, text))["code"] == "INVALID_PATCH"


@pytest.mark.anyio
async def test_an_applied_patch_tells_each_change_with_its_versions(world: PatchWorld) -> None:
    (world.root / "old.txt").write_text("x\n", encoding="utf-8")
    text = patch(
        update("a.txt", "hello", "bye", move_to="b.txt"), add("new.txt", "one"), delete("old.txt")
    )
    assert await applied(world, text) == {
        "status": "applied",
        "operation_id": "op-1",
        "replayed": False,
        "files": ["a.txt", "b.txt", "new.txt", "old.txt"],
        "changes": [
            {
                "path": "b.txt",
                "kind": "move",
                "from": "a.txt",
                "before_version": HELLO,
                "after_version": version_of(b"bye\n"),
                "added": 1,
                "removed": 1,
            },
            {
                "path": "new.txt",
                "kind": "add",
                "after_version": version_of(b"one\n"),
                "added": 1,
                "removed": 0,
            },
            {
                "path": "old.txt",
                "kind": "delete",
                "before_version": version_of(b"x\n"),
                "added": 0,
                "removed": 1,
            },
        ],
    }


@pytest.mark.anyio
async def test_a_preview_says_the_same_and_writes_nothing(world: PatchWorld) -> None:
    preview = await applied(world, patch(update("a.txt", "hello", "bye")), check_only=True)
    assert preview["status"] == "checked"
    assert (world.root / "a.txt").read_text(encoding="utf-8") == "hello\n"


@pytest.mark.anyio
async def test_the_expected_versions_and_the_key_are_passed_on(world: PatchWorld) -> None:
    text = patch(update("a.txt", "hello", "bye"))
    refused = await applied(world, text, expected_versions={"a.txt": "0" * 64})
    assert (refused["code"], refused["operation_id"]) == ("VERSION_CONFLICT", "op-1")
    first = await applied(world, text, expected_versions={"a.txt": HELLO}, operation_key="k")
    again = await applied(world, text, expected_versions={"a.txt": HELLO}, operation_key="k")
    assert again == {**first, "replayed": True}


@pytest.mark.anyio
async def test_the_record_of_a_patch_has_its_events(world: PatchWorld) -> None:
    done = await applied(world, patch(update("a.txt", "hello", "bye")), operation_key="k")
    record = await call(world, "operation_status", operation_key="k")
    assert record == {
        "operation_id": "op-1",
        "status": "applied",
        "replayed": False,
        "kind": "patch",
        "workspace_id": "demo",
        "created_at": NOW_MS,
        "finished_at": NOW_MS,
        "files": done["files"],
        "changes": done["changes"],
        "events": [
            {"at": NOW_MS, "name": "minted"},
            {"at": NOW_MS, "name": "finished", "status": "applied"},
        ],
    }
    assert await call(world, "operation_status", operation_id="op-1") == record


@pytest.mark.anyio
async def test_the_record_of_a_refusal_has_its_error(world: PatchWorld) -> None:
    refused = await applied(world, patch(update("a.txt", "nothing of the kind", "x")))
    record = await call(world, "operation_status", operation_id="op-1")
    assert record["status"] == "rejected"
    error = cast("Mapping[str, object]", record["error"])
    assert (error["code"], error["message"]) == (refused["code"], refused["message"])


@pytest.mark.parametrize(
    "arguments", [{}, {"operation_id": "op-9"}, {"operation_id": "op-1", "operation_key": "k"}]
)
@pytest.mark.anyio
async def test_a_record_is_asked_for_by_exactly_one_name_that_is_known(
    world: PatchWorld, arguments: dict[str, object]
) -> None:
    assert (await call(world, "operation_status", **arguments))["code"] == "OPERATION_NOT_FOUND"


@pytest.mark.parametrize(
    ("arguments", "place"),
    [
        ({"patch": 1}, "patch"),
        ({"patch": "\ud800"}, "patch"),
        ({"expected_versions": {"a.txt": "ABSENT"}}, "expected_versions.a.txt"),
        ({"expected_versions": {"a.txt": HELLO.upper()}}, "expected_versions.a.txt"),
        ({"expected_versions": {"a.txt": f"{HELLO}\n"}}, "expected_versions.a.txt"),
        ({"expected_versions": [["a.txt", "absent"]]}, "expected_versions"),
        ({"operation_key": ""}, "operation_key"),
        ({"operation_key": "k" * 201}, "operation_key"),
        ({"check_only": "false"}, "check_only"),
    ],
)
@pytest.mark.anyio
async def test_what_does_not_fit_mints_no_operation(
    world: PatchWorld, arguments: dict[str, object], place: str
) -> None:
    everything: dict[str, object] = {"patch": patch(add("new.txt", "x")), **arguments}
    refused = await call(world, "apply_patch", workspace_id="demo", **everything)
    assert refused["code"] == "INVALID_ARGUMENT"
    assert cast("Mapping[str, object]", refused["details"])["path"] == place
    assert "operation_id" not in refused
    assert world.recorded() == []
