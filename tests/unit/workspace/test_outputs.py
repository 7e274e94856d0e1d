"""Output that is too long to answer with, in files of a workspace that commands write in, too."""

import os
import stat
import time
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from codespace.domain.workspace import Root
from codespace.workspace.directory import register
from codespace.workspace.outputs import KEPT_BYTES, KEPT_FILES, OUTPUT_DIRECTORY, OutputFile

NOTE = "\n[the rest of the output was not kept]\n"


@pytest.fixture
def root(tmp_path: Path) -> Root:
    return register(str(tmp_path))


def write(root: Root, *pieces: str, max_bytes: int = 100, name: str = "proc-1.txt") -> OutputFile:
    file = OutputFile(root, name, max_bytes)
    for piece in pieces:
        file.append(piece)
    file.close()
    return file


def content(root: Root) -> str:
    return Path(root.path, OUTPUT_DIRECTORY, "proc-1.txt").read_text(encoding="utf-8")


def descriptors() -> set[str]:
    return {place.name for place in Path("/proc/self/fd").iterdir()}


def test_pieces_become_one_file_at_the_told_path(root: Root) -> None:
    file = write(root, "one ", "", "twö\n")
    assert file.path == ".codespace/output/proc-1.txt"
    assert content(root) == "one twö\n"


def test_nothing_is_there_before_the_first_piece(root: Root) -> None:
    file = OutputFile(root, "proc-1.txt", 10)
    assert file.path is None
    file.close()
    assert list(Path(root.path).iterdir()) == []


def test_only_its_owner_can_read_it(root: Root) -> None:
    file = write(root, "secret")
    mode = Path(root.path, str(file.path)).stat().st_mode
    assert stat.S_IMODE(mode) == 0o600


def test_the_limit_itself_fits(root: Root) -> None:
    write(root, "12345", "67890", max_bytes=10)
    assert content(root) == "1234567890"


@pytest.mark.parametrize("pieces", [["1234567890", "x"], ["12345678901"], ["12345", "67890xyz"]])
def test_past_the_limit_the_file_says_that_it_ends(root: Root, pieces: list[str]) -> None:
    write(root, *pieces, max_bytes=10)
    assert content(root) == "1234567890" + NOTE


def test_it_says_so_once(root: Root) -> None:
    write(root, "12345678901", "more", "and more", max_bytes=10)
    assert content(root).count(NOTE) == 1
    assert content(root).endswith(NOTE)


def test_a_cut_leaves_text_that_can_be_read(root: Root) -> None:
    write(root, "€€€€", max_bytes=10)
    assert content(root) == "€€€" + NOTE


@given(text=st.text(st.sampled_from("aé€😀\n"), max_size=30), max_bytes=st.integers(0, 40))
def test_a_cut_is_the_longest_beginning_that_fits(
    tmp_path_factory: pytest.TempPathFactory, text: str, max_bytes: int
) -> None:
    root = register(str(tmp_path_factory.mktemp("root")))
    write(root, text, max_bytes=max_bytes)
    expected, cut = text, ""
    while len(expected.encode()) > max_bytes:
        expected, cut = expected[:-1], NOTE
    assert content(root) == expected + cut


def test_git_does_not_see_it(root: Root) -> None:
    write(root, "x")
    assert Path(root.path, ".codespace/.gitignore").read_text(encoding="utf-8") == "*\n"


def test_an_ignore_file_that_stands_there_is_let_be(root: Root) -> None:
    Path(root.path, ".codespace").mkdir()
    ignore = Path(root.path, ".codespace/.gitignore")
    ignore.write_text("mine\n", encoding="utf-8")
    assert write(root, "x").path is not None
    assert ignore.read_text(encoding="utf-8") == "mine\n"


def test_an_ignore_file_that_is_a_link_is_not_followed(root: Root, tmp_path: Path) -> None:
    Path(root.path, ".codespace").mkdir()
    elsewhere = tmp_path / "elsewhere"
    Path(root.path, ".codespace/.gitignore").symlink_to(elsewhere)
    assert write(root, "x").path is not None
    assert not elsewhere.exists()


@pytest.mark.parametrize("where", [".codespace", ".codespace/output"])
def test_a_directory_that_is_a_link_is_not_followed(
    root: Root, tmp_path_factory: pytest.TempPathFactory, where: str
) -> None:
    outside = tmp_path_factory.mktemp("outside")
    place = Path(root.path, where)
    place.parent.mkdir(exist_ok=True)
    place.symlink_to(outside)
    assert write(root, "x").path is None
    assert list(outside.iterdir()) == []


@pytest.mark.parametrize("kind", ["file", "link", "directory"])
def test_what_stands_at_its_name_is_neither_overwritten_nor_followed(
    root: Root, tmp_path_factory: pytest.TempPathFactory, kind: str
) -> None:
    outside = tmp_path_factory.mktemp("outside") / "target"
    place = Path(root.path, OUTPUT_DIRECTORY, "proc-1.txt")
    place.parent.mkdir(parents=True)
    if kind == "file":
        place.write_text("mine", encoding="utf-8")
    elif kind == "link":
        place.symlink_to(outside)
    else:
        place.mkdir()
    before = place.lstat()
    assert write(root, "x").path is None
    assert place.lstat() == before
    assert not outside.exists()


def test_a_file_in_the_way_costs_only_the_output(root: Root) -> None:
    Path(root.path, ".codespace").write_text("in the way", encoding="utf-8")
    assert write(root, "x", "y").path is None


def test_a_root_that_was_replaced_gets_nothing(root: Root, tmp_path: Path) -> None:
    tmp_path.rename(f"{tmp_path}-gone")
    tmp_path.mkdir()
    assert write(root, "x").path is None
    assert list(tmp_path.iterdir()) == []


def test_a_device_that_is_full_makes_the_path_untold(
    root: Root, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = OutputFile(root, "proc-1.txt", 100)
    file.append("begun")
    with monkeypatch.context() as patched:
        patched.setattr(os, "write", _full)
        file.append("more")
    assert file.path is None
    file.append("still more")
    assert list(Path(root.path, OUTPUT_DIRECTORY).iterdir()) == []


def test_what_took_the_place_of_a_file_that_failed_is_let_be(
    root: Root, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = OutputFile(root, "proc-1.txt", 100)
    file.append("begun")
    place = Path(root.path, OUTPUT_DIRECTORY, "proc-1.txt")
    place.rename(place.with_name("mine"))
    place.write_text("theirs", encoding="utf-8")
    with monkeypatch.context() as patched:
        patched.setattr(os, "write", _full)
        file.append("more")
    assert content(root) == "theirs"


def _full(descriptor: int, data: bytes) -> int:
    raise OSError(28, "No space left on device")


def test_a_short_write_is_gone_on_with(root: Root, monkeypatch: pytest.MonkeyPatch) -> None:
    plainly = os.write

    def three_bytes(descriptor: int, data: bytes) -> int:
        return plainly(descriptor, data[:3])

    with monkeypatch.context() as patched:
        patched.setattr(os, "write", three_bytes)
        write(root, "1234567890")
    assert content(root) == "1234567890"


def test_no_descriptor_is_left_open_however_it_ends(root: Root) -> None:
    before = descriptors()
    write(root, "x")
    write(root, "the name is taken now")
    cut = OutputFile(root, "proc-2.txt", 1)
    cut.append("too long")
    assert descriptors() == before


def test_closing_twice_is_fine_and_nothing_is_written_afterwards(root: Root) -> None:
    file = write(root, "x")
    file.close()
    file.append("late")
    assert content(root) == "x"
    assert file.path is not None


def lay_out(root: Root, *names: str, days: float = 0, size: int = 0) -> None:
    """Leave files behind as earlier commands do, the first one the newest."""
    for seconds, name in enumerate(names):
        place = Path(root.path, OUTPUT_DIRECTORY, name)
        place.parent.mkdir(parents=True, exist_ok=True)
        with place.open("wb") as file:
            file.truncate(size)
        changed = time.time() - days * 24 * 60 * 60 - seconds
        os.utime(place, (changed, changed))


def kept(root: Root) -> list[str]:
    return sorted(path.name for path in Path(root.path, OUTPUT_DIRECTORY).iterdir())


def test_a_new_file_takes_the_place_of_those_of_last_week(root: Root) -> None:
    lay_out(root, "proc-old.txt", "script-old.txt", days=7.01)
    lay_out(root, "proc-new.txt", days=6.99)
    write(root, "x")
    assert kept(root) == ["proc-1.txt", "proc-new.txt"]


def test_the_newest_are_kept_up_to_a_number(root: Root) -> None:
    names = [f"proc-{number:03}.txt" for number in range(KEPT_FILES + 3)]
    lay_out(root, *names)
    write(root, "x")
    assert kept(root) == sorted([*names[: KEPT_FILES - 1], "proc-1.txt"])


def test_the_newest_are_kept_up_to_a_size(root: Root) -> None:
    lay_out(root, *(f"proc-{letter}.txt" for letter in "abc"), size=KEPT_BYTES // 2)
    write(root, "x")
    assert kept(root) == ["proc-1.txt", "proc-a.txt", "proc-b.txt"]


def test_a_file_that_is_being_written_is_kept_however_old(root: Root) -> None:
    file = OutputFile(root, "proc-live.txt", 100)
    file.append("begun")
    os.utime(Path(root.path, OUTPUT_DIRECTORY, "proc-live.txt"), (0, 0))
    write(root, "x")
    assert kept(root) == ["proc-1.txt", "proc-live.txt"]
    file.close()
    write(root, "x", name="proc-2.txt")
    assert kept(root) == ["proc-1.txt", "proc-2.txt"]


def test_what_is_not_ours_is_kept(root: Root, tmp_path_factory: pytest.TempPathFactory) -> None:
    outside = tmp_path_factory.mktemp("outside") / "proc-x.txt"
    outside.touch()
    os.utime(outside, (0, 0))
    lay_out(root, "notes.txt", "proc-.md", "proc-a.txt.bak", days=30)
    there = Path(root.path, OUTPUT_DIRECTORY)
    (there / "proc-link.txt").symlink_to(outside)
    (there / "proc-folder.txt").mkdir()
    os.mkfifo(there / "proc-fifo.txt")
    for name in ("proc-link.txt", "proc-folder.txt", "proc-fifo.txt"):
        os.utime(there / name, (0, 0), follow_symlinks=False)
    before = kept(root)
    write(root, "x")
    assert kept(root) == sorted([*before, "proc-1.txt"])
    assert outside.exists()
