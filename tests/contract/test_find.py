import os

import pytest

from codespace.domain.errors import ErrorCode
from contract.session import Space

pytestmark = pytest.mark.anyio


async def paths(space: Space, **arguments: object) -> list[object]:
    return (await space.call("find", **arguments)).list("paths")


@pytest.mark.requirement("find.fields", "find.default-glob", "find.regular-files-sorted")
async def test_all_regular_files_are_listed_sorted_by_default(space: Space) -> None:
    for path in ("b.txt", "a/z.txt", "a.txt", "a/b/c.txt", "ä.txt", "Z"):
        space.write(path)
    (space.root / "empty").mkdir()
    os.mkfifo(space.root / "pipe")
    reply = await space.call("find")
    assert reply.body == {
        "paths": ["Z", "a.txt", "a/b/c.txt", "a/z.txt", "b.txt", "ä.txt"],
        "truncated": False,
    }


@pytest.mark.requirement("find.whole-relative-paths")
async def test_a_star_stays_in_the_root_and_two_stars_go_everywhere(space: Space) -> None:
    for path in ("a.txt", "d/b.txt", "d/e/c.txt", "d/x.md"):
        space.write(path)
    assert await paths(space, glob="*.txt") == ["a.txt"]
    assert await paths(space, glob="**/*.txt") == ["a.txt", "d/b.txt", "d/e/c.txt"]
    assert await paths(space, glob="*/*.txt") == ["d/b.txt"]
    assert await paths(space, glob="d/**") == ["d/b.txt", "d/e/c.txt", "d/x.md"]


@pytest.mark.requirement("find.glob-syntax")
@pytest.mark.parametrize(
    ("glob", "found"),
    [
        ("?.py", ["a.py", "b.py"]),
        ("[a-b].py", ["a.py", "b.py"]),
        ("[!a].py", ["b.py"]),
        ("{a,cc}.py", ["a.py", "cc.py"]),
        ("**/{a,x}.{py,md}", ["a.py", "d/e/x.md"]),
        ("d/**/x.md", ["d/e/x.md"]),
        ("*", ["a.py", "b.py", "cc.py"]),
        ("c*", ["cc.py"]),
        ("**", ["a.py", "b.py", "cc.py", "d/e/x.md"]),
        ("nothing-*", []),
        ("A.py", []),
    ],
)
async def test_glob_syntax(space: Space, glob: str, found: list[str]) -> None:
    for path in ("a.py", "b.py", "cc.py", "d/e/x.md"):
        space.write(path)
    assert await paths(space, glob=glob) == found


@pytest.mark.requirement("find.names-not-content")
async def test_content_is_not_looked_at(space: Space) -> None:
    space.write("holds.txt", "needle")
    space.write("needle.txt", "")
    assert await paths(space, glob="**/*needle*") == ["needle.txt"]


@pytest.mark.requirement("find.dot-files", "find.git-is-skipped")
async def test_dot_files_are_listed_and_git_is_not(space: Space) -> None:
    for path in (".env", ".config/a", ".git/config", "sub/.git/HEAD", ".gitattributes"):
        space.write(path)
    assert await paths(space) == [".config/a", ".env", ".gitattributes"]
    assert await paths(space, include_ignored=True) == [".config/a", ".env", ".gitattributes"]
    assert await paths(space, glob=".git/**", include_ignored=True) == []


@pytest.mark.requirement("find.gitignore")
async def test_ignored_files_are_listed_only_when_asked_for(space: Space) -> None:
    space.write(".gitignore", "*.log\nbuild/\n")
    space.write("sub/.gitignore", "local\n!keep.log\n")
    for path in ("a.log", "build/x", "sub/local", "sub/keep.log", "sub/b", "local"):
        space.write(path)
    kept = [".gitignore", "local", "sub/.gitignore", "sub/b", "sub/keep.log"]
    assert await paths(space) == kept
    every = sorted([*kept, "a.log", "build/x", "sub/local"])
    assert await paths(space, include_ignored=True) == every


async def test_what_is_called_gitignore_and_cannot_be_read_rules_nothing(space: Space) -> None:
    space.write(".gitignore", "*.log\n")
    for path in ("a.log", "pipe/a.log", "huge/a.txt", "huge/b.log"):
        space.write(path, "needle\n")
    os.mkfifo(space.root / "pipe" / ".gitignore")
    with (space.root / "huge" / ".gitignore").open("wb") as huge:
        huge.truncate(1024**4)
    assert await paths(space, glob="*/*") == ["huge/.gitignore", "huge/a.txt"]
    reply = await space.call("grep", pattern="needle")
    assert [match["path"] for match in reply.each("matches")] == ["huge/a.txt"]


@pytest.mark.requirement("find.no-symlinks", "paths.never-follow-a-symlink")
async def test_symlinks_are_neither_listed_nor_followed(space: Space) -> None:
    space.write("real/a.txt")
    (space.root / "link.txt").symlink_to("real/a.txt")
    (space.root / "folder").symlink_to("real")
    (space.root / "away").symlink_to("/etc")
    assert await paths(space) == ["real/a.txt"]
    assert await paths(space, glob="away/*") == []
    assert await paths(space, glob="folder/*") == []


@pytest.mark.requirement("find.limit")
async def test_a_thousand_paths_by_default_and_as_many_as_asked_for(space: Space) -> None:
    for number in range(1_001):
        space.write(f"{number:04}")
    reply = await space.call("find")
    assert len(reply.list("paths")) == 1_000
    assert reply["truncated"] is True
    assert (reply["paths", 0], reply["paths", 999]) == ("0000", "0999")
    reply = await space.call("find", limit=1_001)
    assert (len(reply.list("paths")), reply["truncated"]) == (1_001, False)
    reply = await space.call("find", limit=10_000)
    assert (len(reply.list("paths")), reply["truncated"]) == (1_001, False)
    reply = await space.call("find", limit=1)
    assert (reply["paths"], reply["truncated"]) == (["0000"], True)
    for limit in (0, 10_001):
        refused = await space.refused(ErrorCode.INVALID_ARGUMENT, "find", limit=limit)
        assert refused["details", "path"] == "limit"


async def test_globs_that_leave_the_root_are_refused(space: Space) -> None:
    for glob in ("/etc/*", "../*", "a/../*"):
        await space.refused(ErrorCode.PATH_ESCAPE, "find", glob=glob)


async def test_a_broken_glob_is_refused(space: Space) -> None:
    for glob in ("", "[", "{a", "x" * 4_097):
        await space.refused(ErrorCode.INVALID_ARGUMENT, "find", glob=glob)


async def test_a_file_whose_name_is_not_utf_8_is_left_out_and_counted(space: Space) -> None:
    space.write("plain")
    (space.root / os.fsdecode(b"\xff\xfe")).touch()
    reply = await space.call("find")
    assert reply.body == {"paths": ["plain"], "truncated": False, "skipped": 1}
