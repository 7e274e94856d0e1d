"""Names that a missing path may have meant, on a real directory."""

import os
from pathlib import Path

import pytest

from codespace.domain.errors import CodeSpaceError, ErrorCode
from codespace.domain.workspace import Root
from codespace.workspace.directory import register
from codespace.workspace.near_files import near_files, with_near_files

MISSING = CodeSpaceError(ErrorCode.FILE_NOT_FOUND, "gone", details={"path": "x"})


@pytest.fixture
def root(tmp_path: Path) -> Root:
    (tmp_path / "source").mkdir()
    for name in ("source/application.py", "source/applications.py", "source/b", "readme.md"):
        (tmp_path / name).write_text("", encoding="utf-8")
    return register(str(tmp_path))


@pytest.mark.parametrize(
    ("path", "found"),
    [
        ("README.md", ["readme.md"]),
        ("read_me.md", ["readme.md"]),
        ("source/aplication.py", ["source/application.py", "source/applications.py"]),
        ("sourse/application.py", ["source"]),
        ("source/zzz", []),
        ("readme.md", []),
    ],
)
def test_the_first_missing_name_is_compared_with_its_neighbours(
    root: Root, path: str, found: list[str]
) -> None:
    assert near_files(root, path) == found


def test_a_name_that_is_no_text_is_not_told(root: Root) -> None:
    os.mkdir(os.fsencode(root.path) + b"/caf\xe9s.txt")  # noqa: PTH102 -- a name that no Path has
    assert near_files(root, "cafes.txt") == []


def test_the_error_asks_whether_the_nearest_was_meant(root: Root) -> None:
    error = with_near_files(MISSING, root, "./read_me.md")
    assert error.message == (
        "The path 'read_me.md' does not exist; did you mean 'readme.md'? find lists what there is."
    )
    assert error.details == {"path": "x", "near": ["readme.md"]}


@pytest.mark.parametrize("path", ["source/zzz", "readme.md/a", "../a"])
def test_an_error_stays_as_it_is_where_nothing_is_near(root: Root, path: str) -> None:
    assert with_near_files(MISSING, root, path) is MISSING


def test_names_are_not_told_behind_a_link(root: Root, tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to("source")
    assert with_near_files(MISSING, root, "link/aplication.py") is MISSING


def test_any_other_error_stays_as_it_is(root: Root) -> None:
    other = CodeSpaceError(ErrorCode.IS_A_DIRECTORY, "x")
    assert with_near_files(other, root, "read_me.md") is other
