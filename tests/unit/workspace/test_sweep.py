"""One pass over names: nothing is told that is not in the file, and never too much is held."""

import json
import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from codespace.domain.limits import Limits
from codespace.workspace import search, sweep
from codespace.workspace.deadline import Deadline
from codespace.workspace.directory import RootDirectory, open_root, register
from codespace.workspace.globs import Glob, compile_glob
from codespace.workspace.hits import Match
from codespace.workspace.search import (
    _file_by_file,  # pyright: ignore[reportPrivateUsage] -- the slow way is what this is held to
)
from codespace.workspace.sweep import Query, Sweep

LIMITS = Limits()
EVERYTHING = compile_glob("**/*", max_chars=100)


@pytest.fixture
def top(tmp_path: Path) -> Path:
    return tmp_path


@pytest.fixture
def directory(top: Path) -> Iterator[RootDirectory]:
    with open_root(register(str(top))) as directory:
        yield directory


def query(pattern: str = "needle", *, context: int = 0, limit: int = 10) -> Query:
    return Query((f"--regexp={pattern}",), context, limit, 500)


def swept(directory: RootDirectory, wanted: Query) -> Sweep | None:
    return sweep.sweep(directory, wanted, glob=EVERYTHING, deadline=Deadline.after(30_000))


def said(path: str, text: str, *, offset: int = 0) -> bytes:
    """Return what rg says of a file with one match."""
    data = {
        "path": {"text": f"./{path}"},
        "lines": {"text": text},
        "line_number": 1,
        "absolute_offset": offset,
        "submatches": [{"match": {"text": "x"}, "start": 0, "end": 1}],
    }
    end = {"path": {"text": f"./{path}"}, "binary_offset": None}
    records = ({"type": "match", "data": data}, {"type": "end", "data": end})
    return b"".join(
        json.dumps(record, separators=(",", ":")).encode() + b"\n" for record in records
    )


@dataclass(frozen=True, slots=True)
class Liar:
    """Stands in for rg, of which nothing is to be believed."""

    chunks: list[bytes]

    def searched(
        self,
        directory: RootDirectory,
        question: Sequence[str],
        take: Callable[[Iterable[bytes]], object],
        *,
        glob: Glob,
        deadline: Deadline,
    ) -> object:
        return take(self.chunks)


@pytest.mark.parametrize(
    ("text", "offset", "told"),
    [
        ("needle\n", 7, True),
        ("needle\n", 0, False),
        ("secret\n", 0, False),
        ("needle\nand more", 7, False),
        ('needle \\ "\n', 7, False),
    ],
)
def test_only_what_stands_in_the_file_is_told(
    directory: RootDirectory,
    top: Path,
    monkeypatch: pytest.MonkeyPatch,
    text: str,
    offset: int,
    told: bool,  # noqa: FBT001 -- a column of the table above
) -> None:
    (top / "file").write_text("before\nneedle\n", encoding="utf-8")
    monkeypatch.setattr(sweep, "searched", Liar([said("file", text, offset=offset)]).searched)
    found = swept(directory, query())
    assert found is not None
    assert (len(found.matches), found.doubtful) == ((1, []) if told else (0, ["file"]))


def test_what_is_said_of_a_link_or_of_no_file_is_not_told(
    directory: RootDirectory, top: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (top / "file").write_text("needle\n", encoding="utf-8")
    (top / "link").symlink_to("file")
    (top / "folder").symlink_to(".")
    os.mkfifo(top / "fifo")
    chunks = [said(path, "needle\n") for path in ("link", "folder/file", "fifo", "none")]
    monkeypatch.setattr(sweep, "searched", Liar(chunks).searched)
    assert swept(directory, query()) == Sweep([], [], 0, more=False)


def test_a_line_that_is_too_long_to_hold_is_left_to_the_other_way(
    directory: RootDirectory, top: Path
) -> None:
    (top / "file").write_text(f"needle {'x' * 2_000_000}\n", encoding="utf-8")
    assert swept(directory, query()) is None


def test_many_bytes_are_left_to_the_other_way_at_first_and_held_in_part_later(
    directory: RootDirectory, top: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number in range(40):
        (top / f"{number:02}").write_text(f"needle {'x' * 50_000}\n" * 2, encoding="utf-8")
    assert swept(directory, query(limit=5)) is None
    monkeypatch.setattr(sweep, "_EARLY_SECONDS", -1.0)
    found = swept(directory, query(limit=5))
    assert found is not None
    assert [(match.path, match.line) for match in found.matches] == [
        (f"{number:02}", line) for number in range(3) for line in (1, 2)
    ]
    assert found.more
    assert swept(directory, query(limit=30)) is None, "not even the first of them can be held"


def test_a_file_with_a_mark_is_searched_again(directory: RootDirectory, top: Path) -> None:
    (top / "marked").write_bytes("needle\n".encode("utf-16"))
    assert swept(directory, query()) == Sweep([], ["marked"], 0, more=False)
    found = search.grep(register(str(top)), pattern="needle", limit=10, limits=LIMITS)
    assert found.matches == (Match("marked", 1, 1, "needle"),)


LINE = st.text(st.sampled_from(["x", "é", '"', "\\", "\t", "\r", " ", "\ud800"]), max_size=5)
CONTENT = st.lists(LINE.map(lambda line: line.encode("utf-8", "surrogatepass")), max_size=6)
FILES = st.dictionaries(st.sampled_from(["a", "a.b", "b", 'q"', "é\\"]), CONTENT, max_size=4)


@settings(max_examples=40)
@given(
    files=FILES,
    ending=st.sampled_from([b"\n", b"\r\n"]),
    context=st.integers(0, 2),
    limit=st.integers(1, 6),
)
def test_both_ways_tell_the_same(
    tmp_path_factory: pytest.TempPathFactory,
    files: dict[str, list[bytes]],
    ending: bytes,
    context: int,
    limit: int,
) -> None:
    top = tmp_path_factory.mktemp("both")
    for name, content in files.items():
        (top / name).write_bytes(ending.join(content))
    root = register(str(top))
    found = search.grep(root, pattern="x", context=context, limit=limit, limits=LIMITS)
    with open_root(root) as directory:
        wanted = query("x", context=context, limit=limit)
        assert found == _file_by_file(directory, wanted, EVERYTHING, Deadline.after(30_000))
