"""What a patch answers, and what it leaves on disk."""

import hashlib
import os
import stat
from pathlib import Path

import pytest

from codespace.domain.errors import ErrorCode
from contract.houses import over_http
from contract.servers import serving
from contract.session import Space

pytestmark = pytest.mark.anyio

RESULT_FIELDS = {"status", "operation_id", "replayed", "files", "changes"}


def version(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


@pytest.mark.requirement("patch.result", "patch.changes", "patch.applied", "ids.prefixes")
async def test_an_applied_patch_is_answered_change_by_change(cell_space: Space) -> None:
    space = cell_space
    space.write("update.txt", "one\ntwo\nthree\n")
    space.write("delete.txt", "gone\n")
    space.write("old/name.txt", "kept\nline\n")
    reply = await space.patch(
        "*** Add File: new/added.txt",
        "+first",
        "+second",
        "*** Update File: update.txt",
        "@@",
        " one",
        "-two",
        "+2",
        "+2b",
        "*** Delete File: delete.txt",
        "*** Update File: old/name.txt",
        "*** Move to: moved/name.txt",
        "@@",
        " kept",
        "-line",
    )
    assert reply.keys == RESULT_FIELDS
    assert (reply["status"], reply["replayed"]) == ("applied", False)
    assert reply.text("operation_id").startswith("op-")
    assert sorted(map(str, reply.list("files"))) == [
        "delete.txt",
        "moved/name.txt",
        "new/added.txt",
        "old/name.txt",
        "update.txt",
    ]
    assert {change["path"]: change.body for change in reply.each("changes")} == {
        "new/added.txt": {
            "path": "new/added.txt",
            "kind": "add",
            "after_version": version("first\nsecond\n"),
            "added": 2,
            "removed": 0,
        },
        "update.txt": {
            "path": "update.txt",
            "kind": "update",
            "before_version": version("one\ntwo\nthree\n"),
            "after_version": version("one\n2\n2b\nthree\n"),
            "added": 2,
            "removed": 1,
        },
        "delete.txt": {
            "path": "delete.txt",
            "kind": "delete",
            "before_version": version("gone\n"),
            "added": 0,
            "removed": 1,
        },
        "moved/name.txt": {
            "path": "moved/name.txt",
            "kind": "move",
            "from": "old/name.txt",
            "before_version": version("kept\nline\n"),
            "after_version": version("kept\n"),
            "added": 0,
            "removed": 1,
        },
    }
    assert space.tree() == {
        "moved": None,
        "moved/name.txt": b"kept\n",
        "new": None,
        "new/added.txt": b"first\nsecond\n",
        "old": None,
        "update.txt": b"one\n2\n2b\nthree\n",
    }
    for change in reply.each("changes"):
        if "after_version" in change:
            read = await space.call("read", path=change["path"])
            assert read["version"] == change["after_version"]


@pytest.mark.requirement("patch.checked", "patch.result")
async def test_a_preview_tells_the_same_and_writes_nothing(space: Space) -> None:
    space.write("a.txt", "one\n")
    lines = (
        "*** Update File: a.txt",
        "@@",
        "-one",
        "+two",
        "*** Add File: new/b.txt",
        "+b",
    )
    preview = await space.patch(*lines, check_only=True)
    assert preview.keys == RESULT_FIELDS
    assert preview["status"] == "checked"
    assert space.tree() == {"a.txt": b"one\n"}
    applied = await space.patch(*lines)
    assert applied["status"] == "applied"
    assert (applied["files"], applied["changes"]) == (preview["files"], preview["changes"])
    assert applied["operation_id"] != preview["operation_id"]


@pytest.mark.requirement("patch.check-reserves-nothing")
async def test_a_preview_reserves_nothing(space: Space) -> None:
    lines = ("*** Add File: a.txt", "+a")
    await space.patch(*lines, check_only=True)
    await space.patch("*** Add File: a.txt", "+somebody else's")
    process_id = await space.start("true")
    await space.ended(process_id)
    await space.patch_refused(ErrorCode.ADD_FILE_EXISTS, *lines)


@pytest.mark.requirement("patch.checked")
async def test_a_preview_that_does_not_pass_is_refused_like_the_patch(space: Space) -> None:
    space.write("a.txt", "one\n")
    lines = ("*** Update File: a.txt", "@@", "-other", "+two")
    preview = await space.patch_refused(ErrorCode.INVALID_PATCH, *lines, check_only=True)
    applied = await space.patch_refused(ErrorCode.INVALID_PATCH, *lines)
    assert preview["details"] == applied["details"]


@pytest.mark.requirement("patch.v4a-only", "code.invalid-patch", "patch.rejected")
@pytest.mark.parametrize(
    "patch",
    [
        "",
        "hello",
        "--- a/a.txt\n+++ b/a.txt\n@@ -1 +1 @@\n-one\n+two\n",
        "diff --git a/a.txt b/a.txt\n--- a/a.txt\n+++ b/a.txt\n@@ -1 +1 @@\n-one\n+two\n",
        "*** Begin Patch\n*** End Patch",
        "*** Begin Patch\n*** Update File: a.txt\n@@\n-one\n+two\n",
        "*** Begin Patch\n*** Update File: a.txt\n*** End Patch",
        "*** Begin Patch\n*** Update File: a.txt\n@@\n-absent\n+two\n*** End Patch",
        "<<<<<<< SEARCH\none\n=======\ntwo\n>>>>>>> REPLACE\n",
    ],
)
async def test_what_is_not_v4a_is_refused_and_recorded(space: Space, patch: str) -> None:
    space.write("a.txt", "one\n")
    reply = await space.refused(ErrorCode.INVALID_PATCH, "apply_patch", patch=patch)
    record = await space.session.call("operation_status", operation_id=reply["operation_id"])
    assert record["status"] == "rejected"
    assert record["error", "code"] == "INVALID_PATCH"
    assert space.tree() == {"a.txt": b"one\n"}


@pytest.mark.requirement("code.invalid-patch-details")
async def test_a_context_that_does_not_match_is_told_with_section_chunk_and_line(
    space: Space,
) -> None:
    space.write("a.txt", "one\n")
    space.write("b.txt", "1\n2\n3\n4\n5\n")
    reply = await space.patch_refused(
        ErrorCode.INVALID_PATCH,
        *("*** Update File: a.txt", "@@", "-one", "+two"),
        *("*** Update File: b.txt", "@@", "-1", "+one", "@@", " 3", "-four", "+4"),
    )
    details = reply.at("details")
    assert (details["path"], details["section"], details["chunk"]) == ("b.txt", 2, 2)
    told = str(details.body)
    assert "'four'" in told
    assert "'4'" in told
    assert space.text("a.txt") == "one\n"


@pytest.mark.requirement("code.invalid-patch-details")
async def test_a_line_that_is_no_v4a_is_told_by_its_number(space: Space) -> None:
    reply = await space.patch_refused(
        ErrorCode.INVALID_PATCH, "*** Add File: a.txt", "+a", "no prefix"
    )
    assert reply["details", "section"] == 1
    assert 4 in reply.at("details").body.values()


@pytest.mark.requirement("patch.all-or-nothing", "code.add-file-exists", "patch.rejected")
async def test_one_section_that_fails_keeps_all_others_from_happening(space: Space) -> None:
    space.write("a.txt", "one\n")
    space.write("exists.txt", "old\n")
    before = space.tree()
    reply = await space.patch_refused(
        ErrorCode.ADD_FILE_EXISTS,
        *("*** Update File: a.txt", "@@", "-one", "+two"),
        *("*** Add File: new/dir/b.txt", "+b"),
        *("*** Add File: exists.txt", "+new"),
    )
    assert reply["details", "path"] == "exists.txt"
    record = await space.session.call("operation_status", operation_id=reply["operation_id"])
    assert record["status"] == "rejected"
    assert space.tree() == before


@pytest.mark.requirement("code.move-destination-exists")
async def test_a_move_never_overwrites(space: Space) -> None:
    space.write("a.txt", "one\n")
    space.write("b.txt", "two\n")
    before = space.tree()
    for destination in ("b.txt", "a.txt"):
        reply = await space.patch_refused(
            ErrorCode.MOVE_DESTINATION_EXISTS,
            *("*** Update File: a.txt", f"*** Move to: {destination}", "@@", " one"),
        )
        assert reply["details", "path"] == destination
        record = await space.session.call("operation_status", operation_id=reply["operation_id"])
        assert record["status"] == "rejected"
    assert space.tree() == before


@pytest.mark.requirement("patch.modes-are-kept")
@pytest.mark.parametrize("mode", [0o755, 0o600, 0o444, 0o666, 0o640])
async def test_an_update_and_a_move_keep_the_mode(space: Space, mode: int) -> None:
    for name in ("updated.sh", "moved.sh"):
        space.write(name, "one\n")
        (space.root / name).chmod(mode)
    await space.patch(
        *("*** Update File: updated.sh", "@@", "-one", "+two"),
        *("*** Update File: moved.sh", "*** Move to: there/moved.sh", "@@", " one"),
    )
    for name in ("updated.sh", "there/moved.sh"):
        assert stat.S_IMODE((space.root / name).stat().st_mode) == mode


@pytest.mark.requirement("patch.new-file-mode")
@pytest.mark.parametrize("mask", ["022", "077", "002"])
async def test_a_new_file_has_0644_without_the_umasks_bits(
    tmp_path: Path, config: Path, root: Path, mask: str
) -> None:
    masked = ("sh", "-c", f'umask {mask}; exec "$@"', "sh")
    with serving(tmp_path / "stderr.txt", "--config", str(config), wrapper=masked) as server:
        async with over_http(server.url) as session:
            await Space(session, "default", root).patch("*** Add File: d/new.txt", "+x")
    mode = stat.S_IMODE((root / "d" / "new.txt").stat().st_mode)
    assert mode == 0o644 & ~int(mask, 8)


@pytest.mark.requirement("patch.atomic-rename")
async def test_a_reader_that_has_the_old_file_open_keeps_the_whole_old_file(space: Space) -> None:
    space.write("d/a.txt", "one\n")
    inode = (space.root / "d/a.txt").stat().st_ino
    with (space.root / "d/a.txt").open("rb") as reader:
        await space.patch("*** Update File: d/a.txt", "@@", "-one", "+two")
        assert reader.read() == b"one\n"
    assert (space.root / "d/a.txt").stat().st_ino != inode
    assert sorted(space.tree()) == ["d", "d/a.txt"]


@pytest.mark.requirement("patch.atomic-rename")
async def test_a_hard_link_elsewhere_keeps_the_old_content(space: Space) -> None:
    space.write("a.txt", "one\n")
    os.link(space.root / "a.txt", space.root / "other.txt")
    await space.patch("*** Update File: a.txt", "@@", "-one", "+two")
    assert (space.text("a.txt"), space.text("other.txt")) == ("two\n", "one\n")


@pytest.mark.requirement("patch.failed-rolled-back", "patch.all-or-nothing")
async def test_a_write_that_fails_restores_every_file(
    tmp_path: Path, config: Path, root: Path
) -> None:
    limited = ("prlimit", f"--fsize={3 * 1024 * 1024}")
    with serving(tmp_path / "stderr.txt", "--config", str(config), wrapper=limited) as server:
        async with over_http(server.url) as session:
            space = Space(session, "default", root)
            space.write("a.txt", "one\n")
            before = space.tree()
            reply = await space.patch_refused(
                ErrorCode.FILE_OPERATION_FAILED,
                *("*** Update File: a.txt", "@@", "-one", "+two"),
                *("*** Add File: new/small.txt", "+x"),
                *("*** Add File: new/zzz-large.txt", "+" + "x" * (4 * 1024 * 1024)),
                operation_key="too-large",
            )
            assert reply["details", "errno"] == "EFBIG"
            assert reply["details", "status"] == "failed_rolled_back"
            assert space.tree() == before
            record = await session.call("operation_status", operation_key="too-large")
            assert record["status"] == "failed_rolled_back"
            assert record["operation_id"] == reply["operation_id"]
            assert record["error", "code"] == "FILE_OPERATION_FAILED"


async def test_a_patch_that_changes_nothing_is_applied(space: Space) -> None:
    space.write("a.txt", "one\n")
    reply = await space.patch("*** Update File: a.txt", "@@", " one")
    assert reply["status"] == "applied"
    assert space.text("a.txt") == "one\n"


async def test_a_file_that_is_not_utf_8_cannot_be_updated_but_deleted(space: Space) -> None:
    space.write("blob", b"\xff\n")
    await space.patch_refused(ErrorCode.INVALID_PATCH, "*** Update File: blob", "@@", "+x")
    await space.patch("*** Delete File: blob")
    assert space.tree() == {}
