import os
import resource
import shutil
import socket
import subprocess
import threading
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from codespace.domain.errors import CodeSpaceError, ErrorCode
from codespace.domain.limits import Limits
from codespace.domain.workspace import Root
from codespace.workspace.directory import register
from codespace.workspace.hits import Match
from codespace.workspace.search import FoundPaths, GrepResult, find, grep

LIMITS = Limits()


@pytest.fixture
def top(tmp_path: Path) -> Path:
    top = tmp_path / "root"
    top.mkdir()
    return top


@pytest.fixture
def root(top: Path) -> Root:
    return register(str(top))


def write(top: Path, *paths: str, content: str = "") -> None:
    for path in paths:
        (top / path).parent.mkdir(parents=True, exist_ok=True)
        (top / path).write_text(content, encoding="utf-8")


def paths(root: Root, glob: str = "**/*", *, include_ignored: bool = False) -> list[str]:
    found = find(root, glob=glob, include_ignored=include_ignored, limit=1_000, limits=LIMITS)
    assert not found.truncated
    return list(found.paths)


def lines(root: Root, pattern: str, *, glob: str = "**/*", fixed: bool = False) -> list[str]:
    found = grep(root, pattern=pattern, glob=glob, fixed=fixed, limit=100, limits=LIMITS)
    return [f"{match.path}:{match.line}:{match.column}:{match.text}" for match in found.matches]


def test_find_lists_regular_files_sorted_with_dot_files(root: Root, top: Path) -> None:
    write(top, "b", "a/z", "a/.hidden", ".dot/x", "a-", "é", "Z", "a/b/c")
    assert paths(root) == [".dot/x", "Z", "a-", "a/.hidden", "a/b/c", "a/z", "b", "é"]


def test_find_in_an_empty_root_finds_nothing(root: Root) -> None:
    assert find(root, limit=1, limits=LIMITS) == FoundPaths((), truncated=False)


def test_find_lists_neither_links_nor_special_files_nor_directories(root: Root, top: Path) -> None:
    write(top, "folder/file")
    (top / "to-file").symlink_to("folder/file")
    (top / "to-folder").symlink_to("folder")
    (top / "dangling").symlink_to("nowhere")
    os.mkfifo(top / "fifo")
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(top / "socket"))
        assert paths(root) == ["folder/file"]
        assert paths(root, include_ignored=True) == ["folder/file"]


def test_find_skips_git_at_any_depth_also_as_a_file(root: Root, top: Path) -> None:
    write(top, ".git/config", "sub/.git/config", "work/.git", ".gitignore", "x.git/y", "a.git")
    expected = [".gitignore", "a.git", "x.git/y"]
    assert paths(root) == expected
    assert paths(root, include_ignored=True) == expected
    assert paths(root, "**/.git/**", include_ignored=True) == []
    assert paths(root, "work/.git", include_ignored=True) == []


@pytest.mark.parametrize(
    ("glob", "expected"),
    [
        ("*.txt", ["a.txt"]),
        ("**/*.txt", ["a.txt", "src/b.txt", "src/deep/c.txt"]),
        ("src/*", ["src/b.txt", "src/x.py"]),
        ("src/**", ["src/b.txt", "src/deep/c.txt", "src/deep/y.ts", "src/x.py"]),
        ("**/deep/*", ["src/deep/c.txt", "src/deep/y.ts"]),
        ("src/**/*.{py,ts}", ["src/deep/y.ts", "src/x.py"]),
        ("{a,src/b}.txt", ["a.txt", "src/b.txt"]),
        ("**/[a-b].???", ["a.txt", "src/b.txt"]),
        ("./src//x.py", ["src/x.py"]),
        ("src", []),
        ("x.py", []),
    ],
)
def test_find_matches_whole_relative_paths(
    root: Root, top: Path, glob: str, expected: list[str]
) -> None:
    write(top, "a.txt", "src/b.txt", "src/deep/c.txt", "src/x.py", "src/deep/y.ts", "other/z.md")
    assert paths(root, glob) == expected


def test_find_honours_gitignore_without_a_repository(root: Root, top: Path) -> None:
    write(top, "keep", "a.log", "sub/b.log", "sub/important.log", "out/x", "sub/only-here")
    write(top, ".gitignore", content="*.log\n/out/\n")
    write(top, "sub/.gitignore", content="!important.log\nonly-here\n")
    visible = [".gitignore", "keep", "sub/.gitignore", "sub/important.log"]
    assert paths(root) == visible
    assert paths(root, include_ignored=True) == sorted(
        [*visible, "a.log", "sub/b.log", "out/x", "sub/only-here"]
    )


@pytest.mark.parametrize("glob", ["**/*.log", "*.log", "a.log", "out/**", "out/x", "{a.log,out/x}"])
def test_a_glob_that_names_ignored_files_does_not_overrule_gitignore(
    root: Root, top: Path, glob: str
) -> None:
    write(top, "a.log", "out/x")
    write(top, ".gitignore", content="*.log\n/out/\n")
    assert paths(root, glob) == []


def test_only_ignore_files_of_git_below_the_root_count(root: Root, top: Path) -> None:
    write(top.parent, ".gitignore", ".ignore", ".rgignore", content="*\n")
    write(top, ".ignore", ".rgignore", content="*\n")
    write(top, "file")
    assert paths(root) == [".ignore", ".rgignore", "file"]


def test_the_exclude_file_of_the_repository_counts_and_gitignore_overrules_it(
    root: Root, top: Path
) -> None:
    write(top, "a.tmp", "b.tmp", "sub/c.tmp", "only", "sub/only")
    write(top, ".git/info/exclude", content="*.tmp\n/only\n")
    write(top, ".gitignore", content="!b.tmp\n")
    assert paths(root) == [".gitignore", "b.tmp", "sub/only"]


def test_the_exclude_file_is_not_read_through_a_link_or_a_git_file(
    root: Root, top: Path, tmp_path: Path
) -> None:
    write(tmp_path, "outside/info/exclude", content="*\n")
    write(top, "file")
    (top / ".git").symlink_to(tmp_path / "outside")
    assert paths(root) == ["file"]
    (top / ".git").unlink()
    write(top, ".git", content=f"gitdir: {tmp_path}/outside\n")
    assert paths(root) == ["file"]


def test_find_gives_the_first_paths_and_says_that_there_are_more(root: Root, top: Path) -> None:
    names = [f"{number % 7}/{number:03}" for number in range(200)]
    write(top, *names)
    found = find(root, limit=50, limits=LIMITS)
    assert found == FoundPaths(tuple(sorted(names)[:50]), truncated=True)
    assert not find(root, limit=200, limits=LIMITS).truncated


def test_names_that_are_not_utf8_are_skipped_and_counted(root: Root, top: Path) -> None:
    write(top, "good", "ü", content="text")
    for name in (b"bad\xff", b"\xe2\x82"):
        descriptor = os.open(os.fsencode(top) + b"/" + name, os.O_CREAT | os.O_WRONLY, 0o644)
        os.write(descriptor, b"text")
        os.close(descriptor)
    found = find(root, limit=10, limits=LIMITS)
    assert (found.paths, found.skipped) == (("good", "ü"), 2)
    matches = grep(root, pattern="text", limit=10, limits=LIMITS)
    assert [match.path for match in matches.matches] == ["good", "ü"]
    assert matches.skipped == 2


def test_odd_names_are_found_as_they_are(root: Root, top: Path) -> None:
    names = ["new\nline", "a\\b", " space ", "-dash", "c:d", "~", "100%", "x" * 255, "dots...", "*"]
    write(top, *names, content="needle")
    assert paths(root) == sorted(names)
    assert [line.partition(":1:1:")[0] for line in lines(root, "needle")] == sorted(names)


@pytest.mark.parametrize(
    ("glob", "code"),
    [
        ("", ErrorCode.INVALID_ARGUMENT),
        ("[a", ErrorCode.INVALID_ARGUMENT),
        ("{a", ErrorCode.INVALID_ARGUMENT),
        ("/etc/*", ErrorCode.PATH_ESCAPE),
        ("../*", ErrorCode.PATH_ESCAPE),
        ("a" * 5_000, ErrorCode.LIMIT_EXCEEDED),
    ],
)
def test_a_bad_glob_is_refused(root: Root, glob: str, code: ErrorCode) -> None:
    with pytest.raises(CodeSpaceError) as caught:
        find(root, glob=glob, limit=1, limits=LIMITS)
    assert caught.value.code is code
    with pytest.raises(CodeSpaceError) as caught:
        grep(root, pattern="x", glob=glob, limit=1, limits=LIMITS)
    assert caught.value.code is code


@pytest.mark.parametrize(
    ("limit", "code"), [(0, ErrorCode.INVALID_ARGUMENT), (10_001, ErrorCode.LIMIT_EXCEEDED)]
)
def test_a_limit_out_of_range_is_refused(root: Root, limit: int, code: ErrorCode) -> None:
    with pytest.raises(CodeSpaceError) as caught:
        find(root, limit=limit, limits=LIMITS)
    assert caught.value.code is code


def test_grep_tells_path_line_and_column_in_order(root: Root, top: Path) -> None:
    write(top, "b", content="x\nsay needle, needle\n")
    write(top, "a/z", content="needle\r\nno\nüü needle")
    assert lines(root, "needle") == [
        "a/z:1:1:needle",
        "a/z:3:4:üü needle",
        "b:2:5:say needle, needle",
    ]


def test_grep_gives_context_only_when_asked(root: Root, top: Path) -> None:
    write(top, "file", content="1\n2\nhit 3\nhit 4\n5\n6\n7\n")
    found = grep(root, pattern="hit", context=2, limit=10, limits=LIMITS)
    assert found == GrepResult(
        (
            Match("file", 3, 1, "hit 3", ("1", "2"), ("hit 4", "5")),
            Match("file", 4, 1, "hit 4", ("2", "hit 3"), ("5", "6")),
        ),
        truncated=False,
    )
    plain = grep(root, pattern="3", limit=10, limits=LIMITS)
    assert plain.matches == (Match("file", 3, 5, "hit 3"),)


def test_grep_ignores_case_and_takes_text_literally_when_asked(root: Root, top: Path) -> None:
    write(top, "file", content="A.b\na.B\naxb\n")
    assert lines(root, "a.b") == ["file:3:1:axb"]
    assert lines(root, "a.B", fixed=True) == ["file:2:1:a.B"]
    found = grep(root, pattern="a.b", case_sensitive=False, limit=10, limits=LIMITS)
    assert [match.line for match in found.matches] == [1, 2, 3]


@pytest.mark.parametrize(
    ("pattern", "expected"),
    [
        ("foo$", ["crlf:1:1", "lf:1:1", "mixed:1:1", "mixed:2:1"]),
        ("^foo$", ["crlf:1:1", "lf:1:1", "mixed:1:1", "mixed:2:1"]),
        ("fo.$", ["crlf:1:1", "lf:1:1", "mixed:1:1", "mixed:2:1"]),
        ("^$", ["crlf:2:1", "lf:2:1", "mixed:3:1", "mixed:4:1"]),
        (r"o\r$", ["crlf:1:3", "mixed:1:3"]),
        (r"o\x0D$", ["crlf:1:3", "mixed:1:3"]),
        ("o\r$", ["crlf:1:3", "mixed:1:3"]),
        (r"o\r", ["crlf:1:3", "mixed:1:3"]),
        (r"o\s", ["crlf:1:3", "mixed:1:3"]),
        (r"\\r$|fo{2}$", ["crlf:1:1", "lf:1:1", "mixed:1:1", "mixed:2:1"]),
    ],
)
def test_the_end_of_a_line_is_the_same_in_files_of_either_kind(
    root: Root, top: Path, pattern: str, expected: list[str]
) -> None:
    for name, content in (
        ("lf", b"foo\n\nbar"),
        ("crlf", b"foo\r\n\r\nbar\r\n"),
        ("mixed", b"foo\r\nfoo\n\n\r\nbar"),
    ):
        (top / name).write_bytes(content)
    found = lines(root, pattern)
    assert [line.rpartition(":")[0] for line in found] == expected
    assert {line.rpartition(":")[2] for line in found} <= {"foo", ""}


def test_a_line_of_crlf_is_told_without_its_end_and_so_is_its_context(
    root: Root, top: Path
) -> None:
    (top / "file").write_bytes(b"one\r\ntwo\r\nthree")
    found = grep(root, pattern="two$", context=1, limit=10, limits=LIMITS)
    assert found.matches == (Match("file", 2, 1, "two", ("one",), ("three",)),)


@pytest.mark.parametrize("pattern", ["-e", "--files", "-", "--pre=/bin/true", "-f/etc/passwd"])
def test_a_pattern_that_looks_like_an_option_is_a_pattern(
    root: Root, top: Path, pattern: str
) -> None:
    write(top, "file", content=f"x {pattern} y\n")
    assert lines(root, pattern) == [f"file:1:3:x {pattern} y"]


def test_grep_honours_ignore_rules_and_skips_git_like_find(root: Root, top: Path) -> None:
    write(top, ".git/config", "a.log", "sub/x.log", "keep", ".hidden", content="needle\n")
    write(top, ".gitignore", content="*.log\n")
    assert lines(root, "needle") == [".hidden:1:1:needle", "keep:1:1:needle"]


def test_grep_takes_the_same_globs_as_find(root: Root, top: Path) -> None:
    write(top, "a.py", "src/b.py", "src/c.ts", "src/deep/d.py", content="needle\n")
    assert lines(root, "needle", glob="*.py") == ["a.py:1:1:needle"]
    assert lines(root, "needle", glob="src/**/*.{py,ts}") == [
        "src/b.py:1:1:needle",
        "src/c.ts:1:1:needle",
        "src/deep/d.py:1:1:needle",
    ]


def test_grep_never_follows_a_link(root: Root, top: Path, tmp_path: Path) -> None:
    write(tmp_path, "outside/file", content="needle\n")
    (top / "folder").symlink_to(tmp_path / "outside")
    (top / "file").symlink_to(tmp_path / "outside" / "file")
    assert lines(root, "needle") == []


def test_binary_files_are_skipped(root: Root, top: Path) -> None:
    (top / "early").write_bytes(b"needle\0\nneedle\n")
    (top / "late").write_bytes(b"needle\n" + b"x" * 79 * 10_000 + b"\nneedle\0\n")
    write(top, "text", content="needle\n")
    assert lines(root, "needle") == ["text:1:1:needle"]


def test_bytes_that_are_not_utf8_are_shown_as_replacement_characters(root: Root, top: Path) -> None:
    (top / "file").write_bytes(b"\xff\xfe needle \xe2\x82\n\xc3\xa9\xff needle\n")
    (top / "latin").write_bytes(b"caf\xe9 needle\n")
    assert lines(root, "needle")[-1] == "latin:1:6:caf\ufffd needle"


def test_files_with_a_byte_order_mark_are_searched_as_text(root: Root, top: Path) -> None:
    (top / "utf16").write_bytes("first\nmy needle\n".encode("utf-16"))
    (top / "utf8").write_bytes("needle\n".encode("utf-8-sig"))
    assert lines(root, "^.*needle") == ["utf16:2:1:my needle", "utf8:1:1:needle"]


def test_a_long_line_is_cut_with_a_mark(root: Root, top: Path) -> None:
    write(top, "file", content="é" * 600 + "needle\n" + "y" * 500 + "\n")
    found = grep(root, pattern="needle|y", limit=10, limits=LIMITS)
    assert found.matches == (
        Match("file", 1, 601, "é" * 500 + "…"),
        Match("file", 2, 1, "y" * 500),
    )


def test_a_line_of_many_megabytes_is_told_like_any_other(root: Root, top: Path) -> None:
    long = "é" * 2_000_000 + "needle" + "z" * 2_000_000
    write(top, "file", content=f"before\n{long}\nafter needle\n")
    (top / "marked").write_bytes(b"\xef\xbb\xbf" + f"{long}\n".encode())
    found = grep(root, pattern="needle", context=1, limit=10, limits=LIMITS)
    cut = "é" * 500 + "…"
    assert found.matches == (
        Match("file", 2, 2_000_001, cut, ("before",), ("after needle",)),
        Match("file", 3, 7, "after needle", (cut,), ()),
        Match("marked", 1, 2_000_001, cut, (), ()),
    )


def test_grep_gives_the_first_matches_and_says_that_there_are_more(root: Root, top: Path) -> None:
    for number in range(30):
        write(top, f"{number:02}", content="needle\n" * (number % 4))
    everything = [
        (f"{number:02}", line) for number in range(30) for line in range(1, number % 4 + 1)
    ]
    for limit in (1, 7, 40, len(everything)):
        found = grep(root, pattern="needle", limit=limit, limits=LIMITS)
        assert [(match.path, match.line) for match in found.matches] == everything[:limit]
        assert found.truncated == (limit < len(everything))


def test_more_matching_files_than_are_kept_are_still_told_in_order(root: Root, top: Path) -> None:
    names = [f"{number:04}" for number in range(1_300)]
    write(top, *names, content="needle\n")
    found = grep(root, pattern="needle", limit=1, limits=LIMITS)
    assert (found.matches, found.truncated) == ((Match("0000", 1, 1, "needle"),), True)
    found = grep(root, pattern="needle", limit=600, limits=LIMITS)
    assert [match.path for match in found.matches] == names[:600]


@pytest.mark.parametrize(
    ("pattern", "reason"),
    [
        ("(", "unclosed group"),
        ("(?=x)", "look-around"),
        (r"a\nb", "not allowed"),
        ("", "is empty"),
        ("a\nb", "line break"),
        ("a\0", "NUL"),
        ("\ud800", "not valid Unicode"),
        ("[z-a]", "invalid character class range"),
    ],
)
def test_a_bad_pattern_is_refused_with_the_reason_in_one_line(
    root: Root, top: Path, pattern: str, reason: str
) -> None:
    write(top, "file", content="x\n")
    with pytest.raises(CodeSpaceError) as caught:
        grep(root, pattern=pattern, limit=10, limits=LIMITS)
    assert caught.value.code is ErrorCode.INVALID_ARGUMENT
    assert reason in caught.value.message
    assert "\n" not in caught.value.message


@pytest.mark.parametrize(
    ("limit", "context", "pattern", "code"),
    [
        (0, 0, "x", ErrorCode.INVALID_ARGUMENT),
        (2_001, 0, "x", ErrorCode.LIMIT_EXCEEDED),
        (1, 11, "x", ErrorCode.LIMIT_EXCEEDED),
        (1, -1, "x", ErrorCode.INVALID_ARGUMENT),
        (1, 0, "x" * 4_097, ErrorCode.LIMIT_EXCEEDED),
    ],
)
def test_grep_refuses_what_is_out_of_range(
    root: Root, limit: int, context: int, pattern: str, code: ErrorCode
) -> None:
    with pytest.raises(CodeSpaceError) as caught:
        grep(root, pattern=pattern, context=context, limit=limit, limits=LIMITS)
    assert caught.value.code is code


def test_a_search_that_takes_too_long_is_a_timeout(root: Root, top: Path) -> None:
    write(top, "file", content="x\n")
    limits = Limits(grep_timeout_ms=0)
    for call in (
        lambda: grep(root, pattern="x", limit=1, limits=limits),
        lambda: find(root, limit=1, limits=limits),
    ):
        with pytest.raises(CodeSpaceError) as caught:
            call()
        assert caught.value.code is ErrorCode.TIMEOUT


def test_a_shortage_of_descriptors_is_told_and_not_taken_for_no_match(
    root: Root, top: Path
) -> None:
    for number in range(60):
        write(top, f"{number:02}", content="needle\n")
    write(top, "59", content=f"needle {'x' * 2_000_000}\n")  # too much for a single pass
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    used = {int(entry.name) for entry in Path("/proc/self/fd").iterdir()}
    twenty_free = [number for number in range(len(used) + 30) if number not in used][20]
    resource.setrlimit(resource.RLIMIT_NOFILE, (twenty_free, hard))
    try:
        with pytest.raises(CodeSpaceError) as caught:
            grep(root, pattern="needle", limit=60, limits=LIMITS)
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    assert caught.value.details["errno"] == "EMFILE"


NAMES = ("a", "b", "build", "x.log", "y.txt", ".env", "sp ace", "k#", "!n")
RULES = (
    "*.log", "!x.log", "build", "build/", "/build", "a/", "/a", "a/b", "**/b", "a/**", "a/**/x.log",
    "!a/", "*", "!*/", "!y.txt", "b/*", ".env", "\\!n", "k\\#", "#k", "sp\\ ace", "sp ace  ",
    "[ab]", "[!a]", "?", "x.lo?", "/*", "!/b", "**/build/**", "", "  ", "a*b", "**",
)  # fmt: skip
PATH = st.lists(st.sampled_from(NAMES), min_size=1, max_size=4).map("/".join)
TREE = st.lists(PATH, min_size=1, max_size=12)
IGNORES = st.dictionaries(
    st.one_of(st.just(""), PATH.map(lambda path: f"{path}/")),
    st.lists(st.sampled_from(RULES), min_size=1, max_size=5),
    max_size=3,
)


@settings(max_examples=30)
@given(tree=TREE, ignores=IGNORES, exclude=st.lists(st.sampled_from(RULES), max_size=3))
def test_find_agrees_with_git(
    tmp_path_factory: pytest.TempPathFactory,
    tree: list[str],
    ignores: dict[str, list[str]],
    exclude: list[str],
) -> None:
    top = tmp_path_factory.getbasetemp() / "ignored"
    expected = _as_git_lists(top, tree, ignores, exclude)
    assert paths(register(str(top))) == expected


@settings(max_examples=10)
@given(tree=TREE, ignores=IGNORES, exclude=st.lists(st.sampled_from(RULES), max_size=3))
def test_find_agrees_with_git_also_beside_an_ignore_file_that_cannot_be_opened(
    tmp_path_factory: pytest.TempPathFactory,
    tree: list[str],
    ignores: dict[str, list[str]],
    exclude: list[str],
) -> None:
    top = tmp_path_factory.getbasetemp() / "obstructed"
    expected = _as_git_lists(top, tree, ignores, exclude)
    (top / "zz").mkdir()
    os.mkfifo(top / "zz" / ".gitignore")
    assert paths(register(str(top))) == expected


@pytest.mark.parametrize("where", ["", "deep/er/"])
@pytest.mark.parametrize("kind", ["fifo", "huge", "link to a device", "link to a fifo"])
def test_an_ignore_file_that_cannot_be_opened_rules_nothing_and_the_others_do(
    root: Root, top: Path, kind: str, where: str
) -> None:
    write(top, "a.log", "keep", "deep/er/b.log", "deep/er/keep", content="needle\n")
    write(top, "deep/.gitignore", content="*.log\n")
    write(top, ".git/info/exclude", content="unwanted\n")
    write(top, "unwanted", content="needle\n")
    place = top / f"{where}.gitignore"
    if kind == "fifo":
        os.mkfifo(place)
    elif kind == "huge":
        with place.open("wb") as huge:
            huge.truncate(1024**4)
    elif kind == "link to a device":
        place.symlink_to("/dev/zero")
    else:
        os.mkfifo(top / "deep" / "fifo")
        place.symlink_to(top / "deep" / "fifo")
    ignores = [".gitignore"] if kind == "huge" and not where else []
    deep = ["deep/er/.gitignore"] if kind == "huge" and where else []
    wanted = sorted([*ignores, *deep, "a.log", "deep/.gitignore", "deep/er/keep", "keep"])
    assert paths(root) == wanted
    assert lines(root, "needle", glob="**/[ak]*") == [
        "a.log:1:1:needle",
        "deep/er/keep:1:1:needle",
        "keep:1:1:needle",
    ]


def test_a_fifo_above_the_root_holds_nothing_up(top: Path, root: Root) -> None:
    os.mkfifo(top.parent / ".gitignore")
    write(top, "a.log", "keep")
    write(top, ".gitignore", content="*.log\n")
    assert paths(root) == [".gitignore", "keep"]


def test_a_search_that_nobody_waits_for_ends(root: Root, top: Path) -> None:
    write(top, "file", content="x\n")
    abandoned = threading.Event()
    abandoned.set()
    for call in (
        lambda: grep(root, pattern="x", limit=1, limits=LIMITS, abandoned=abandoned),
        lambda: find(root, limit=1, limits=LIMITS, abandoned=abandoned),
    ):
        with pytest.raises(CodeSpaceError, match="cancelled") as caught:
            call()
        assert caught.value.code is ErrorCode.TIMEOUT


def _as_git_lists(
    top: Path, tree: list[str], ignores: dict[str, list[str]], exclude: list[str]
) -> list[str]:
    """Lay a repository out at `top` and return the files that git does not ignore."""
    shutil.rmtree(top, ignore_errors=True)
    top.mkdir()
    for path in tree:
        _write_if_possible(top / path, "")
    for folder, rules in ignores.items():
        _write_if_possible(top / f"{folder}.gitignore", "\n".join(rules))
    _git(top, "init", "-q")
    (top / ".git/info/exclude").write_text("\n".join(exclude))
    listed = _git(top, "ls-files", "-z", "--cached", "--others", "--exclude-standard")
    return sorted(listed.split("\0")[:-1])


def _write_if_possible(path: Path, content: str) -> None:
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content)
    except (FileExistsError, NotADirectoryError, IsADirectoryError):
        return  # another path of the tree needs a file where this one needs a directory


def _git(top: Path, *arguments: str) -> str:
    environment = {
        "PATH": os.environ["PATH"],
        "HOME": "/nonexistent",
        "GIT_CONFIG_GLOBAL": "/dev/null",
        "GIT_CONFIG_SYSTEM": "/dev/null",
    }
    command = ["git", "-C", str(top), *arguments]
    return subprocess.run(
        command, env=environment, check=True, stdout=subprocess.PIPE
    ).stdout.decode()
