import errno
import os
import stat
from collections.abc import Iterator
from pathlib import Path

import pytest

from codespace.domain.ids import OperationId
from codespace.domain.operation import FileImage, version_of
from codespace.domain.patch import ABSENT
from codespace.workspace.directory import RootDirectory, open_root, register
from codespace.workspace.restore import OTHER, Restorer, current_version
from codespace.workspace.temporaries import Temporaries
from doubles.access_lists import SOMEBODY_WRITES, attributes, give
from doubles.failing_syscalls import FailingSyscalls, Faults


@pytest.fixture
def root(tmp_path: Path) -> Iterator[RootDirectory]:
    with open_root(register(str(tmp_path))) as opened:
        yield opened


def image(path: str, before: bytes | None, after: bytes | None = b"new") -> FileImage:
    return FileImage(
        path, before, version_of(before), version_of(after), 0o640, os.geteuid(), os.getegid()
    )


def restorer(
    root: RootDirectory,
    *images: FileImage,
    directories: tuple[str, ...] = (),
    faults: Faults | None = None,
) -> Restorer:
    temporaries = Temporaries(root, OperationId("op-x"), FailingSyscalls(faults or Faults()))
    return Restorer(temporaries, images, directories, durable=True)


def test_what_stands_at_a_path_is_a_version(tmp_path: Path, root: RootDirectory) -> None:
    (tmp_path / "file").write_bytes(b"x")
    (tmp_path / "dir").mkdir()
    (tmp_path / "link").symlink_to("file")
    assert current_version(root, "file") == version_of(b"x")
    assert current_version(root, "none") == ABSENT
    assert current_version(root, "file/under") == ABSENT
    assert current_version(root, "dir") == OTHER
    assert current_version(root, "link") == OTHER
    assert current_version(root, "link/under") == OTHER


def test_a_directory_that_the_patch_made_is_no_file(tmp_path: Path, root: RootDirectory) -> None:
    (tmp_path / "made").mkdir()
    assert current_version(root, "made", ["made"]) == ABSENT


def test_files_come_back_with_bytes_and_mode(tmp_path: Path, root: RootDirectory) -> None:
    (tmp_path / "changed").write_bytes(b"new")
    (tmp_path / "added").write_bytes(b"new")
    images = [image("changed", b"old"), image("added", None), image("deleted", b"was", None)]
    job = restorer(root, *images)
    assert job.restore({"changed", "added", "deleted"})
    assert [one.state(current) for one, current in job.observe()] == ["before"] * 3
    assert sorted(path.name for path in tmp_path.iterdir()) == ["changed", "deleted"]
    assert stat.S_IMODE((tmp_path / "changed").stat().st_mode) == 0o640


def test_after_a_crash_a_file_takes_the_access_list_of_what_replaced_it(
    tmp_path: Path, root: RootDirectory
) -> None:
    (tmp_path / "a").write_bytes(b"new")
    give(tmp_path / "a", SOMEBODY_WRITES)
    carried = attributes(tmp_path / "a")
    assert restorer(root, image("a", b"old")).restore({"a"})
    assert (tmp_path / "a").read_bytes() == b"old"
    assert attributes(tmp_path / "a") == carried


def test_but_not_where_that_may_be_another_files(tmp_path: Path, root: RootDirectory) -> None:
    (tmp_path / "a").write_bytes(b"moved here")
    give(tmp_path / "a", SOMEBODY_WRITES)
    images = image("a", b"old", b"moved here"), image("b", b"moved here", None)
    assert restorer(root, *images).restore({"a", "b"})
    assert attributes(tmp_path / "a") == {}
    assert stat.S_IMODE((tmp_path / "a").stat().st_mode) == 0o640


def test_only_what_is_asked_for_is_touched(tmp_path: Path, root: RootDirectory) -> None:
    (tmp_path / "a").write_bytes(b"theirs")
    assert restorer(root, image("a", b"old"), image("b", b"was")).restore({"b"})
    assert (tmp_path / "a").read_bytes() == b"theirs"


def test_a_file_comes_back_where_a_made_directory_took_its_name(
    tmp_path: Path, root: RootDirectory
) -> None:
    (tmp_path / "a").mkdir()
    (tmp_path / "a" / "b").write_bytes(b"new")
    job = restorer(root, image("a", b"file", None), image("a/b", None), directories=("a",))
    assert job.restore({"a", "a/b"})
    assert (tmp_path / "a").read_bytes() == b"file"


def test_a_made_directory_goes_unless_somebody_uses_it(tmp_path: Path, root: RootDirectory) -> None:
    (tmp_path / "x" / "y").mkdir(parents=True)
    (tmp_path / "z").mkdir()
    (tmp_path / "z" / "theirs").touch()
    restorer(root, directories=("x", "x/y", "z")).remove_directories()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["z"]


def test_one_failure_does_not_keep_the_others_from_coming_back(
    tmp_path: Path, root: RootDirectory
) -> None:
    names = iter(["first", "second"])
    faults = Faults(
        fails=lambda call: errno.EIO if call.name == "create" and next(names) == "first" else None
    )
    job = restorer(root, image("a", b"old", None), image("b", b"old", None), faults=faults)
    assert not job.restore({"a", "b"})
    assert [path.name for path in tmp_path.iterdir()] == ["b"]


def test_a_restore_that_is_not_durable_is_a_failure(tmp_path: Path, root: RootDirectory) -> None:
    faults = Faults(fails=lambda call: errno.EIO if call.name == "sync" else None)
    (tmp_path / "a").write_bytes(b"new")
    assert not restorer(root, image("a", None), faults=faults).restore({"a"})
