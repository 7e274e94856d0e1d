"""What a client is told of each file, and what differs on disk."""

from hashlib import sha256

import pytest

from codespace.domain.patch import Change, PlannedFile
from codespace.patching.lines import Edit
from codespace.patching.stories import Story, told


def _version(data: bytes) -> str:
    return sha256(data).hexdigest()


def test_an_added_file_counts_all_its_lines():
    plan = told([Story(None, None, "a", b"x\ny\n", rewritten=True)])
    assert plan.files == (PlannedFile("a", None, b"x\ny\n"),)
    assert plan.changes == (Change("a", "add", after_version=_version(b"x\ny\n"), added=2),)


def test_an_updated_file_counts_what_the_updates_did_and_keeps_its_mode():
    plan = told([Story("a", b"x\n", "a", b"y\nz\n", added=2, removed=1)])
    assert plan.files == (PlannedFile("a", b"x\n", b"y\nz\n", mode_from="a"),)
    assert plan.changes == (
        Change(
            "a",
            "update",
            before_version=_version(b"x\n"),
            after_version=_version(b"y\nz\n"),
            added=2,
            removed=1,
        ),
    )


def test_edits_add_up():
    story = Story("a", b"x\n", "a", b"x\n")
    story.edit(b"y\n", [Edit(0, 1, ["y"])])
    story.edit(b"y\nz\nz\n", [Edit(1, 1, ["z", "z"]), Edit(1, 1, [])])
    assert (story.after, story.added, story.removed) == (b"y\nz\nz\n", 3, 1)


def test_a_deleted_file_counts_all_its_lines_at_its_first_place():
    plan = told([Story("a", b"x\ny", "b", None, added=5, removed=5)])
    assert plan.files == (PlannedFile("a", b"x\ny", None),)
    assert plan.changes == (Change("a", "delete", before_version=_version(b"x\ny"), removed=2),)


def test_a_moved_file_is_written_at_one_place_and_gone_from_the_other():
    plan = told([Story("b", b"x\n", "a", b"x\n")])
    assert plan.files == (
        PlannedFile("a", None, b"x\n", mode_from="b"),
        PlannedFile("b", b"x\n", None),
    )
    same = _version(b"x\n")
    assert plan.changes == (
        Change("a", "move", source="b", before_version=same, after_version=same),
    )


def test_a_rewritten_file_counts_all_lines_of_both():
    (change,) = told([Story("a", b"x\ny\n", "a", b"z\n", rewritten=True, added=9)]).changes
    assert (change.kind, change.added, change.removed) == ("update", 1, 2)


def test_an_unchanged_file_is_told_and_not_written():
    plan = told([Story("a", b"x\n", "a", b"x\n")])
    assert plan.files == ()
    assert [change.kind for change in plan.changes] == ["update"]


def test_a_file_that_came_and_went_is_nothing():
    assert told([Story(None, None, "a", None)]).changes == ()
    assert told([Story(None, None, "a", None)]).files == ()


def test_files_are_sorted_and_changes_keep_their_order():
    plan = told([Story(None, None, path, b"") for path in ("b", "a", "a/b", "B")])
    assert [file.path for file in plan.files] == ["B", "a", "a/b", "b"]
    assert [change.path for change in plan.changes] == ["b", "a", "a/b", "B"]


def test_a_file_that_takes_the_place_of_another_is_one_write():
    plan = told([Story("a", b"A", "a", None), Story("b", b"B", "a", b"B")])
    assert plan.files == (
        PlannedFile("a", b"A", b"B", mode_from="b"),
        PlannedFile("b", b"B", None),
    )
    assert [change.kind for change in plan.changes] == ["delete", "move"]


@pytest.mark.parametrize(
    ("data", "count"),
    [
        (b"", 0),
        (b"a", 1),
        (b"a\n", 1),
        (b"a\nb", 2),
        (b"a\r\nb\r\n", 2),
        (b"a\rb\r\nc\nd", 4),
        (b"\r\n\r", 2),
        (b"\xff\n\xfe", 2),
    ],
)
def test_lines_are_counted_as_the_engine_splits_them(data: bytes, count: int):
    (change,) = told([Story("a", data, "a", None)]).changes
    assert change.removed == count
