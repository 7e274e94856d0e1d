import os
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from codespace.domain.workspace import Root
from codespace.workspace.at_hand import SMALL_BYTES, AtHand
from codespace.workspace.directory import register


@pytest.fixture
def top() -> Iterator[Path]:
    # A filesystem in memory, whose names are always in the kernel's cache.
    with tempfile.TemporaryDirectory(dir="/dev/shm") as name:
        yield Path(name)


@pytest.fixture
def root(top: Path) -> Root:
    return register(str(top))


@pytest.fixture
def at_hand(root: Root) -> AtHand:
    known = AtHand()
    known.learn(root)
    return known


def written(path: Path, size: int = 10) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(b"x" * size)
    return path


def descriptors() -> int:
    return len(list(Path("/proc/self/fd").iterdir()))


def test_a_small_file_of_a_local_filesystem_is_at_hand(
    at_hand: AtHand, root: Root, top: Path
) -> None:
    written(top / "folder" / "ünïcode")
    assert at_hand.holds(root, "folder/ünïcode")


def test_a_file_is_small_up_to_the_limit(at_hand: AtHand, root: Root, top: Path) -> None:
    written(top / "most", SMALL_BYTES)
    written(top / "more", SMALL_BYTES + 1)
    assert at_hand.holds(root, "most")
    assert not at_hand.holds(root, "more")


def test_nothing_is_at_hand_of_a_root_that_was_not_learned_of(root: Root, top: Path) -> None:
    written(top / "file")
    assert not AtHand().holds(root, "file")


def test_a_filesystem_that_is_no_local_one_is_never_at_hand() -> None:
    root, known = register("/proc/self"), AtHand()
    known.learn(root)
    assert not known.holds(root, "status")


@pytest.mark.parametrize("path", ["absent", ".", "folder", "link", "linked/file", "fifo"])
def test_what_is_no_regular_file_is_not_at_hand(
    at_hand: AtHand, root: Root, top: Path, path: str
) -> None:
    written(top / "folder" / "file")
    (top / "link").symlink_to("folder/file")
    (top / "linked").symlink_to("folder")
    os.mkfifo(top / "fifo")
    assert not at_hand.holds(root, path)


@pytest.mark.parametrize("path", ["../outside", "{absolute}", "inside/../../outside", "\udcff", ""])
def test_what_leads_out_of_the_root_is_not_at_hand(top: Path, path: str) -> None:
    outside = written(top / "outside")
    written(top / "root" / "inside" / "file")
    root, known = register(str(top / "root")), AtHand()
    known.learn(root)
    assert not known.holds(root, path.format(absolute=outside))


def test_a_root_that_is_gone_is_not_at_hand(at_hand: AtHand, root: Root, top: Path) -> None:
    written(top / "file")
    top.rename(top.with_name("elsewhere"))
    try:
        assert not at_hand.holds(root, "file")
    finally:
        top.with_name("elsewhere").rename(top)


def test_no_descriptor_is_left_open(at_hand: AtHand, root: Root, top: Path) -> None:
    written(top / "file")
    before = descriptors()
    for path in ("file", "absent", "."):
        at_hand.holds(root, path)
    assert descriptors() == before
