"""Ignore files as data: what is in the way of rg, and the rules of all as those of one file."""

import os
import resource
from collections.abc import Iterator
from pathlib import Path

import pytest

from codespace.domain.errors import CodeSpaceError, ErrorCode
from codespace.workspace.deadline import Deadline
from codespace.workspace.directory import open_root, register
from codespace.workspace.ignores import IGNORE_MAX_BYTES, collected, obstructed, rebased


def later() -> Deadline:
    return Deadline.after(60_000)


@pytest.fixture
def top(tmp_path: Path) -> Path:
    top = tmp_path / "root"
    (top / "a" / "b").mkdir(parents=True)
    return top


@pytest.fixture
def root(top: Path) -> Iterator[int]:
    with open_root(register(str(top))) as directory:
        yield directory.fd


def descriptors() -> int:
    return sum(1 for _ in Path("/proc/self/fd").iterdir())


@pytest.mark.parametrize(
    ("rule", "expected"),
    [
        ("x", "/a/**/x\n"),
        ("x/", "/a/**/x/\n"),
        ("/x", "/a/x\n"),
        ("x/y", "/a/x/y\n"),
        ("!x", "!/a/**/x\n"),
        ("!/x", "!/a/x\n"),
        (r"\!x", "/a/**/\\!x\n"),
        (r"\#x", "/a/**/\\#x\n"),
        ("**/x", "/a/**/x\n"),
        ("x  ", "/a/**/x  \n"),
        ("x\r\ny\r\n", "/a/**/x\n/a/**/y\n"),
        ("# said", ""),
        ("", ""),
        ("   ", ""),
        ("/", ""),
        ("!", ""),
        ("!/", ""),
    ],
)
def test_a_rule_of_a_directory_rules_below_it_only(rule: str, expected: str) -> None:
    assert rebased(rule.encode(), b"a").decode() == expected


def test_a_directory_of_any_name_is_meant_literally() -> None:
    assert rebased(b"x", b"[a]*/{b}!") == b"/\\[a\\]\\*/\\{b\\}\\!/**/x\n"
    assert rebased(b"x", b"n\nl/\xff") == b"/n?l/?/**/x\n"


def test_what_is_not_utf8_ends_the_file_and_its_mark_is_no_rule() -> None:
    assert rebased(b"\xef\xbb\xbfx\ny\xff\nz\n", b"") == b"/**/x\n"


def test_deeper_rules_come_later(root: int, top: Path) -> None:
    (top / "a/b/.gitignore").write_text("three")
    (top / ".gitignore").write_text("one")
    (top / "a/.gitignore").write_text("two")
    assert collected(root, later()) == b"/**/one\n/a/**/two\n/a/b/**/three\n"


def test_neither_links_nor_special_files_nor_huge_ones_rule(root: int, top: Path) -> None:
    before = descriptors()
    (top / "rules").write_text("x")
    (top / ".gitignore").symlink_to("rules")
    os.mkfifo(top / "a/.gitignore")
    with (top / "a/b/.gitignore").open("wb") as huge:
        huge.truncate(IGNORE_MAX_BYTES + 1)
    assert collected(root, later()) == b""
    assert descriptors() == before


def test_no_link_is_walked_through_and_git_itself_has_no_rules(
    root: int, top: Path, tmp_path: Path
) -> None:
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside/.gitignore").write_text("x")
    (top / "away").symlink_to(tmp_path / "outside")
    (top / ".git").mkdir()
    (top / ".git/.gitignore").write_text("x")
    assert collected(root, later()) == b""


def test_rules_without_end_are_refused(root: int, top: Path) -> None:
    for number in range(9):
        (top / f"{number}").mkdir()
        (top / f"{number}/.gitignore").write_bytes(b"x" * IGNORE_MAX_BYTES)
    with pytest.raises(CodeSpaceError) as caught:
        collected(root, later())
    assert caught.value.code is ErrorCode.LIMIT_EXCEEDED


def test_ordinary_ignore_files_obstruct_nothing(root: int, top: Path) -> None:
    (top / ".gitignore").write_text("x")
    (top / "a/.gitignore").symlink_to("../.gitignore")
    (top / "a/b/.gitignore").mkdir()
    assert not obstructed(root, later())


@pytest.mark.parametrize("where", ["", "a/b/", "\udcff/", "../"])
@pytest.mark.parametrize("kind", ["fifo", "huge", "link"])
def test_what_would_hold_a_reader_up_obstructs(
    root: int, top: Path, tmp_path: Path, kind: str, where: str
) -> None:
    place = top / f"{where}.gitignore"
    place.parent.mkdir(exist_ok=True)
    if kind == "fifo":
        os.mkfifo(place)
    elif kind == "huge":
        with place.open("wb") as huge:
            huge.truncate(1024**4)
    else:
        place.symlink_to("/dev/zero")
    assert obstructed(root, later())


def test_a_deep_tree_takes_no_more_descriptors_than_a_flat_one(root: int, top: Path) -> None:
    deep = top.joinpath(*["d"] * 900)
    deep.mkdir(parents=True)
    for number in range(40):
        (top / f"e{number}").mkdir()
        (deep.parents[number] / "e").mkdir()
    os.mkfifo(deep / ".gitignore")
    before = descriptors()
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (before + 40, hard))
    try:
        assert obstructed(root, later())
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    assert descriptors() == before
    (deep / ".gitignore").unlink()
    (deep / ".gitignore").write_text("x")
    (deep.parents[500] / ".gitignore").write_text("y")
    last = "/d" * 900
    assert collected(root, later()).decode() == f"{last[: 399 * 2]}/**/y\n{last}/**/x\n"
    assert not obstructed(root, later())


def test_a_walk_ends_at_the_deadline(root: int) -> None:
    with pytest.raises(CodeSpaceError) as caught:
        obstructed(root, Deadline.after(0))
    assert caught.value.code is ErrorCode.TIMEOUT
