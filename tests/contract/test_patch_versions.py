"""`expected_versions`: a patch that would overwrite what its author did not see is refused."""

import pytest

from codespace.domain.errors import ErrorCode
from contract.session import Space

pytestmark = pytest.mark.anyio

UPDATE = ("*** Update File: a.txt", "@@", "-one", "+two")
MOVE = ("*** Update File: a.txt", "*** Move to: b.txt", "@@", " one")


async def version(space: Space, path: str) -> str:
    return (await space.call("read", path=path)).text("version")


@pytest.mark.requirement("patch.expected-versions")
async def test_the_version_that_read_gave_lets_the_patch_through(cell_space: Space) -> None:
    cell_space.write("a.txt", "one\n")
    expected = {"a.txt": await version(cell_space, "a.txt")}
    reply = await cell_space.patch(*UPDATE, expected_versions=expected)
    assert reply["status"] == "applied"


@pytest.mark.requirement("patch.expected-versions", "code.version-conflict", "patch.rejected")
async def test_a_file_that_changed_since_it_was_read_is_a_conflict(space: Space) -> None:
    space.write("a.txt", "one\n")
    seen = await version(space, "a.txt")
    space.write("a.txt", "one\nmore\n")
    reply = await space.patch_refused(
        ErrorCode.VERSION_CONFLICT, *UPDATE, expected_versions={"a.txt": seen}
    )
    actual = await version(space, "a.txt")
    assert reply["details"] == {"path": "a.txt", "expected": seen, "actual": actual}
    record = await space.session.call("operation_status", operation_id=reply["operation_id"])
    assert (record["status"], record["error", "code"]) == ("rejected", "VERSION_CONFLICT")
    assert space.text("a.txt") == "one\nmore\n"


@pytest.mark.requirement("patch.expected-absent")
async def test_absent_is_the_version_of_no_file(space: Space) -> None:
    add = ("*** Add File: new.txt", "+x")
    space.write("new.txt", "somebody's\n")
    reply = await space.patch_refused(
        ErrorCode.VERSION_CONFLICT, *add, expected_versions={"new.txt": "absent"}
    )
    assert (reply["details", "path"], reply["details", "expected"]) == ("new.txt", "absent")
    (space.root / "new.txt").unlink()
    assert await space.patch(*add, expected_versions={"new.txt": "absent"})


@pytest.mark.requirement("patch.expected-absent", "code.version-conflict")
async def test_a_file_that_is_gone_is_a_conflict_with_its_version(space: Space) -> None:
    space.write("a.txt", "one\n")
    seen = await version(space, "a.txt")
    (space.root / "a.txt").unlink()
    reply = await space.patch_refused(
        ErrorCode.VERSION_CONFLICT, *UPDATE, expected_versions={"a.txt": seen}
    )
    assert reply["details", "actual"] == "absent"


@pytest.mark.requirement("patch.move-by-both-paths")
async def test_a_move_is_protected_at_its_source_and_at_its_destination(space: Space) -> None:
    space.write("a.txt", "one\n")
    both = {"a.txt": await version(space, "a.txt"), "b.txt": "absent"}
    space.write("b.txt", "in the way\n")
    reply = await space.patch_refused(ErrorCode.VERSION_CONFLICT, *MOVE, expected_versions=both)
    assert reply["details", "path"] == "b.txt"
    (space.root / "b.txt").unlink()
    space.write("a.txt", "one\nmore\n")
    reply = await space.patch_refused(ErrorCode.VERSION_CONFLICT, *MOVE, expected_versions=both)
    assert reply["details", "path"] == "a.txt"
    space.write("a.txt", "one\n")
    await space.patch(*MOVE, expected_versions=both)
    assert space.tree() == {"b.txt": b"one\n"}


@pytest.mark.requirement("patch.order-versions-before-preflight")
async def test_a_conflict_is_told_before_a_context_that_does_not_match(space: Space) -> None:
    space.write("a.txt", "changed\n")
    await space.patch_refused(
        ErrorCode.VERSION_CONFLICT, *UPDATE, expected_versions={"a.txt": "0" * 64}
    )
    await space.patch_refused(ErrorCode.INVALID_PATCH, *UPDATE)


async def test_a_file_beside_the_patch_is_compared_too(space: Space) -> None:
    space.write("a.txt", "one\n")
    space.write("beside.txt", "x")
    await space.patch_refused(
        ErrorCode.VERSION_CONFLICT, *UPDATE, expected_versions={"beside.txt": "0" * 64}
    )
    seen = await version(space, "beside.txt")
    await space.patch(*UPDATE, expected_versions={"beside.txt": seen})


async def test_a_version_that_is_none_is_an_invalid_argument(space: Space) -> None:
    for wrong in ("", "0" * 63, "A" * 64, "Absent", "sha256:" + "0" * 64):
        reply = await space.patch_refused(
            ErrorCode.INVALID_ARGUMENT, *UPDATE, expected_versions={"a.txt": wrong}
        )
        assert reply["details", "path"] == "expected_versions.a.txt"


async def test_an_expected_path_is_cleaned_like_any_other(space: Space) -> None:
    space.write("d/a.txt", "one\n")
    lines = ("*** Update File: d/a.txt", "@@", "-one", "+two")
    await space.patch_refused(
        ErrorCode.VERSION_CONFLICT, *lines, expected_versions={"./d//a.txt": "0" * 64}
    )
    await space.patch_refused(
        ErrorCode.PATH_ESCAPE, *lines, expected_versions={"../a.txt": "0" * 64}
    )


async def test_a_preview_compares_versions_too(space: Space) -> None:
    space.write("a.txt", "one\n")
    await space.patch_refused(
        ErrorCode.VERSION_CONFLICT,
        *UPDATE,
        expected_versions={"a.txt": "0" * 64},
        check_only=True,
    )
