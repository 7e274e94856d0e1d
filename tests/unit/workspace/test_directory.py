import errno
import os
import stat
from collections.abc import Iterator
from pathlib import Path

import pytest

from codespace.domain.errors import CodeSpaceError, ErrorCode
from codespace.domain.workspace import Root
from codespace.workspace.directory import Look, RootDirectory, failure, open_root, register


@pytest.fixture
def top(tmp_path: Path) -> Path:
    top = tmp_path / "root"
    (top / "a" / "b").mkdir(parents=True)
    (top / "a" / "b" / "file").write_bytes(b"content")
    (top / "a" / "b" / "file").chmod(0o640)
    return top


@pytest.fixture
def directory(top: Path) -> Iterator[RootDirectory]:
    with open_root(register(str(top))) as directory:
        yield directory


def refused(code: ErrorCode, path: str, error: CodeSpaceError) -> bool:
    return error.code is code and error.details["path"] == path and repr(path) in error.message


def test_a_root_is_registered_by_its_real_path_and_identity(top: Path, tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(top)
    status = top.stat()
    expected = Root(str(top), status.st_dev, status.st_ino)
    assert register(str(top)) == expected
    assert register(str(tmp_path / "link")) == expected


@pytest.mark.parametrize("name", ["missing", "file", "nul\0"])
def test_what_is_no_directory_is_not_registered_and_the_operator_sees_the_path(
    tmp_path: Path, name: str
) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(ValueError, match="is no directory that can be served"):
        register(f"{tmp_path}/{name}")


def test_a_file_is_read_whole(directory: RootDirectory) -> None:
    assert directory.read_file("a/b/file", max_bytes=7) == b"content"


def test_a_file_above_the_limit_is_refused_with_the_limit(directory: RootDirectory) -> None:
    with pytest.raises(CodeSpaceError) as caught:
        directory.read_file("a/b/file", max_bytes=6)
    assert refused(ErrorCode.LIMIT_EXCEEDED, "a/b/file", caught.value)
    assert caught.value.details["limit"] == 6


def test_a_file_of_several_chunks_is_read_whole(directory: RootDirectory, top: Path) -> None:
    content = os.urandom(2_500_000)
    (top / "large").write_bytes(content)
    assert directory.read_file("large", max_bytes=3_000_000) == content


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ("a/b/file", Look("file", 0o640, 7)),
        ("a/b/none", Look("absent")),
        ("none/none/none", Look("absent")),
        ("a/b/file/below/more", Look("absent", blocked_by="a/b/file")),
    ],
)
def test_a_look_tells_what_stands_there(
    directory: RootDirectory, path: str, expected: Look
) -> None:
    assert directory.look(path) == expected


@pytest.mark.parametrize("path", [".", "a", "a/b"])
def test_a_look_at_a_directory_tells_its_mode(
    directory: RootDirectory, top: Path, path: str
) -> None:
    assert directory.look(path) == Look("directory", stat.S_IMODE((top / path).stat().st_mode))


def test_the_parent_is_the_directory_that_holds_the_path(
    directory: RootDirectory, top: Path
) -> None:
    with directory.parent("a/b/none") as (descriptor, name):
        assert name == "none"
        assert os.fstat(descriptor).st_ino == (top / "a" / "b").stat().st_ino
        os.fsync(descriptor)


def test_the_parent_of_a_top_level_path_is_the_root_and_stays_open(
    directory: RootDirectory,
) -> None:
    with directory.parent("none") as (descriptor, name):
        assert (descriptor, name) == (directory.fd, "none")
    os.fstat(directory.fd)


def test_missing_directories_are_made_and_listed_outermost_first(
    directory: RootDirectory, top: Path
) -> None:
    with directory.parent("a/x/y/file", create=True) as (descriptor, _):
        assert os.fstat(descriptor).st_ino == (top / "a/x/y").stat().st_ino
    with directory.parent("a/x/z/file", create=True):
        pass
    assert directory.created == ["a/x", "a/x/y", "a/x/z"]


def test_made_directories_have_the_default_mode(directory: RootDirectory, top: Path) -> None:
    with directory.parent("new/file", create=True):
        pass
    (top / "plain").mkdir()
    assert (top / "new").stat().st_mode == (top / "plain").stat().st_mode


@pytest.mark.parametrize(
    ("path", "code"),
    [
        ("none/file", ErrorCode.FILE_NOT_FOUND),
        ("a/b/file/x", ErrorCode.PATH_NOT_DIRECTORY),
        (".", ErrorCode.IS_A_DIRECTORY),
    ],
)
def test_a_parent_that_cannot_be_is_refused(
    directory: RootDirectory, path: str, code: ErrorCode
) -> None:
    with pytest.raises(CodeSpaceError) as caught, directory.parent(path):
        pass
    assert refused(code, path, caught.value)


@pytest.mark.parametrize(
    ("path", "code"),
    [
        ("a/b", ErrorCode.IS_A_DIRECTORY),
        (".", ErrorCode.IS_A_DIRECTORY),
        ("a/none", ErrorCode.FILE_NOT_FOUND),
        ("none/file", ErrorCode.FILE_NOT_FOUND),
        ("a/b/file/x", ErrorCode.PATH_NOT_DIRECTORY),
    ],
)
def test_what_is_no_file_is_not_read(directory: RootDirectory, path: str, code: ErrorCode) -> None:
    with pytest.raises(CodeSpaceError) as caught:
        directory.read_file(path, max_bytes=100)
    assert refused(code, path, caught.value)


@pytest.mark.parametrize("path", ["\ud800", "a/\udcff", "\udcff/b"])
def test_a_path_that_is_not_unicode_is_an_invalid_argument(
    directory: RootDirectory, path: str
) -> None:
    with pytest.raises(CodeSpaceError) as caught:
        directory.look(path)
    assert caught.value.code is ErrorCode.INVALID_ARGUMENT


@pytest.mark.parametrize(
    ("number", "code", "symbol"),
    [
        (errno.ENOENT, ErrorCode.FILE_NOT_FOUND, None),
        (errno.ENOTDIR, ErrorCode.PATH_NOT_DIRECTORY, None),
        (errno.ELOOP, ErrorCode.SYMLINK_REJECTED, None),
        (errno.EISDIR, ErrorCode.IS_A_DIRECTORY, None),
        (errno.ENOSPC, ErrorCode.FILE_OPERATION_FAILED, "ENOSPC"),
        (errno.EACCES, ErrorCode.FILE_OPERATION_FAILED, "EACCES"),
        (errno.ENAMETOOLONG, ErrorCode.FILE_OPERATION_FAILED, "ENAMETOOLONG"),
        (None, ErrorCode.FILE_OPERATION_FAILED, "EIO"),
    ],
)
def test_a_failed_system_call_has_the_code_of_the_contract(
    number: int | None, code: ErrorCode, symbol: str | None
) -> None:
    error = OSError() if number is None else OSError(number, "/secret/path", "/secret/path")
    told = failure("a/b", error)
    assert told.code is code
    assert told.details.get("errno") == symbol
    assert told.details["path"] == "a/b"
    assert "secret" not in str(told.body())


def test_every_descriptor_is_given_back(top: Path) -> None:
    (top / "link").symlink_to("a")
    os.mkfifo(top / "fifo")
    root = register(str(top))
    before = sum(1 for _ in Path("/proc/self/fd").iterdir())
    for _ in range(20):
        with open_root(root) as directory:
            directory.read_file("a/b/file", max_bytes=100)
            directory.look("a/b/file")
            directory.look("a/b/file/below")
            for path in ("link/x", "fifo", "a", "none/none", "a/b/file/x", "link"):
                with pytest.raises(CodeSpaceError):
                    directory.read_file(path, max_bytes=100)
    assert sum(1 for _ in Path("/proc/self/fd").iterdir()) == before
