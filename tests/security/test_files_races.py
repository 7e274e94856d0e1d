"""A command in the workspace swaps a directory for a link to the outside while tools look at it.

The swap is one atomic exchange, as fast as the machine can: whoever looks twice by name loses.
"""

import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Generator
from contextlib import contextmanager
from pathlib import Path

import pytest

from codespace.domain.errors import CodeSpaceError, ErrorCode
from codespace.domain.limits import Limits
from codespace.domain.workspace import Root
from codespace.workspace.directory import open_root, register
from codespace.workspace.files import read
from codespace.workspace.search import find, grep

LIMITS = Limits()
SECRET = "needle: the secret outside"
INSIDE = "needle: inside"
MANY = 2_000
REFUSED = {ErrorCode.SYMLINK_REJECTED, ErrorCode.FILE_OPERATION_FAILED}
"""The second when the link was a directory again at the moment of asking what it is."""

SWAPPER = """
import ctypes, os, select, sys
libc = ctypes.CDLL(None, use_errno=True)
paths = [os.fsencode(path) for path in sys.argv[1:]]
pairs = list(zip(paths[::2], paths[1::2]))
print("ready", flush=True)
exchange = 2
while not select.select([sys.stdin], [], [], 0)[0]:
    for _ in range(50):
        for first, second in pairs:
            if libc.renameat2(-100, first, -100, second, exchange) != 0:
                sys.exit(os.strerror(ctypes.get_errno()))
"""


@pytest.fixture
def top(tmp_path: Path) -> Path:
    outside = tmp_path / "outside"
    top = tmp_path / "root"
    for folder, content in ((outside, SECRET), (top / "swap", INSIDE)):
        for below in (folder, folder / "below"):
            below.mkdir(parents=True)
            (below / "file").write_text(content)
    (outside / "only-outside").write_text(SECRET)
    (top / "link").symlink_to(outside)
    return top


@pytest.fixture
def root(top: Path) -> Root:
    return register(str(top))


@contextmanager
def swapping(*paths: Path) -> Generator[None]:
    with subprocess.Popen(
        [sys.executable, "-c", SWAPPER, *map(str, paths)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        try:
            yield
        finally:
            process.communicate("stop")
        assert process.returncode == 0


def outcomes(call: Callable[[], object], *, count: int = MANY) -> Counter[object]:
    """Count what `call` gave or was refused with, until both happened and `count` is reached."""
    seen: Counter[object] = Counter()
    while seen.total() < count or (len(seen) < 2 and seen.total() < 50 * count):
        try:
            seen[call()] += 1
        except CodeSpaceError as error:
            seen[SECRET if SECRET in str(error.body()) else error.code] += 1
    return seen


def test_a_naive_open_does_read_the_outside(top: Path) -> None:
    # The race is real: this is what the tests below would see without the defence.
    with swapping(top / "swap", top / "link"):
        assert outcomes((top / "swap" / "file").read_text)[SECRET] > 0


@pytest.mark.parametrize("path", ["swap/file", "swap/below/file"])
@pytest.mark.requirement("paths.racing-rename")
def test_read_never_returns_a_byte_of_the_outside(root: Root, top: Path, path: str) -> None:
    with swapping(top / "swap", top / "link"):
        seen = outcomes(lambda: read(root, path, max_bytes=100, limits=LIMITS).content)
    assert set(seen) - REFUSED == {INSIDE}


@pytest.mark.parametrize("path", ["swap/file", "swap/below/file"])
def test_a_look_and_a_whole_read_never_see_the_outside(root: Root, top: Path, path: str) -> None:
    with open_root(root) as directory, swapping(top / "swap", top / "link"):
        looks = outcomes(lambda: directory.look(path).size)
        reads = outcomes(lambda: directory.read_file(path, max_bytes=100))
    assert set(looks) - REFUSED == {len(INSIDE)}
    assert set(reads) - REFUSED == {INSIDE.encode()}


def test_a_look_never_sees_a_name_that_is_only_outside(root: Root, top: Path) -> None:
    with open_root(root) as directory, swapping(top / "swap", top / "link"):
        seen = outcomes(lambda: directory.look("swap/only-outside").kind)
    assert set(seen) - REFUSED == {"absent"}


@pytest.mark.parametrize("create", [False, True])
@pytest.mark.requirement("paths.racing-rename")
def test_a_parent_is_never_outside_and_nothing_is_made_there(
    root: Root, top: Path, *, create: bool
) -> None:
    outside = top.parent / "outside"
    before = sorted(outside.rglob("*"))

    def enter() -> bool:
        with directory.parent("swap/new/file" if create else "swap/file", create=create) as found:
            return Path(f"/proc/self/fd/{found[0]}").readlink().is_relative_to(outside)

    with open_root(root) as directory, swapping(top / "swap", top / "link"):
        seen = outcomes(enter)
    assert set(seen) - REFUSED == {False}
    assert sorted(outside.rglob("*")) == before


@pytest.mark.requirement("paths.racing-rename")
def test_a_file_that_is_swapped_for_a_link_is_never_followed(root: Root, top: Path) -> None:
    (top / "file").write_text(INSIDE)
    (top / "to-secret").symlink_to(top.parent / "outside" / "file")
    with swapping(top / "file", top / "to-secret"):
        seen = outcomes(lambda: read(root, "file", max_bytes=100, limits=LIMITS).content)
    assert set(seen) == {INSIDE, ErrorCode.SYMLINK_REJECTED}


@pytest.fixture
def many(top: Path) -> list[Path]:
    """Pairs of a directory and a link: a walk by names is led out by one of them almost always."""
    pairs: list[Path] = []
    for number in range(10):
        (top / f"swap{number}").mkdir()
        (top / f"swap{number}" / "file").write_text(INSIDE)
        (top / f"link{number}").symlink_to(top.parent / "outside")
        pairs += [top / f"swap{number}", top / f"link{number}"]
    return pairs


@pytest.mark.requirement("paths.racing-rename")
def test_find_never_tells_a_name_of_the_outside(root: Root, many: list[Path]) -> None:
    names: set[str] = set()
    with swapping(*many):
        for _ in range(100):
            names.update(find(root, include_ignored=True, limit=100, limits=LIMITS).paths)
    folders = [path.name for path in many] + ["swap", "swap/below"]
    assert "swap/below/file" in names
    assert names <= {f"{folder}/file" for folder in folders}


@pytest.mark.requirement("paths.racing-rename")
def test_grep_never_tells_a_line_of_the_outside(root: Root, many: list[Path]) -> None:
    found: set[tuple[str, str]] = set()
    with swapping(*many):
        for _ in range(60):
            result = grep(root, pattern="needle", context=2, limit=100, limits=LIMITS)
            found.update((match.path, match.text) for match in result.matches)
    assert found
    assert {text for _, text in found} == {INSIDE}
    assert not [path for path, _ in found if "only-outside" in path]


def test_a_root_that_is_swapped_for_a_link_is_never_followed(root: Root, top: Path) -> None:
    (top / "file").write_text(INSIDE)
    (top.parent / "another").symlink_to(top.parent / "outside")
    with swapping(top, top.parent / "another"):
        seen = outcomes(lambda: read(root, "file", max_bytes=100, limits=LIMITS).content)
        listed = outcomes(lambda: find(root, limit=100, limits=LIMITS).paths, count=40)
    assert set(seen) == {INSIDE, ErrorCode.FILE_OPERATION_FAILED}
    assert not [paths for paths in listed if "only-outside" in str(paths)]
