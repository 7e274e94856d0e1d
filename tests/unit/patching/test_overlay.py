"""The tree as the sections of a patch see it."""

import pytest

from codespace.domain.errors import CodeSpaceError, ErrorCode
from codespace.patching.overlay import DirectoryEntry, FileEntry, Overlay
from codespace.patching.refusal import Spot

SPOT = Spot(1, "p")
DISK = {"f": FileEntry(b"x\n"), "d": DirectoryEntry(), "d/g": FileEntry(b"y\n")}


def _tree() -> Overlay:
    return Overlay(DISK)


def _refused_file(tree: Overlay, path: str) -> ErrorCode:
    with pytest.raises(CodeSpaceError) as caught:
        tree.file(path, SPOT)
    return caught.value.code


def _refused_place(tree: Overlay, path: str) -> ErrorCode:
    with pytest.raises(CodeSpaceError) as caught:
        tree.require_vacant(path, ErrorCode.ADD_FILE_EXISTS, SPOT)
    return caught.value.code


def test_a_file_is_the_same_story_each_time():
    tree = _tree()
    assert tree.file("d/g", SPOT).after == b"y\n"
    assert tree.file("d/g", SPOT) is tree.file("d/g", SPOT)


def test_what_is_no_file_is_refused_as_what_it_is():
    assert _refused_file(_tree(), "missing") is ErrorCode.FILE_NOT_FOUND
    assert _refused_file(_tree(), "d/missing") is ErrorCode.FILE_NOT_FOUND
    assert _refused_file(_tree(), "no/such/place") is ErrorCode.FILE_NOT_FOUND
    assert _refused_file(_tree(), "d") is ErrorCode.IS_A_DIRECTORY
    assert _refused_file(_tree(), ".") is ErrorCode.IS_A_DIRECTORY
    assert _refused_file(_tree(), "f/below/it") is ErrorCode.PATH_NOT_DIRECTORY


def test_a_taken_place_is_refused():
    assert _refused_place(_tree(), "f") is ErrorCode.ADD_FILE_EXISTS
    assert _refused_place(_tree(), "d") is ErrorCode.ADD_FILE_EXISTS
    assert _refused_place(_tree(), ".") is ErrorCode.ADD_FILE_EXISTS
    assert _refused_place(_tree(), "f/x") is ErrorCode.PATH_NOT_DIRECTORY


def test_the_refusal_says_what_is_in_the_way():
    with pytest.raises(CodeSpaceError, match="a directory is already there"):
        _tree().require_vacant("d", ErrorCode.ADD_FILE_EXISTS, SPOT)
    with pytest.raises(CodeSpaceError, match="'f' is a file, not a directory"):
        _tree().require_vacant("f/x", ErrorCode.ADD_FILE_EXISTS, SPOT)


def test_an_added_file_brings_its_directories():
    tree = _tree()
    tree.require_vacant("n/m/a", ErrorCode.ADD_FILE_EXISTS, SPOT)
    tree.add("n/m/a", b"")
    assert tree.file("n/m/a", SPOT).after == b""
    assert _refused_file(tree, "n") is ErrorCode.IS_A_DIRECTORY
    assert _refused_place(tree, "n/m") is ErrorCode.ADD_FILE_EXISTS


def test_directories_stay_when_their_file_goes():
    tree = _tree()
    tree.add("n/a", b"")
    tree.delete(tree.file("n/a", SPOT))
    assert _refused_place(tree, "n") is ErrorCode.ADD_FILE_EXISTS
    assert tree.plan().files == ()


def test_a_deleted_file_leaves_its_place_vacant():
    tree = _tree()
    tree.delete(tree.file("f", SPOT))
    assert _refused_file(tree, "f") is ErrorCode.FILE_NOT_FOUND
    tree.require_vacant("f", ErrorCode.ADD_FILE_EXISTS, SPOT)
    tree.require_vacant("f/below", ErrorCode.ADD_FILE_EXISTS, SPOT)
    tree.add("f/below", b"")
    assert [file.path for file in tree.plan().files] == ["f", "f/below"]


def test_a_file_added_where_it_was_deleted_is_the_same_file():
    tree = _tree()
    tree.delete(tree.file("f", SPOT))
    tree.add("f", b"new\n")
    plan = tree.plan()
    assert [(file.path, file.mode_from) for file in plan.files] == [("f", "f")]
    assert [(c.kind, c.added, c.removed) for c in plan.changes] == [("update", 1, 1)]


def test_a_file_added_where_another_moved_away_is_a_new_file():
    tree = _tree()
    tree.move(tree.file("f", SPOT), "n/f")
    tree.add("f", b"new\n")
    plan = tree.plan()
    assert [(file.path, file.mode_from) for file in plan.files] == [("f", None), ("n/f", "f")]
    assert [(c.path, c.kind) for c in plan.changes] == [("n/f", "move"), ("f", "add")]


def test_a_moved_file_leaves_its_place_and_brings_its_directories():
    tree = _tree()
    tree.move(tree.file("f", SPOT), "n/f")
    assert _refused_file(tree, "f") is ErrorCode.FILE_NOT_FOUND
    assert _refused_file(tree, "n") is ErrorCode.IS_A_DIRECTORY
    assert tree.file("n/f", SPOT).origin == "f"


def test_what_is_only_looked_for_is_not_in_the_plan():
    tree = _tree()
    tree.require_vacant("d/new", ErrorCode.ADD_FILE_EXISTS, SPOT)
    tree.add("d/new", b"")
    assert [change.path for change in tree.plan().changes] == ["d/new"]
