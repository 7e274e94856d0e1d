"""Every system call fails once; others write at the worst moment. No half may ever be left."""

import errno
import os
import stat
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import cast

import pytest

from codespace.domain.errors import ErrorCode
from codespace.domain.ids import OperationId
from codespace.domain.limits import Limits
from codespace.domain.patch import PatchStatus
from codespace.patching.grammar import cleaned, parse, touched
from codespace.patching.planning import plan
from codespace.workspace.directory import RootDirectory, open_root, register
from codespace.workspace.draft import Draft, draft
from codespace.workspace.survey import Survey
from codespace.workspace.temporaries import Temporaries
from codespace.workspace.transaction import Ending, Transaction
from doubles.access_lists import SOMEBODY_WRITES, attributes, give
from doubles.failing_syscalls import Call, FailingSyscalls, Faults
from doubles.patch_world import add, delete, patch, update
from doubles.trees import snapshot

MANY = patch(
    update("a.txt", "old", "new"),
    update("deep/er/b.txt", "old", "new"),
    update("deep/c.txt", "old", "new", move_to="fresh/moved.txt"),
    update("deep/d.sh", "old", "new"),
    delete("gone.txt"),
    add("fresh/er/e.txt", "new"),
    add("deep/f.txt", "new"),
    delete("turns"),
    add("turns/into/dir.txt", "new"),
)
ERRORS = (errno.ENOSPC, errno.EIO, errno.EACCES, errno.EXDEV)


@pytest.fixture
def work(tmp_path: Path) -> Path:
    root = tmp_path / "work"
    (root / "deep" / "er").mkdir(parents=True)
    for name in ("a.txt", "deep/er/b.txt", "deep/c.txt", "deep/d.sh", "gone.txt", "turns"):
        (root / name).write_text("old\n", encoding="utf-8")
    (root / "deep" / "d.sh").chmod(0o755)
    (root / "gone.txt").chmod(0o600)
    return root


@pytest.fixture
def root(work: Path) -> Iterator[RootDirectory]:
    with open_root(register(str(work))) as opened:
        yield opened


def drafted(root: RootDirectory, text: str) -> Draft:
    parsed = cleaned(parse(text))
    survey = Survey(root, Limits())
    survey.look(touched(parsed))
    return draft(survey, plan(parsed, survey.entries))


def run(root: RootDirectory, text: str, faults: Faults, *, durable: bool = True) -> Ending:
    temporaries = Temporaries(root, OperationId("op-x"), FailingSyscalls(faults))
    return Transaction(temporaries, drafted(root, text), durable=durable).run()


def tree(work: Path) -> dict[str, tuple[str, int, bytes]]:
    """Return what stands in the workspace, without times."""
    return {
        name: (kind, mode, content) for name, (kind, mode, _, content) in snapshot(work).items()
    }


def states_in(ending: Ending) -> dict[str, str]:
    """Return what the error of a partial patch says of each file."""
    assert ending.error is not None
    files = cast("list[dict[str, str]]", ending.error.details["files"])
    return {file["path"]: file["state"] for file in files}


def test_a_patch_is_on_disk_as_it_was_planned(work: Path, root: RootDirectory) -> None:
    faults = Faults()
    assert run(root, MANY, faults) == Ending(PatchStatus.APPLIED)
    files = {name: node[2] for name, node in tree(work).items() if node[0] == "file"}
    assert files == {
        "a.txt": b"new\n",
        "deep/er/b.txt": b"new\n",
        "fresh/moved.txt": b"new\n",
        "deep/d.sh": b"new\n",
        "fresh/er/e.txt": b"new\n",
        "deep/f.txt": b"new\n",
        "turns/into/dir.txt": b"new\n",
    }


def test_modes_are_kept_and_new_files_obey_the_umask(work: Path, root: RootDirectory) -> None:
    (work / "deep" / "c.txt").chmod(0o751)
    before = os.umask(0o026)
    try:
        run(root, MANY, Faults())
    finally:
        os.umask(before)
    modes = {name: node[1] for name, node in tree(work).items()}
    assert (modes["deep/d.sh"], modes["fresh/moved.txt"]) == (0o755, 0o751)
    assert (modes["deep/f.txt"], modes["fresh/er"]) == (0o640, 0o751)


def test_a_set_user_id_bit_does_not_outlive_the_content(work: Path, root: RootDirectory) -> None:
    (work / "a.txt").chmod(0o4755)
    run(root, patch(update("a.txt", "old", "new")), Faults())
    assert stat.S_IMODE((work / "a.txt").stat().st_mode) == 0o755


def test_access_lists_and_attributes_are_kept_also_by_a_file_that_moves(
    work: Path, root: RootDirectory
) -> None:
    for name in ("a.txt", "deep/c.txt"):
        give(work / name, SOMEBODY_WRITES)
        os.setxattr(work / name, "user.origin", name.encode())
    before = attributes(work / "a.txt"), attributes(work / "deep/c.txt")
    assert run(root, MANY, Faults()).status is PatchStatus.APPLIED
    assert (attributes(work / "a.txt"), attributes(work / "fresh/moved.txt")) == before
    assert stat.S_IMODE((work / "a.txt").stat().st_mode) == 0o660


def test_what_was_undone_has_its_access_list_and_attributes_again(
    work: Path, root: RootDirectory
) -> None:
    for name in ("a.txt", "deep/c.txt", "gone.txt"):
        give(work / name, SOMEBODY_WRITES)
        os.setxattr(work / name, "user.origin", name.encode())
    before = [attributes(work / name) for name in ("a.txt", "deep/c.txt", "gone.txt")]
    counted = Faults()
    assert run(root, MANY, counted, durable=False).status is PatchStatus.APPLIED
    _lay_out_again(work)
    for name, carried in zip(("a.txt", "deep/c.txt", "gone.txt"), before, strict=True):
        for attribute, value in carried.items():
            os.setxattr(work / name, attribute, value)
    last = max(number for number, name in enumerate(counted.called) if name == "unlink")
    faults = Faults(fails=lambda call: errno.EIO if call.number == last else None)
    assert run(root, MANY, faults, durable=False).status is PatchStatus.FAILED_ROLLED_BACK
    assert [attributes(work / name) for name in ("a.txt", "deep/c.txt", "gone.txt")] == before


@pytest.mark.parametrize("error", ERRORS, ids=lambda error: errno.errorcode[error])
@pytest.mark.requirement("patch.failed-rolled-back")
def test_whichever_call_fails_everything_is_as_before(
    work: Path, root: RootDirectory, error: int
) -> None:
    before = tree(work)
    counted = Faults()
    reference = run(root, MANY, counted)
    assert reference.status is PatchStatus.APPLIED
    for number in range(len(counted.called)):
        _lay_out_again(work)
        assert tree(work) == before
        faults = Faults(fails=lambda call, number=number: error if call.number == number else None)
        ending = run(root, MANY, faults)
        name = faults.called[number]
        if name == "chown" and ending.status is PatchStatus.APPLIED:
            continue
        assert ending.status is PatchStatus.FAILED_ROLLED_BACK, name
        assert tree(work) == before, name
        assert ending.error is not None
        assert ending.error.code is ErrorCode.FILE_OPERATION_FAILED
        assert ending.error.details["errno"] == errno.errorcode[error]
        assert ending.error.details["status"] == "failed_rolled_back"


def _lay_out_again(work: Path) -> None:
    for path in sorted(work.rglob("*"), reverse=True):
        path.rmdir() if path.is_dir() else path.unlink()
    (work / "deep" / "er").mkdir(parents=True)
    for name in ("a.txt", "deep/er/b.txt", "deep/c.txt", "deep/d.sh", "gone.txt", "turns"):
        (work / name).write_text("old\n", encoding="utf-8")
    (work / "deep" / "d.sh").chmod(0o755)
    (work / "gone.txt").chmod(0o600)


def test_without_durability_nothing_is_synced(root: RootDirectory) -> None:
    faults = Faults()
    run(root, MANY, faults, durable=False)
    assert not {"sync", "sync_filesystem"} & set(faults.called)


@pytest.mark.requirement("patch.durable")
def test_contents_are_durable_before_the_first_swap_and_names_after_the_last(
    root: RootDirectory,
) -> None:
    faults = Faults()
    run(root, MANY, faults)
    calls = faults.called
    first_rename, last_rename = calls.index("rename"), len(calls) - 1 - calls[::-1].index("rename")
    last_write = len(calls) - 1 - calls[::-1].index("write")
    assert "sync_filesystem" in calls[last_write:first_rename]
    last_unlink = len(calls) - 1 - calls[::-1].index("unlink")
    # root, deep, deep/er, fresh, fresh/er, turns, turns/into
    assert calls[max(last_rename, last_unlink) :].count("sync") == 7


@pytest.mark.requirement("patch.durable")
def test_a_small_patch_syncs_each_file(root: RootDirectory) -> None:
    faults = Faults()
    run(root, patch(update("a.txt", "old", "new")), faults)
    assert faults.called.count("sync") == 2
    assert "sync_filesystem" not in faults.called


@pytest.mark.parametrize("text", [b"theirs\n", b"them\n"], ids=["longer", "same length"])
def test_a_file_that_somebody_changed_meanwhile_is_not_overwritten(
    work: Path, root: RootDirectory, text: bytes
) -> None:
    def meddle(call: Call) -> None:
        if (call.name, call.target) == ("rename", "a.txt"):
            (work / "deep" / "er" / "b.txt").write_bytes(text)

    before = tree(work)
    ending = run(root, MANY, Faults(before=meddle))
    assert ending.status is PatchStatus.FAILED_ROLLED_BACK
    assert ending.error is not None
    assert ending.error.code is ErrorCode.VERSION_CONFLICT
    assert ending.error.details["path"] == "deep/er/b.txt"
    after = tree(work)
    assert after.pop("deep/er/b.txt")[2] == text
    before.pop("deep/er/b.txt")
    assert after == before


def test_a_file_that_appeared_meanwhile_is_not_overwritten(work: Path, root: RootDirectory) -> None:
    def meddle(call: Call) -> None:
        if (call.name, call.target) == ("rename", "a.txt"):
            (work / "deep" / "f.txt").write_text("theirs\n", encoding="utf-8")

    ending = run(root, MANY, Faults(before=meddle))
    assert ending.status is PatchStatus.FAILED_ROLLED_BACK
    assert (work / "deep" / "f.txt").read_text(encoding="utf-8") == "theirs\n"
    assert (work / "a.txt").read_text(encoding="utf-8") == "old\n"


def test_a_rewrite_within_the_clocks_grain_is_noticed(work: Path, root: RootDirectory) -> None:
    ready = drafted(root, patch(update("a.txt", "old", "new")))
    found = ready.found["a.txt"]
    (work / "a.txt").write_text("0ld\n", encoding="utf-8")
    # As if the clock had not moved: the mark is the new file's, the bytes are the old one's.
    with open_root(register(str(work))) as again:
        survey = Survey(again, Limits())
        survey.look(["a.txt"])
    same_mark = type(found)(
        found.data,
        found.version,
        survey.files["a.txt"].mark,
        found.mode,
        found.uid,
        found.gid,
        unsettled=True,
    )
    stale = Draft(ready.files, ready.images, {"a.txt": same_mark}, ready.directories)
    temporaries = Temporaries(root, OperationId("op-x"), FailingSyscalls(Faults()))
    ending = Transaction(temporaries, stale, durable=False).run()
    assert ending.status is PatchStatus.FAILED_ROLLED_BACK
    assert (work / "a.txt").read_text(encoding="utf-8") == "0ld\n"


def test_a_write_that_does_not_read_back_is_undone_where_it_can_be(
    work: Path, root: RootDirectory
) -> None:
    def meddle(call: Call) -> None:
        if (call.name, call.target) == ("unlink", "gone.txt"):
            (work / "a.txt").write_text("theirs\n", encoding="utf-8")

    before = tree(work)
    ending = run(root, MANY, Faults(before=meddle), durable=False)
    assert ending.status is PatchStatus.FAILED_PARTIAL
    states = states_in(ending)
    assert states.pop("a.txt") == "other"
    assert set(states.values()) == {"before"}
    after = tree(work)
    assert after.pop("a.txt")[2] == b"theirs\n"
    before.pop("a.txt")
    assert after == before


@pytest.mark.requirement("patch.failed-partial")
def test_a_disk_that_takes_nothing_more_leaves_a_partial_patch_that_says_so(
    work: Path, root: RootDirectory
) -> None:
    faults = Faults()

    def full_after_the_first_swap(_: Call) -> int | None:
        return errno.EIO if faults.called[:-1].count("rename") >= 2 else None

    faults.fails = full_after_the_first_swap
    ending = run(root, MANY, faults)
    assert ending.status is PatchStatus.FAILED_PARTIAL
    assert ending.error is not None
    assert ending.error.details["status"] == "failed_partial"
    assert {"before", "after"} <= set(states_in(ending).values())


@pytest.mark.requirement("paths.racing-rename")
def test_a_directory_that_became_a_link_is_not_followed(
    work: Path, root: RootDirectory, tmp_path: Path
) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()

    def meddle(call: Call) -> None:
        if (call.name, call.target) == ("mkdir", "into"):
            (work / "deep" / "er").rename(tmp_path / "elsewhere")
            (work / "deep" / "er").symlink_to(outside)

    ending = run(root, MANY, Faults(before=meddle))
    assert ending.error is not None
    assert ending.error.code is ErrorCode.SYMLINK_REJECTED
    assert list(outside.iterdir()) == []
    assert (work / "a.txt").read_text(encoding="utf-8") == "old\n"


def test_a_bug_in_the_middle_still_restores_the_files(work: Path, root: RootDirectory) -> None:
    def meddle(call: Call) -> None:
        if (call.name, call.target) == ("unlink", "gone.txt"):
            raise ZeroDivisionError

    before = tree(work)
    with pytest.raises(ZeroDivisionError):
        run(root, MANY, Faults(before=meddle))
    assert tree(work) == before


def test_no_descriptor_stays_open(root: RootDirectory) -> None:
    def open_descriptors() -> int:
        return len(os.listdir("/proc/self/fd"))  # noqa: PTH208 -- a count is enough

    many = patch(*[add(f"n/{number}.txt", "x") for number in range(20)])
    run(root, many, Faults())
    before = open_descriptors()
    run(root, patch(*[update(f"n/{number}.txt", "x", "y") for number in range(20)]), Faults())
    # What an earlier test has dropped may be closed meanwhile.
    _wait_until(lambda: open_descriptors() <= before)


def _wait_until(holds: Callable[[], bool]) -> None:
    for _ in range(10_000):
        if holds():
            return
        os.sched_yield()
    raise AssertionError("it never came to be")
