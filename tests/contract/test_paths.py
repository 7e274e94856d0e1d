"""What a path may be, for every tool that takes one."""

import os
import socket
from pathlib import Path

import pytest

from codespace.domain.errors import ErrorCode
from contract.houses import over_stdio
from contract.servers import write_config
from contract.session import Session, Space

pytestmark = pytest.mark.anyio

ESCAPES = ("/etc/passwd", "..", "../x", "a/../b", "a/..", "./../x", "a\0b", "/", "//etc")


def add(path: str) -> tuple[str, ...]:
    return (f"*** Add File: {path}", "+x")


@pytest.mark.requirement("code.path-escape", "paths.relative")
@pytest.mark.parametrize("path", ESCAPES)
async def test_a_path_that_leaves_the_root_is_an_escape(space: Space, path: str) -> None:
    space.write("a/b", "")
    reply = await space.refused(ErrorCode.PATH_ESCAPE, "read", path=path)
    assert reply["details", "path"] == path
    assert "operation_id" not in reply


@pytest.mark.requirement("code.path-escape", "patch.rejected")
@pytest.mark.parametrize("path", ["/etc/codespace-x", "../x", "a/../b", "a\0b"])
async def test_a_patch_that_leaves_the_root_is_an_escape_and_recorded(
    space: Space, path: str
) -> None:
    sections = (
        add(path),
        ("*** Update File: in.txt", f"*** Move to: {path}", "@@", " x"),
        (f"*** Delete File: {path}",),
    )
    for section in sections:
        space.write("in.txt", "x\n")
        reply = await space.patch_refused(ErrorCode.PATH_ESCAPE, *section)
        record = await space.session.call("operation_status", operation_id=reply["operation_id"])
        assert record["status"] == "rejected"
    assert space.tree() == {"in.txt": b"x\n"}


@pytest.mark.requirement("code.symlink-rejected", "paths.never-follow-a-symlink")
async def test_a_symlink_is_refused_as_file_and_as_ancestor_wherever_it_points(
    space: Space,
) -> None:
    space.write("real/inside.txt", "inside")
    (space.root / "file").symlink_to("real/inside.txt")
    (space.root / "folder").symlink_to("real")
    (space.root / "outside").symlink_to("/etc")
    (space.root / "dangling").symlink_to("nowhere")
    before = space.tree()
    for path in ("file", "folder/inside.txt", "outside/passwd", "dangling"):
        await space.refused(ErrorCode.SYMLINK_REJECTED, "read", path=path)
        for lines in (
            (f"*** Update File: {path}", "@@", "-inside", "+changed"),
            (f"*** Delete File: {path}",),
        ):
            reply = await space.patch_refused(ErrorCode.SYMLINK_REJECTED, *lines)
            assert reply["operation_id"]
    for path in ("folder/new.txt", "outside/new.txt", "dangling"):
        await space.patch_refused(ErrorCode.SYMLINK_REJECTED, *add(path))
    assert space.tree() == before
    assert space.text("real/inside.txt") == "inside"


@pytest.mark.requirement("code.special-file-rejected")
async def test_a_fifo_a_socket_and_a_device_are_refused_at_once(space: Space) -> None:
    os.mkfifo(space.root / "fifo")
    here = Path.cwd()
    listener = socket.socket(socket.AF_UNIX)
    try:
        os.chdir(space.root)  # a socket's address is short
        listener.bind("socket")
    finally:
        os.chdir(here)
        listener.close()
    kinds = ["fifo", "socket"]
    try:
        os.mknod(space.root / "device", 0o600 | 0o020000, os.makedev(1, 3))
        kinds.append("device")
    except PermissionError:
        pass  # only root can make one
    for path in kinds:
        await space.refused(ErrorCode.SPECIAL_FILE_REJECTED, "read", path=path)
        await space.patch_refused(
            ErrorCode.SPECIAL_FILE_REJECTED, f"*** Update File: {path}", "@@", "-a", "+b"
        )
        await space.patch_refused(ErrorCode.SPECIAL_FILE_REJECTED, f"*** Delete File: {path}")
    assert (await space.call("find"))["paths"] == []


@pytest.mark.requirement("code.file-not-found", "code.path-not-directory", "code.is-a-directory")
async def test_a_missing_file_a_file_as_folder_and_a_folder_as_file_are_named(
    space: Space,
) -> None:
    space.write("d/file.txt", "x\n")
    for code, path in (
        (ErrorCode.FILE_NOT_FOUND, "missing.txt"),
        (ErrorCode.FILE_NOT_FOUND, "no/such/dir.txt"),
        (ErrorCode.PATH_NOT_DIRECTORY, "d/file.txt/below"),
        (ErrorCode.IS_A_DIRECTORY, "d"),
        (ErrorCode.IS_A_DIRECTORY, "d/"),
    ):
        reply = await space.refused(code, "read", path=path)
        assert reply["details", "path"] == path.rstrip("/")
        assert "operation_id" not in reply
        for lines in (
            (f"*** Update File: {path}", "@@", "-x", "+y"),
            (f"*** Delete File: {path}",),
        ):
            refused = await space.patch_refused(code, *lines)
            assert refused["operation_id"]
    assert space.tree() == {"d": None, "d/file.txt": b"x\n"}


@pytest.mark.requirement("code.path-not-directory", "code.add-file-exists")
async def test_a_file_cannot_be_added_below_a_file_or_onto_a_folder(space: Space) -> None:
    space.write("d/file.txt", "x\n")
    await space.patch_refused(ErrorCode.PATH_NOT_DIRECTORY, *add("d/file.txt/new"))
    await space.patch_refused(ErrorCode.ADD_FILE_EXISTS, *add("d"))
    assert space.tree() == {"d": None, "d/file.txt": b"x\n"}


@pytest.mark.requirement("code.file-operation-failed")
async def test_a_name_that_no_filesystem_can_hold_is_named_by_its_errno(space: Space) -> None:
    for path in ("n" * 256, "d/" + "ä" * 128, "/".join(["d" * 200] * 21)[:4_096]):
        reply = await space.refused(ErrorCode.FILE_OPERATION_FAILED, "read", path=path)
        assert reply["details", "errno"] == "ENAMETOOLONG"
    longest = "n" * 255
    await space.patch(*add(longest))
    assert (await space.call("read", path=longest))["content"] == "x\n"


@pytest.mark.requirement("errors.message-holds-no-secret")
async def test_no_error_names_the_root(space: Space) -> None:
    space.write("d/file", "x")
    (space.root / "link").symlink_to("/etc/passwd")
    for path in ("missing", "d", "d/file/x", "link", "n" * 256):
        answer = await space.session.ask("read", {"workspace_id": space.id, "path": path})
        told = str(answer.structured_content)
        assert str(space.root) not in told
        assert "/etc" not in told


@pytest.mark.requirement("paths.the-root-may-be-a-symlink")
async def test_a_root_that_is_a_symlink_is_served(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "root").symlink_to("real")
    config = write_config(
        tmp_path / "codespace.json",
        {"linked": {"root": str(tmp_path / "root"), "profile": "workspace-write"}},
    )
    async with over_stdio(config) as session:
        space = Space(session, "linked", tmp_path / "root")
        await space.patch(*add("new.txt"))
        assert (await space.call("read", path="new.txt"))["content"] == "x\n"
        assert (await space.call("find"))["paths"] == ["new.txt"]
        assert (await space.call("bash", command="ls"))["output"] == "new.txt\n"
    assert (tmp_path / "real" / "new.txt").read_text(encoding="utf-8") == "x\n"


async def test_the_root_itself_is_a_directory_and_no_file(space: Space) -> None:
    await space.refused(ErrorCode.IS_A_DIRECTORY, "read", path=".")


async def test_a_root_that_was_replaced_is_not_followed(space: Space, session: Session) -> None:
    space.write("a.txt", "old")
    moved = space.root.with_name(f"{space.root.name}-moved")
    space.root.rename(moved)
    space.root.mkdir()
    (space.root / "a.txt").write_text("new", encoding="utf-8")
    answer = await session.ask("read", {"workspace_id": space.id, "path": "a.txt"})
    assert answer.is_error
