import pytest

from codespace.domain.errors import ErrorCode
from contract.answers import Reply
from contract.session import Space

pytestmark = pytest.mark.anyio


def places(reply: Reply) -> list[tuple[object, object]]:
    return [(match["path"], match["line"]) for match in reply.each("matches")]


@pytest.mark.requirement("grep.fields")
async def test_a_match_is_answered_with_its_place(space: Space) -> None:
    space.write("d/a.txt", "first\n  öneedle here\nlast needle\n")
    reply = await space.call("grep", pattern="needle")
    assert reply.body == {
        "matches": [
            {"path": "d/a.txt", "line": 2, "column": 4, "text": "  öneedle here"},
            {"path": "d/a.txt", "line": 3, "column": 6, "text": "last needle"},
        ],
        "truncated": False,
    }


@pytest.mark.requirement("grep.fields", "grep.context")
async def test_context_shows_the_lines_around(space: Space) -> None:
    space.write("a.txt", "1\n2\n3\nneedle\n5\n6\n")
    reply = await space.call("grep", pattern="needle", context=2)
    assert reply["matches"] == [
        {
            "path": "a.txt",
            "line": 4,
            "column": 1,
            "text": "needle",
            "before": ["2", "3"],
            "after": ["5", "6"],
        }
    ]
    space.write("edge.txt", "needle")
    edge = await space.call("grep", pattern="needle", context=10, glob="edge.txt")
    assert (edge["matches", 0, "before"], edge["matches", 0, "after"]) == ([], [])
    for context in (-1, 11):
        refused = await space.refused(
            ErrorCode.INVALID_ARGUMENT, "grep", pattern="x", context=context
        )
        assert refused["details", "path"] == "context"


@pytest.mark.requirement("grep.regular-expressions")
@pytest.mark.parametrize(
    ("pattern", "lines"),
    [
        (r"^def \w+\(", [1]),
        (r"\bgreet\b", [1, 3]),
        (r"a{3,}", [4]),
        (r"(?i)HELLO|aaaa", [2, 4]),
        (r"\p{Greek}", [5]),
        (r"$^", []),
    ],
)
async def test_patterns_are_ripgreps_regular_expressions(
    space: Space, pattern: str, lines: list[int]
) -> None:
    space.write("a.py", 'def greet():\n  "hello"\ngreet()\naaaa\nλ\n')
    reply = await space.call("grep", pattern=pattern)
    assert [line for _, line in places(reply)] == lines


async def test_a_line_ends_before_either_kind_of_line_break(space: Space) -> None:
    space.write("crlf.txt", "needle\r\nneedle \r\n")
    space.write("lf.txt", "needle\nneedle \n")
    reply = await space.call("grep", pattern="needle$")
    assert places(reply) == [("crlf.txt", 1), ("lf.txt", 1)]
    assert {match["text"] for match in reply.each("matches")} == {"needle"}


async def test_a_pattern_that_is_none_is_an_invalid_argument(space: Space) -> None:
    for pattern in ("(", "", "a\nb", "x" * 4_097):
        reply = await space.refused(ErrorCode.INVALID_ARGUMENT, "grep", pattern=pattern)
        assert reply["details", "path"] == "pattern"


async def test_an_option_is_a_pattern_like_any_other(space: Space) -> None:
    space.write("a.txt", "--files\n-e\n")
    assert places(await space.call("grep", pattern="--files")) == [("a.txt", 1)]
    assert places(await space.call("grep", pattern="-e")) == [("a.txt", 2)]


@pytest.mark.requirement("grep.fixed")
async def test_fixed_takes_the_pattern_as_plain_text(space: Space) -> None:
    space.write("a.txt", "a.b\naxb\n(\n")
    assert places(await space.call("grep", pattern="a.b")) == [("a.txt", 1), ("a.txt", 2)]
    assert places(await space.call("grep", pattern="a.b", fixed=True)) == [("a.txt", 1)]
    assert places(await space.call("grep", pattern="(", fixed=True)) == [("a.txt", 3)]


@pytest.mark.requirement("grep.case")
async def test_case_counts_unless_told_otherwise(space: Space) -> None:
    space.write("a.txt", "Needle\nneedle\nNEEDLE\n")
    assert places(await space.call("grep", pattern="needle")) == [("a.txt", 2)]
    reply = await space.call("grep", pattern="needle", case_sensitive=False)
    assert len(places(reply)) == 3


@pytest.mark.requirement("grep.glob")
async def test_a_glob_narrows_the_files_by_their_whole_paths(space: Space) -> None:
    for path in ("a.py", "d/b.py", "d/c.md"):
        space.write(path, "needle")
    assert places(await space.call("grep", pattern="needle", glob="*.py")) == [("a.py", 1)]
    reply = await space.call("grep", pattern="needle", glob="**/*.py")
    assert places(reply) == [("a.py", 1), ("d/b.py", 1)]


async def test_ignored_files_git_binaries_and_links_are_not_searched(space: Space) -> None:
    space.write(".gitignore", "*.log\n")
    for path in ("a.log", ".git/b", "c.txt", ".dot"):
        space.write(path, "needle\n")
    space.write("blob", b"needle\x00\xff")
    (space.root / "link").symlink_to("c.txt")
    reply = await space.call("grep", pattern="needle")
    assert places(reply) == [(".dot", 1), ("c.txt", 1)]


@pytest.mark.requirement("grep.limit")
async def test_two_hundred_matches_by_default_and_as_many_as_asked_for(space: Space) -> None:
    space.write("a.txt", "needle\n" * 201)
    reply = await space.call("grep", pattern="needle")
    assert (len(places(reply)), reply["truncated"]) == (200, True)
    reply = await space.call("grep", pattern="needle", limit=201)
    assert (len(places(reply)), reply["truncated"]) == (201, False)
    reply = await space.call("grep", pattern="needle", limit=2_000)
    assert (len(places(reply)), reply["truncated"]) == (201, False)
    reply = await space.call("grep", pattern="needle", limit=1)
    assert (places(reply), reply["truncated"]) == ([("a.txt", 1)], True)
    for limit in (0, 2_001):
        refused = await space.refused(
            ErrorCode.INVALID_ARGUMENT, "grep", pattern="needle", limit=limit
        )
        assert refused["details", "path"] == "limit"


async def test_matches_are_ordered_by_path_and_line(space: Space) -> None:
    for path in ("b", "a/z", "a.x"):
        space.write(path, "needle\n\nneedle\n")
    reply = await space.call("grep", pattern="needle")
    found = [("a.x", 1), ("a.x", 3), ("a/z", 1), ("a/z", 3), ("b", 1), ("b", 3)]
    assert places(reply) == found


async def test_a_long_line_is_cut_around_nothing_else(space: Space) -> None:
    space.write("long.txt", "x" * 100_000 + "needle\n")
    reply = await space.call("grep", pattern="needle")
    assert reply["matches", 0, "line"] == 1
    assert len(reply.text("matches", 0, "text")) <= 501
