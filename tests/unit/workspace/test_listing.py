import itertools
import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from codespace.workspace.deadline import Deadline
from codespace.workspace.directory import RootDirectory, open_root, register
from codespace.workspace.globs import compile_glob
from codespace.workspace.listing import (
    Listing,
    _records,  # pyright: ignore[reportPrivateUsage] -- how chunks are cut is worth its own test
    _Smallest,  # pyright: ignore[reportPrivateUsage] -- as above
    list_files,
    present,
)


@pytest.fixture
def top(tmp_path: Path) -> Path:
    return tmp_path


@pytest.fixture
def directory(top: Path) -> Iterator[RootDirectory]:
    with open_root(register(str(top))) as directory:
        yield directory


def listed(directory: RootDirectory, glob: str, *, capacity: int = 100) -> Listing:
    return list_files(
        directory,
        ("--files",),
        glob=compile_glob(glob, max_chars=100),
        capacity=capacity,
        deadline=Deadline.after(30_000),
    )


def test_the_smallest_paths_are_kept_and_all_are_counted(
    directory: RootDirectory, top: Path
) -> None:
    for number in range(50):
        (top / f"{number:02}").write_text("")
    assert listed(directory, "**", capacity=3) == Listing(["00", "01", "02"], 50, 0)
    assert listed(directory, "1?", capacity=3) == Listing(["10", "11", "12"], 10, 0)


def test_a_literal_directory_keeps_the_search_out_of_its_neighbours(
    directory: RootDirectory, top: Path
) -> None:
    for folder in ("src/a", "src/b", "other/a", "odd [x]/a"):
        (top / folder).mkdir(parents=True)
        (top / folder / "file").write_text("")
    (top / ".gitignore").write_text("b\n")
    assert listed(directory, "src/a/**").paths == ["src/a/file"]
    assert listed(directory, "src/**").paths == ["src/a/file"]
    assert listed(directory, "src/b/**").paths == []
    assert listed(directory, r"odd \[x\]/**").paths == ["odd [x]/a/file"]
    assert listed(directory, "none/**").paths == []


def test_a_file_is_present_only_if_it_is_regular_and_reached_without_a_link(
    directory: RootDirectory, top: Path
) -> None:
    (top / "a").mkdir()
    (top / "a" / "file").write_text("")
    (top / "file").write_text("")
    (top / "link").symlink_to("file")
    (top / "to-a").symlink_to("a")
    os.mkfifo(top / "fifo")
    asked = ["a", "a/file", "a/gone", "fifo", "file", "gone/x", "link", "to-a/file"]
    assert present(directory, asked) == ["a/file", "file"]


@given(batches=st.lists(st.lists(st.text(max_size=3))), capacity=st.integers(1, 5))
def test_batches_give_what_sorting_everything_gives(
    batches: list[list[str]], capacity: int
) -> None:
    smallest = _Smallest(capacity)
    for batch in batches:
        smallest.add(batch)
    everything = sorted(path for batch in batches for path in batch)
    assert smallest.result() == everything[:capacity]
    assert smallest.total == len(everything)


@given(
    records=st.lists(st.binary(max_size=5).map(lambda name: name.replace(b"\0", b"x"))),
    cuts=st.lists(st.integers(0, 60)),
)
def test_records_are_whole_wherever_the_output_is_cut(
    records: list[bytes], cuts: list[int]
) -> None:
    output = b"".join(record + b"\0" for record in records)
    at = [0, *sorted(min(cut, len(output)) for cut in cuts), len(output)]
    chunks = [output[start:end] for start, end in itertools.pairwise(at) if start < end]
    runs = list(_records(chunks))
    assert all(run.endswith(b"\0") for run in runs)
    assert b"".join(runs) == output
