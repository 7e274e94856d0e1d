import os
import stat
from collections.abc import Iterator
from pathlib import Path

import pytest

from codespace.workspace.syscalls import Syscalls

CALLS = Syscalls()


@pytest.fixture
def fd(tmp_path: Path) -> Iterator[int]:
    descriptor = os.open(tmp_path, os.O_RDONLY | os.O_DIRECTORY)
    yield descriptor
    os.close(descriptor)


def test_a_created_file_obeys_the_umask_and_never_replaces(tmp_path: Path, fd: int) -> None:
    before = os.umask(0o027)
    try:
        os.close(CALLS.create("a", 0o644, dir_fd=fd))
    finally:
        os.umask(before)
    assert stat.S_IMODE((tmp_path / "a").stat().st_mode) == 0o640
    with pytest.raises(FileExistsError):
        CALLS.create("a", 0o644, dir_fd=fd)
    (tmp_path / "link").symlink_to("elsewhere")
    with pytest.raises(FileExistsError):
        CALLS.create("link", 0o644, dir_fd=fd)


def test_a_file_goes_through_its_life(tmp_path: Path, fd: int) -> None:
    file = CALLS.create("a", 0o600, dir_fd=fd)
    assert CALLS.write(file, memoryview(b"text")) == 4
    CALLS.chmod(file, 0o755)
    CALLS.chown(file, -1, -1)
    CALLS.sync(file)
    os.close(file)
    CALLS.rename("a", "b", dir_fd=fd)
    status = CALLS.status("b", dir_fd=fd)
    assert (status.st_size, stat.S_IMODE(status.st_mode)) == (4, 0o755)
    CALLS.unlink("b", dir_fd=fd)
    CALLS.mkdir("d", dir_fd=fd)
    CALLS.rmdir("d", dir_fd=fd)
    CALLS.sync_filesystem(fd)
    assert list(tmp_path.iterdir()) == []


def test_a_failed_sync_is_an_error() -> None:
    reader, writer = os.pipe()
    os.close(reader)
    os.close(writer)
    with pytest.raises(OSError, match="Bad file descriptor"):
        CALLS.sync_filesystem(reader)
