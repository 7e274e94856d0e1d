"""Whole patches on a tree: sections in sequence, and what comes out for each file."""

from collections.abc import Mapping
from hashlib import sha256

import pytest

from codespace.domain.errors import CodeSpaceError, ErrorCode
from codespace.domain.patch import Change, ChangeKind, PatchPlan, PlannedFile
from codespace.domain.paths import ancestors
from codespace.patching.grammar import cleaned, parse
from codespace.patching.planning import DirectoryEntry, Entry, FileEntry, plan


def _disk(files: Mapping[str, bytes]) -> dict[str, Entry]:
    above: dict[str, Entry] = {a: DirectoryEntry() for path in files for a in ancestors(path)}
    return above | {path: FileEntry(data) for path, data in files.items()}


def _plan(files: Mapping[str, bytes], *lines: str) -> PatchPlan:
    text = "\n".join(["*** Begin Patch", *lines, "*** End Patch"])
    return plan(cleaned(parse(text)), _disk(files))


def _refusal(files: Mapping[str, bytes], *lines: str) -> CodeSpaceError:
    with pytest.raises(CodeSpaceError) as caught:
        _plan(files, *lines)
    return caught.value


def _version(data: bytes) -> str:
    return sha256(data).hexdigest()


def _update(path: str, *body: str, to: str | None = None) -> list[str]:
    move = [] if to is None else [f"*** Move to: {to}"]
    return [f"*** Update File: {path}", *move, "@@", *body]


FILES = {"a": b"one\ntwo\n", "d/b": b"b\n", "latin": b"caf\xe9\n"}
EDIT = ["-one", "+ONE"]
ADD_N = ["*** Add File: n", "+x"]


def test_a_patch_plans_every_file_it_names():
    result = _plan(
        FILES,
        *_update("a", *EDIT),
        "*** Add File: ./new/n",
        "+x",
        "*** Delete File: d/b",
    )
    assert result == PatchPlan(
        files=(
            PlannedFile("a", b"one\ntwo\n", b"ONE\ntwo\n", mode_from="a"),
            PlannedFile("d/b", b"b\n", None),
            PlannedFile("new/n", None, b"x\n"),
        ),
        changes=(
            Change("a", "update", None, _version(b"one\ntwo\n"), _version(b"ONE\ntwo\n"), 1, 1),
            Change("new/n", "add", None, None, _version(b"x\n"), 1, 0),
            Change("d/b", "delete", None, _version(b"b\n"), None, 0, 1),
        ),
    )


def test_a_move_writes_the_updated_text_and_takes_the_mode_along():
    result = _plan(FILES, *_update("a", *EDIT, to="d/c"))
    assert result.files == (
        PlannedFile("a", b"one\ntwo\n", None),
        PlannedFile("d/c", None, b"ONE\ntwo\n", mode_from="a"),
    )
    assert result.changes == (
        Change("d/c", "move", "a", _version(b"one\ntwo\n"), _version(b"ONE\ntwo\n"), 1, 1),
    )


def test_an_update_that_changes_no_byte_is_told_and_not_written():
    result = _plan(FILES, *_update("a", " one"))
    assert result.files == ()
    same = _version(b"one\ntwo\n")
    assert result.changes == (Change("a", "update", None, same, same),)


def test_an_update_of_context_alone_adds_the_last_ending():
    result = _plan({"a": b"x\r\ny"}, *_update("a", " x"))
    assert [file.after for file in result.files] == [b"x\r\ny\r\n"]


def test_a_file_that_is_not_utf_8_can_be_deleted():
    assert _plan(FILES, "*** Delete File: latin").files == (
        PlannedFile("latin", b"caf\xe9\n", None),
    )


@pytest.mark.parametrize(
    ("lines", "files", "changes"),
    [
        pytest.param(
            [*ADD_N, *_update("n", "-x", "+y", "+z")],
            {"n": b"y\nz\n"},
            [("n", "add", None, 2, 0)],
            id="add-update",
        ),
        pytest.param([*ADD_N, "*** Delete File: n"], {}, [], id="add-delete"),
        pytest.param(
            [*ADD_N, *_update("n", " x", to="m")],
            {"m": b"x\n"},
            [("m", "add", None, 1, 0)],
            id="add-move",
        ),
        pytest.param(
            [*_update("a", *EDIT), *_update("a", "-ONE", "+1", "+1.5")],
            {"a": b"1\n1.5\ntwo\n"},
            [("a", "update", None, 3, 2)],
            id="update-update",
        ),
        pytest.param(
            [*_update("a", *EDIT), *_update("a", "-two", to="m")],
            {"a": None, "m": b"ONE\n"},
            [("m", "move", "a", 1, 2)],
            id="update-move",
        ),
        pytest.param(
            [*_update("a", *EDIT, to="m"), *_update("m", "-two")],
            {"a": None, "m": b"ONE\n"},
            [("m", "move", "a", 1, 2)],
            id="move-update",
        ),
        pytest.param(
            [*_update("a", " one", to="m"), *_update("m", " one", to="a")],
            {},
            [("a", "update", None, 0, 0)],
            id="move-and-back",
        ),
        pytest.param(
            [*_update("a", *EDIT), "*** Delete File: a"],
            {"a": None},
            [("a", "delete", None, 0, 2)],
            id="update-delete",
        ),
        pytest.param(
            [*_update("a", *EDIT, to="m"), "*** Delete File: m"],
            {"a": None},
            [("a", "delete", None, 0, 2)],
            id="move-delete",
        ),
        pytest.param(
            ["*** Delete File: a", "*** Add File: a", "+new"],
            {"a": b"new\n"},
            [("a", "update", None, 1, 2)],
            id="delete-add",
        ),
        pytest.param(
            ["*** Delete File: a", "*** Add File: a", "+one", "+two"],
            {},
            [("a", "update", None, 2, 2)],
            id="delete-add-of-the-same",
        ),
        pytest.param(
            ["*** Delete File: a", "*** Add File: a", "+n", "*** Delete File: a"],
            {"a": None},
            [("a", "delete", None, 0, 2)],
            id="delete-add-delete",
        ),
        pytest.param(
            ["*** Delete File: a", "*** Add File: a/b", "+n"],
            {"a": None, "a/b": b"n\n"},
            [("a", "delete", None, 0, 2), ("a/b", "add", None, 1, 0)],
            id="file-becomes-directory",
        ),
        pytest.param(
            ["*** Delete File: d/b", *_update("a", " one", to="d/b")],
            {"a": None, "d/b": b"one\ntwo\n"},
            [("d/b", "delete", None, 0, 1), ("d/b", "move", "a", 0, 0)],
            id="delete-move-onto",
        ),
        pytest.param(
            [*_update("a", " one", to="m"), "*** Add File: a", "+n"],
            {"a": b"n\n", "m": b"one\ntwo\n"},
            [("m", "move", "a", 0, 0), ("a", "add", None, 1, 0)],
            id="move-add",
        ),
        pytest.param(
            [
                *_update("a", " one", to="t"),
                *_update("d/b", " b", to="a"),
                *_update("t", " one", to="d/b"),
            ],
            {"a": b"b\n", "d/b": b"one\ntwo\n"},
            [("d/b", "move", "a", 0, 0), ("a", "move", "d/b", 0, 0)],
            id="swap",
        ),
    ],
)
def test_sections_of_one_file_merge(
    lines: list[str],
    files: dict[str, bytes | None],
    changes: list[tuple[str, ChangeKind, str | None, int, int]],
):
    result = _plan(FILES, *lines)
    assert {file.path: file.after for file in result.files} == files
    assert [(c.path, c.kind, c.source, c.added, c.removed) for c in result.changes] == changes


@pytest.mark.parametrize(
    ("lines", "code", "path", "section"),
    [
        (["*** Add File: a"], ErrorCode.ADD_FILE_EXISTS, "a", 1),
        (["*** Add File: d"], ErrorCode.ADD_FILE_EXISTS, "d", 1),
        (["*** Add File: ."], ErrorCode.ADD_FILE_EXISTS, ".", 1),
        ([*ADD_N, *ADD_N], ErrorCode.ADD_FILE_EXISTS, "n", 2),
        (["*** Add File: a/n"], ErrorCode.PATH_NOT_DIRECTORY, "a/n", 1),
        ([*ADD_N, "*** Add File: n/m/o"], ErrorCode.PATH_NOT_DIRECTORY, "n/m/o", 2),
        (["*** Add File: n/m", "*** Add File: n"], ErrorCode.ADD_FILE_EXISTS, "n", 2),
        (["*** Delete File: no"], ErrorCode.FILE_NOT_FOUND, "no", 1),
        (["*** Delete File: a", "*** Delete File: a"], ErrorCode.FILE_NOT_FOUND, "a", 2),
        (["*** Delete File: d"], ErrorCode.IS_A_DIRECTORY, "d", 1),
        (["*** Delete File: a/b"], ErrorCode.PATH_NOT_DIRECTORY, "a/b", 1),
        (_update("no", "+x"), ErrorCode.FILE_NOT_FOUND, "no", 1),
        (["*** Delete File: a", *_update("a", "+x")], ErrorCode.FILE_NOT_FOUND, "a", 2),
        (_update("d", "+x"), ErrorCode.IS_A_DIRECTORY, "d", 1),
        (_update("a/b", "+x"), ErrorCode.PATH_NOT_DIRECTORY, "a/b", 1),
        (_update("latin", "+x"), ErrorCode.INVALID_PATCH, "latin", 1),
        (_update("latin", "+x", to="n"), ErrorCode.INVALID_PATCH, "latin", 1),
        (_update("a", *EDIT, to="a"), ErrorCode.MOVE_DESTINATION_EXISTS, "a", 1),
        (_update("a", *EDIT, to="./a/"), ErrorCode.MOVE_DESTINATION_EXISTS, "a", 1),
        (_update("a", *EDIT, to="d/b"), ErrorCode.MOVE_DESTINATION_EXISTS, "d/b", 1),
        (_update("a", *EDIT, to="d"), ErrorCode.MOVE_DESTINATION_EXISTS, "d", 1),
        (_update("a", *EDIT, to="a/b"), ErrorCode.PATH_NOT_DIRECTORY, "a/b", 1),
        (
            [*_update("a", *EDIT, to="m"), *_update("a", " ONE")],
            ErrorCode.FILE_NOT_FOUND,
            "a",
            2,
        ),
        ([*_update("a", *EDIT), *_update("a", *EDIT)], ErrorCode.INVALID_PATCH, "a", 2),
        (_update("a", "-no"), ErrorCode.INVALID_PATCH, "a", 1),
    ],
)
def test_what_the_tree_does_not_allow_is_refused_as_a_whole(
    lines: list[str], code: ErrorCode, path: str, section: int
):
    error = _refusal(FILES, *lines)
    assert error.code is code
    assert (error.details["path"], error.details["section"]) == (path, section)


def test_a_file_that_is_not_utf_8_is_named_as_the_reason():
    assert "not UTF-8" in _refusal(FILES, *_update("latin", "+x")).message


def test_a_context_that_is_not_found_says_what_to_mend():
    error = _refusal(FILES, *ADD_N, *_update("a", " one", "@@ two", "-three"))
    assert error.details == {
        "path": "a",
        "section": 2,
        "chunk": 2,
        "line": 7,
        "nearest": {"line": 3, "matched_lines": 0, "expected": "three", "found": None},
    }


def test_a_patch_without_a_section_is_refused():
    error = _refusal(FILES, "*** Environment ID: x")
    assert error.code is ErrorCode.INVALID_PATCH
    assert "no section" in error.message


def test_many_chunks_in_a_large_file_find_their_places():
    before = [f"line {number}" for number in range(20_000)]
    after = list(before)
    body: list[str] = []
    for number in range(50, 20_000, 100):
        after[number] = f"changed {number}"
        # Blanks behind a line, dashes and an own header: every pass has to be used.
        body += [f"@@ {before[number - 2]} ", f" {before[number - 1]}  "]
        body += [f"-\t{before[number]}", f"+{after[number]}"]
    result = _plan({"a": "\n".join(before).encode()}, "*** Update File: a", *body)
    assert result.files[0].after == ("\n".join(after) + "\n").encode()
