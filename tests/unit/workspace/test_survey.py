import os
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from codespace.domain.errors import CodeSpaceError, ErrorCode
from codespace.domain.limits import Limits
from codespace.domain.operation import version_of
from codespace.patching.planning import DirectoryEntry, FileEntry
from codespace.workspace.directory import RootDirectory, open_root, register
from codespace.workspace.survey import Bound, Found, Survey, read_files


@pytest.fixture
def root(tmp_path: Path) -> Iterator[RootDirectory]:
    (tmp_path / "pkg" / "inner").mkdir(parents=True)
    (tmp_path / "pkg" / "inner" / "a.txt").write_bytes(b"a\n")
    (tmp_path / "top.txt").write_bytes(b"")
    with open_root(register(str(tmp_path))) as opened:
        yield opened


def surveyed(root: RootDirectory, *paths: str, limits: Limits | None = None) -> Survey:
    survey = Survey(root, limits or Limits())
    survey.look(paths)
    return survey


def test_entries_hold_each_path_and_all_that_stands_above(root: RootDirectory) -> None:
    survey = surveyed(root, "pkg/inner/a.txt", "pkg/none/b.txt", "top.txt", "top.txt/under")
    assert survey.entries == {
        "pkg": DirectoryEntry(),
        "pkg/inner": DirectoryEntry(),
        "pkg/inner/a.txt": FileEntry(b"a\n"),
        "top.txt": FileEntry(b""),
    }
    assert set(survey.files) == {"pkg/inner/a.txt", "top.txt"}
    assert survey.files["pkg/inner/a.txt"].version == version_of(b"a\n")


def test_a_directory_and_the_root_are_directories(root: RootDirectory) -> None:
    assert surveyed(root, "pkg", ".").entries == {"pkg": DirectoryEntry(), ".": DirectoryEntry()}


def test_a_file_above_a_path_needs_no_bytes_unless_it_is_touched(
    root: RootDirectory, tmp_path: Path
) -> None:
    (tmp_path / "top.txt").write_bytes(b"content")
    assert surveyed(root, "top.txt/under").entries == {"top.txt": FileEntry(b"")}
    assert surveyed(root, "top.txt/under", "top.txt").entries["top.txt"] == FileEntry(b"content")


def test_a_path_that_was_only_above_is_read_once_it_is_touched(
    root: RootDirectory, tmp_path: Path
) -> None:
    (tmp_path / "top.txt").write_bytes(b"content")
    survey = surveyed(root, "top.txt/under")
    survey.look(["top.txt"])
    assert survey.entries["top.txt"] == FileEntry(b"content")


def test_a_link_is_refused_at_the_path_and_above_it(root: RootDirectory, tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to("pkg")
    for path in ("link", "link/inner/a.txt"):
        with pytest.raises(CodeSpaceError) as caught:
            surveyed(root, path)
        assert caught.value.code is ErrorCode.SYMLINK_REJECTED


def test_a_fifo_is_refused_without_waiting_for_it(root: RootDirectory, tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "fifo")
    with pytest.raises(CodeSpaceError) as caught:
        surveyed(root, "fifo")
    assert caught.value.code is ErrorCode.SPECIAL_FILE_REJECTED


@pytest.mark.parametrize("name", ["patch_file_max_bytes", "patch_total_max_bytes"])
def test_files_above_a_limit_are_refused(root: RootDirectory, tmp_path: Path, name: str) -> None:
    (tmp_path / "b.txt").write_bytes(b"123456")
    limits = replace(Limits(), **{name: 7})
    surveyed(root, "b.txt", limits=limits)
    (tmp_path / "c.txt").write_bytes(b"12345678" if "file" in name else b"12")
    with pytest.raises(CodeSpaceError) as caught:
        surveyed(root, "b.txt", "c.txt", limits=limits)
    assert caught.value.code is ErrorCode.LIMIT_EXCEEDED
    assert caught.value.details["limit"] == name


@pytest.mark.parametrize(
    ("path", "version"),
    [
        ("./pkg//inner/a.txt", version_of(b"a\n")),
        ("none.txt", "absent"),
        ("none/deep.txt", "absent"),
        ("top.txt/under", "absent"),
    ],
)
def test_a_version_that_was_read_is_accepted(root: RootDirectory, path: str, version: str) -> None:
    Survey(root, Limits()).require({path: version})


@pytest.mark.parametrize(
    ("path", "version", "actual"),
    [
        ("top.txt", version_of(b"other"), version_of(b"")),
        ("top.txt", "absent", version_of(b"")),
        ("none.txt", version_of(b""), "absent"),
    ],
)
def test_another_version_is_a_conflict_that_names_both(
    root: RootDirectory, path: str, version: str, actual: str
) -> None:
    with pytest.raises(CodeSpaceError) as caught:
        Survey(root, Limits()).require({path: version})
    assert caught.value.code is ErrorCode.VERSION_CONFLICT
    assert caught.value.details == {"path": path, "expected": version, "actual": actual}


@pytest.mark.parametrize(
    ("path", "code"),
    [("pkg", ErrorCode.IS_A_DIRECTORY), ("../x", ErrorCode.PATH_ESCAPE)],
)
def test_a_version_of_what_is_no_file_is_refused(
    root: RootDirectory, path: str, code: ErrorCode
) -> None:
    with pytest.raises(CodeSpaceError) as caught:
        Survey(root, Limits()).require({path: "absent"})
    assert caught.value.code is code


def test_a_file_that_just_changed_cannot_be_told_by_its_times(
    root: RootDirectory, tmp_path: Path
) -> None:
    later = time.time_ns() + 60_000_000_000
    os.utime(tmp_path / "top.txt", ns=(later, later))
    assert surveyed(root, "top.txt").files["top.txt"].unsettled


def test_a_file_that_rests_is_told_by_its_times(root: RootDirectory) -> None:
    deadline = time.monotonic() + 10
    while surveyed(root, "top.txt").files["top.txt"].unsettled:
        assert time.monotonic() < deadline


def test_files_are_read_directory_by_directory_and_each_once(root: RootDirectory) -> None:
    paths = ["top.txt", "pkg/inner/a.txt", "gone/x", "pkg", "pkg/inner/b.txt"]
    standing = list(read_files(root, paths, lambda: Bound("some", 10)))
    assert sorted(path for path, _ in standing) == sorted(paths)
    kinds = {path: found for path, found in standing if not isinstance(found, Found)}
    assert kinds == {"gone/x": "absent", "pkg": "directory", "pkg/inner/b.txt": "absent"}
