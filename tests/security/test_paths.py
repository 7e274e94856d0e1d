"""What somebody will try with a path: every way out of a root, and every file that is no file."""

import os
import socket
import stat
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from codespace.domain.errors import CodeSpaceError, ErrorCode
from codespace.domain.limits import Limits
from codespace.domain.paths import clean
from codespace.domain.workspace import Root
from codespace.workspace.confinement import confined
from codespace.workspace.directory import Look, RootDirectory, open_root, register
from codespace.workspace.files import read
from codespace.workspace.search import find, grep

LIMITS = Limits()
SECRET = "the secret outside"


@pytest.fixture
def outside(tmp_path: Path) -> Path:
    outside = tmp_path / "outside"
    (outside / "folder").mkdir(parents=True)
    (outside / "secret").write_text(SECRET)
    (outside / "folder" / "secret").write_text(SECRET)
    return outside


@pytest.fixture
def top(tmp_path: Path, outside: Path) -> Path:
    top = tmp_path / "root"
    (top / "folder").mkdir(parents=True)
    (top / "folder" / "file").write_text("inside")
    (top / "to-file").symlink_to("folder/file")
    (top / "to-folder").symlink_to("folder")
    (top / "to-secret").symlink_to(outside / "secret")
    (top / "to-outside").symlink_to(outside)
    (top / "up").symlink_to("..")
    (top / "self").symlink_to(".")
    (top / "loop").symlink_to("loop")
    (top / "dangling").symlink_to("nowhere")
    (top / "folder" / "deep-link").symlink_to("../folder")
    (top / "to-proc").symlink_to("/proc/self/root")
    return top


@pytest.fixture
def root(top: Path) -> Root:
    return register(str(top))


@pytest.fixture
def directory(root: Root) -> Iterator[RootDirectory]:
    with open_root(root) as directory:
        yield directory


def code_of(call: Callable[[], object], top: Path) -> ErrorCode:
    """Return the refusal's code; no refusal may tell where the root is or what is outside."""
    with pytest.raises(CodeSpaceError) as caught:
        call()
    told = str(caught.value.body())
    assert str(top.parent) not in told
    assert SECRET not in told
    return caught.value.code


@pytest.mark.parametrize(
    "path",
    [
        "/etc/passwd", "//etc/passwd", "/", "..", "../outside/secret", "folder/..", "./..",
        "folder/../../outside/secret", "a/../b", "folder/file\0", "\0", "x\0/../../etc/passwd",
        "../root/folder", "/proc/self/cwd", "folder//..//..",
    ],
)  # fmt: skip
def test_a_path_that_leaves_the_root_is_an_escape(root: Root, top: Path, path: str) -> None:
    assert code_of(lambda: read(root, path, max_bytes=100, limits=LIMITS), top) is (
        ErrorCode.PATH_ESCAPE
    )


@pytest.mark.parametrize(
    "path",
    [
        "to-file", "to-folder", "to-folder/file", "to-secret", "to-outside", "to-outside/secret",
        "to-outside/folder/secret", "up", "up/outside/secret", "self/folder/file", "loop", "loop/x",
        "dangling", "dangling/x", "folder/deep-link/file", "to-proc/etc/passwd", "self/self/self",
    ],
)  # fmt: skip
def test_a_link_is_rejected_wherever_it_stands(
    root: Root, directory: RootDirectory, top: Path, path: str
) -> None:
    rejected = ErrorCode.SYMLINK_REJECTED
    assert code_of(lambda: read(root, path, max_bytes=100, limits=LIMITS), top) is rejected
    assert code_of(lambda: directory.look(path), top) is rejected
    assert code_of(lambda: directory.read_file(path, max_bytes=100), top) is rejected


@pytest.mark.parametrize("create", [False, True])
@pytest.mark.parametrize("path", ["to-outside/new", "dangling/new/x", "up/new", "self/new"])
def test_no_parent_is_opened_or_made_through_a_link(
    directory: RootDirectory, top: Path, outside: Path, path: str, *, create: bool
) -> None:
    def enter() -> None:
        with directory.parent(path, create=create):
            pass

    before = sorted(outside.iterdir()), sorted(top.iterdir())
    assert code_of(enter, top) is ErrorCode.SYMLINK_REJECTED
    assert (sorted(outside.iterdir()), sorted(top.iterdir())) == before
    assert directory.created == []


def test_search_shows_nothing_behind_links(root: Root) -> None:
    assert find(root, include_ignored=True, limit=100, limits=LIMITS).paths == ("folder/file",)
    assert grep(root, pattern="secret|inside", limit=100, limits=LIMITS).matches[0].path == (
        "folder/file"
    )
    assert len(grep(root, pattern=".", limit=100, limits=LIMITS).matches) == 1


def test_ignore_rules_are_not_taken_from_outside(
    root: Root, directory: RootDirectory, top: Path, outside: Path
) -> None:
    # Else what is hidden would tell, name by name, what a secret file holds.
    (outside / "secret").write_text("file\n")
    (top / "folder" / ".gitignore").symlink_to(outside / "secret")
    if not landlock(directory):
        pytest.skip("this kernel has no Landlock: rg follows a link that is called .gitignore")
    assert find(root, limit=100, limits=LIMITS).paths == ("folder/file",)


def landlock(directory: RootDirectory) -> bool:
    def closed() -> bool:
        try:
            os.close(os.open("/", os.O_RDONLY))
        except PermissionError:
            return True
        return False

    return confined(closed, program="/bin/true", directory=directory.fd)


@pytest.fixture
def special(top: Path, request: pytest.FixtureRequest) -> Iterator[str]:
    kind = str(request.param)
    path = top / "special"
    with socket.socket(socket.AF_UNIX) as listener:
        if kind == "fifo":
            os.mkfifo(path)
        elif kind == "socket":
            listener.bind(str(path))
        else:
            if os.geteuid() != 0:
                pytest.skip("only root can make a device")
            mode = stat.S_IFCHR if kind == "character" else stat.S_IFBLK
            os.mknod(path, mode | 0o666, os.makedev(1, 3) if kind == "character" else 0)
        yield "special"


@pytest.mark.parametrize("special", ["fifo", "socket", "character", "block"], indirect=True)
def test_a_special_file_is_rejected_without_being_opened(
    root: Root, directory: RootDirectory, top: Path, special: str
) -> None:
    rejected = ErrorCode.SPECIAL_FILE_REJECTED
    for path in (special, f"{special}/below"):
        assert code_of(lambda path=path: directory.look(path), top) is rejected
        assert code_of(lambda path=path: directory.read_file(path, max_bytes=9), top) is rejected
        assert (
            code_of(lambda path=path: read(root, path, max_bytes=9, limits=LIMITS), top) is rejected
        )
    assert find(root, limit=100, limits=LIMITS).paths == ("folder/file",)
    assert len(grep(root, pattern=".", limit=100, limits=LIMITS).matches) == 1


def test_reading_a_fifo_with_a_writer_takes_nothing_from_it(root: Root, top: Path) -> None:
    os.mkfifo(top / "fifo")
    descriptor = os.open(top / "fifo", os.O_RDWR | os.O_NONBLOCK)
    try:
        os.write(descriptor, b"for somebody else")
        assert code_of(lambda: read(root, "fifo", max_bytes=9, limits=LIMITS), top) is (
            ErrorCode.SPECIAL_FILE_REJECTED
        )
        assert os.read(descriptor, 100) == b"for somebody else"
    finally:
        os.close(descriptor)


def test_a_root_that_was_replaced_by_a_link_is_refused(
    root: Root, top: Path, outside: Path
) -> None:
    top.rename(top.with_name("moved"))
    top.symlink_to(outside)
    _refuse_everything(root, top)
    top.unlink()
    top.symlink_to("moved")  # even to the very directory: the path must be one
    _refuse_everything(root, top)


def test_a_root_that_was_deleted_or_replaced_is_refused(root: Root, top: Path) -> None:
    top.rename(top.with_name("moved"))
    _refuse_everything(root, top)
    top.mkdir()
    (top / "secret").write_text(SECRET)
    _refuse_everything(root, top)
    (top / "secret").unlink()
    top.rmdir()
    top.write_text("a file")
    _refuse_everything(root, top)
    top.unlink()
    top.with_name("moved").rename(top)
    assert read(root, "folder/file", max_bytes=100, limits=LIMITS).content == "inside"


def _refuse_everything(root: Root, top: Path) -> None:
    for call in (
        lambda: read(root, "secret", max_bytes=100, limits=LIMITS),
        lambda: find(root, limit=10, limits=LIMITS),
        lambda: grep(root, pattern=".", limit=10, limits=LIMITS),
    ):
        assert code_of(call, top) is ErrorCode.FILE_OPERATION_FAILED


def test_the_root_itself_may_be_a_link_that_the_operator_registered(
    tmp_path: Path, top: Path
) -> None:
    (tmp_path / "link").symlink_to(top)
    root = register(str(tmp_path / "link"))
    assert read(root, "folder/file", max_bytes=100, limits=LIMITS).content == "inside"
    assert find(root, limit=10, limits=LIMITS).paths == ("folder/file",)


@pytest.mark.parametrize(
    "name",
    [
        "n" * 255, "é" * 127, "line\nbreak", "dots...", "...", ".. ", "back\\slash", "..\\x", "c:",
        "~", "~root", "%2e%2e", "*", "-rf", "tab\t", " ", "\u202e", "\u2024\u2024", "a:b", "$HOME",
    ],
)  # fmt: skip
def test_an_odd_name_is_just_a_name(root: Root, top: Path, name: str) -> None:
    (top / name).write_text("odd")
    assert read(root, name, max_bytes=100, limits=LIMITS).content == "odd"
    assert read(root, f"./{name}", max_bytes=100, limits=LIMITS).path == name
    assert name in find(root, limit=10, limits=LIMITS).paths


@pytest.mark.parametrize("path", ["n" * 256, "é" * 128, "a/" * 3_000 + "b"])
def test_what_no_filesystem_could_hold_is_named_so(root: Root, top: Path, path: str) -> None:
    with pytest.raises(CodeSpaceError) as caught:
        read(root, path, max_bytes=100, limits=LIMITS)
    assert caught.value.code is ErrorCode.FILE_OPERATION_FAILED
    assert caught.value.details["errno"] == "ENAMETOOLONG"


def test_a_name_that_is_not_utf8_cannot_be_named_by_a_client(root: Root, top: Path) -> None:
    os.close(os.open(os.fsencode(top) + b"/raw\xff", os.O_CREAT, 0o644))
    (top / "raw\ufffd").write_text("another file")
    assert code_of(lambda: read(root, "raw\udcff", max_bytes=9, limits=LIMITS), top) is (
        ErrorCode.INVALID_ARGUMENT
    )
    assert read(root, "raw\ufffd", max_bytes=99, limits=LIMITS).content == "another file"


@pytest.fixture
def deep(top: Path) -> Iterator[RootDirectory]:
    """The open root; what was built in it is removed by a program that no depth can stop."""
    with open_root(register(str(top))) as directory:
        yield directory
    subprocess.run(["rm", "-rf", "d", "d" * 200], cwd=top, check=True)


def test_the_deepest_path_that_can_be_named_is_read(root: Root, deep: RootDirectory) -> None:
    path = "/".join(["d"] * 2_046 + ["f"])
    with deep.parent(path, create=True) as (parent, name):
        os.close(os.open(name, os.O_CREAT | os.O_WRONLY, 0o644, dir_fd=parent))
    assert clean(path) == path
    assert deep.look(path).kind == "file"
    assert read(root, path, max_bytes=1, limits=LIMITS).size == 0
    assert path in find(root, limit=10, limits=LIMITS).paths


def test_what_lies_deeper_than_any_path_reaches_breaks_no_search(
    root: Root, deep: RootDirectory
) -> None:
    descriptor = os.dup(deep.fd)
    for _ in range(30):
        os.mkdir("d" * 200, dir_fd=descriptor)
        below = os.open("d" * 200, os.O_RDONLY, dir_fd=descriptor)
        os.close(descriptor)
        descriptor = below
    os.close(os.open("far", os.O_CREAT, 0o644, dir_fd=descriptor))
    os.close(descriptor)
    assert find(root, limit=10, limits=LIMITS).paths == ("folder/file",)
    assert len(grep(root, pattern=".", limit=10, limits=LIMITS).matches) == 1


def test_what_may_not_be_read_is_refused_and_breaks_no_search(root: Root, top: Path) -> None:
    (top / "closed").mkdir()
    (top / "closed" / "file").write_text("inside")
    (top / "shut").write_text("inside")
    (top / "shut").chmod(0)
    if os.access(top / "shut", os.R_OK):
        pytest.skip("nothing is closed to root")
    (top / "closed").chmod(0o311)
    assert read(root, "closed/file", max_bytes=9, limits=LIMITS).content == "inside"
    (top / "closed").chmod(0)
    try:
        for path in ("closed/file", "shut"):
            with pytest.raises(CodeSpaceError) as caught:
                read(root, path, max_bytes=9, limits=LIMITS)
            assert caught.value.details["errno"] == "EACCES"
        found = grep(root, pattern="inside", limit=9, limits=LIMITS)
        assert [match.path for match in found.matches] == ["folder/file"]
    finally:
        (top / "closed").chmod(0o700)


def test_a_hard_link_is_an_ordinary_file(directory: RootDirectory, top: Path) -> None:
    # Who can make one could read the file before: nothing is won by refusing it.
    os.link(top / "folder" / "file", top / "hard")
    assert directory.look("hard") == Look("file", 0o644, 6)
