"""The chunks of an Update on the lines of a file: where they go and what they change."""

from collections.abc import Sequence
from itertools import chain

import pytest
from hypothesis import given
from hypothesis import strategies as st

from codespace.domain.errors import CodeSpaceError, ErrorCode
from codespace.patching.grammar import UpdateFile, parse
from codespace.patching.lines import Edit, rewritten, split
from codespace.patching.matching import Finder
from codespace.patching.placing import placed
from codespace.patching.refusal import Spot
from codespace.patching.sections import Chunk

SPOT = Spot(1, "f")


def _chunks(body: str) -> tuple[Chunk, ...]:
    text = f"*** Begin Patch\n*** Update File: f\n{body}\n*** End Patch"
    (section,) = parse(text).sections
    assert isinstance(section, UpdateFile)
    return section.chunks


def _after(before: str, body: str) -> str:
    lines = split(before)
    return rewritten(lines, placed(_chunks(body), lines.texts, SPOT))


def _refusal(before: str, body: str) -> CodeSpaceError:
    with pytest.raises(CodeSpaceError) as caught:
        _after(before, body)
    assert caught.value.code is ErrorCode.INVALID_PATCH
    return caught.value


def test_only_what_lies_between_context_lines_is_edited():
    chunks = _chunks("@@\n a\n-b\n+B\n c\n+C\n d\n-e")
    assert placed(chunks, ["a", "b", "c", "d", "e"], SPOT) == [
        Edit(1, 2, ("B",)),
        Edit(3, 3, ("C",)),
        Edit(4, 5, ()),
    ]


def test_a_chunk_of_context_plans_nothing():
    assert placed(_chunks("@@\n a"), ["a"], SPOT) == []


@pytest.mark.parametrize(
    ("before", "body", "after"),
    [
        pytest.param("x\na\n", "@@ x\n-a\n+A", "x\nA\n", id="header-above"),
        pytest.param("a\nx\na\n", "@@ x\n-a\n+A", "a\nx\nA\n", id="header-selects"),
        pytest.param("\u2014 x\na\n", "@@  - x\n-a\n+A", "\u2014 x\nA\n", id="header-loose"),
        pytest.param("a\nb\n", "@@ a\n+n", "a\nb\nn\n", id="addition-ignores-header"),
        pytest.param("a\nb\n", "@@\n+n\n*** End of File", "a\nb\nn\n", id="addition-ignores-eof"),
        pytest.param("a\nb\n", "@@\n+n\n@@\n-a\n+A", "A\nb\nn\n", id="addition-keeps-cursor"),
        pytest.param("a\nb\n", "@@\n+n\n@@\n b\n+m", "a\nb\nn\nm\n", id="patch-order-at-end"),
        pytest.param("a\nb\n", "@@\n b\n+m\n@@\n+n", "a\nb\nm\nn\n", id="patch-order-at-end-2"),
        pytest.param("a\nb\na\n", "@@\n-a\n+A\n@@\n-a\n+B", "A\nb\nB\n", id="cursor-moves-on"),
        pytest.param("a\nb\n", "@@\n-a\n+b\n@@\n-b\n+c", "b\nc\n", id="original-lines"),
        pytest.param(
            "x\na\ny\na\n", "@@\n-a\n+A\n*** End of File", "x\na\ny\nA\n", id="eof-takes-last"
        ),
        pytest.param("a \n", "@@\n a\n+b", "a \nb\n", id="context-kept"),
        pytest.param("a\r\nb\nc\n", "@@\n-b\n+b", "a\r\nb\r\nc\n", id="same-text-replaced"),
        pytest.param("a\nb\n", "@@\n-a\n+A\n\n@@\n-b\n+B", "A\nB\n", id="blank-forgiven"),
        pytest.param("a\n\nb\n", "@@\n-a\n+A\n\n@@\n-b\n+B", "A\n\nB\n", id="blank-is-context"),
        pytest.param("p\nq\n", "@@\n q\n\n+n", "p\nq\n\nn\n", id="blank-before-addition"),
        pytest.param("p\nq\n", "@@\n q\n-", "p\nq\n", id="removed-blank-forgiven"),
        pytest.param("\ny\n", "@@\n \n-", "y\n", id="forgiven-blank-takes-its-context-along"),
        pytest.param("", "\n+f", "\nf\n", id="blank-on-empty-file"),
        pytest.param("", "@@\n", "", id="lone-blank-on-empty-file"),
        pytest.param("a\nb\n", "\n@@\n-a\n+A", "A\nb\n", id="leading-blank-without-effect"),
        pytest.param("\na\n", "\n@@\n-a\n+A", "\nA\n", id="leading-blank-moves-cursor"),
        pytest.param("a\nb\n", "@@\n-a\n-b", "", id="all-removed"),
        pytest.param("a\nb\n", "@@\n-a\n+A\n b\n\n*** End of File", "A\nb\n", id="eof-retry"),
    ],
)
def test_chunks_go_where_the_reference_engine_puts_them(before: str, body: str, after: str):
    assert _after(before, body) == after


@pytest.mark.parametrize(
    ("before", "body", "chunk"),
    [
        pytest.param("a\n", "@@ a\n-a", 1, id="header-is-used-up"),
        pytest.param("a\nb\n", "@@ b\n-a", 1, id="old-lines-above-header"),
        pytest.param("a\nb\n", "@@ b\n+x\n@@ a\n+y", 2, id="header-above-cursor"),
        pytest.param("a\nb\n", "@@\n-b\n@@\n-a", 2, id="out-of-order"),
        pytest.param("a\nb\nc\n", "@@\n-a\n b\n@@\n b\n-c", 2, id="shared-context"),
        pytest.param("a\nb\n", "@@\n-a\n*** End of File", 1, id="eof-elsewhere"),
        pytest.param("a\nb\n", "@@\n-a\n\n\n@@\n-b", 1, id="two-blanks"),
        pytest.param("a\n", "@@\n-a\n  ", 1, id="two-spaces-are-no-empty-line"),
        pytest.param("", "@@\n-a", 1, id="empty-file"),
        pytest.param("a\n\nb\n", "\n@@\n-a", 2, id="leading-blank-jumped"),
        pytest.param("\ufeffa\n", "@@\n-a", 1, id="bom-belongs-to-line-1"),
    ],
)
def test_what_does_not_match_is_refused_with_its_chunk(before: str, body: str, chunk: int):
    details = _refusal(before, body).details
    assert (details["section"], details["path"], details["chunk"]) == (1, "f", chunk)
    assert "nearest" in details


def test_the_refusal_says_where_the_nearest_place_is_and_what_differs():
    error = _refusal("x\na\nb\nc\n", "@@\n a\n-B\n+n\n c")
    assert error.details == {
        "path": "f",
        "section": 1,
        "chunk": 1,
        "line": 3,
        "nearest": {"line": 2, "matched_lines": 1, "expected": "B", "found": "b"},
    }
    assert error.message == (
        "Section 1 ('f'), chunk 1: no match for its old lines in the file; the nearest place is"
        " line 2, where line 3 is 'b' but 'B' in the patch; read the file again."
    )


@pytest.mark.parametrize(
    ("before", "body", "message"),
    [
        ("a\nb\n", "@@ c\n-b", "'@@' header in the file; {} line 1, which is 'a' but 'c'"),
        (
            "a\nb\n",
            "@@\n-c\n*** End of File",
            "old lines at the end of the file; {} line 2, which is 'b' but 'c'",
        ),
        (
            "a\n\nb\n",
            "@@\n-a\n-b",
            "old lines in the file; {} line 1, where line 2 is an empty line but 'b'",
        ),
        (
            "a\nb\n",
            "@@\n a\n\n-b",
            "old lines in the file; {} line 1, where line 2 is 'b' but an empty line",
        ),
    ],
)
def test_the_message_is_one_sentence(before: str, body: str, message: str):
    difference = message.format("the nearest place is")
    assert _refusal(before, body).message == (
        f"Section 1 ('f'), chunk 1: no match for its {difference} in the patch; read the file"
        " again."
    )


def test_the_message_says_where_the_search_began_and_the_file_ends():
    assert _refusal("a\nb\n", "@@ a\n b\n-c").message == (
        "Section 1 ('f'), chunk 1: no match for its old lines in the file from line 2 on; the"
        " nearest place is line 2, where the file ends before 'c'; read the file again."
    )


def test_the_last_tried_lines_are_the_ones_told():
    details = _refusal("a\nb\n", "@@\n a\n-c\n\n").details
    assert details["nearest"] == {"line": 1, "matched_lines": 1, "expected": "c", "found": "b"}


def test_a_match_above_the_search_is_told():
    error = _refusal("a\nb\n", "@@\n-b\n@@\n-a")
    assert error.details["elsewhere"] == 1
    assert error.message == (
        "Section 1 ('f'), chunk 2: the match for its old lines is line 1, above line 3 where the"
        " search begins; write the chunks in the order of the file, and repeat no line that the"
        " '@@' header or the chunk before took."
    )


def test_a_match_that_the_end_of_file_mark_forbids_is_told():
    error = _refusal("a\nb\n", "@@\n-a\n*** End of File")
    assert error.details["elsewhere"] == 1
    assert error.message == (
        "Section 1 ('f'), chunk 1: the match for its old lines is line 1, but '*** End of File'"
        " ties the chunk to the last lines; remove that mark."
    )


def _plainly_after(texts: Sequence[str], chunks: Sequence[Chunk]) -> list[str] | None:
    """Section 6 of the rules, on texts alone, with whole windows replaced."""
    finder = Finder(list(texts), [t for c in chunks for t in (*c.old, c.header or "")])
    windows: list[tuple[int, int, list[str]]] = []
    cursor = 0
    for chunk in chunks:
        if chunk.header is not None:
            hit = finder.seek([chunk.header], cursor)
            if hit is None:
                return None
            cursor = hit + 1
        old, new = list(chunk.old), list(chunk.new)
        if not old:
            windows.append((len(texts), len(texts), new))
            continue
        hit = finder.seek(old, cursor, eof=chunk.eof)
        kept = list(chunk.context)
        if hit is None and old[-1] == "":
            old.pop()
            if new and new[-1] == "":
                new.pop()
            hit = finder.seek(old, cursor, eof=chunk.eof)
            kept = [(i, j) for i, j in kept if i < len(old) and j < len(new)]
        if hit is None:
            return None
        for i, j in kept:
            new[j] = texts[hit + i]
        windows.append((hit, hit + len(old), new))
        cursor = hit + len(old)
    after = list(texts)
    ordered = sorted(windows, key=lambda window: window[0])
    for start, stop, new in ordered[::-1]:
        after[start:stop] = new
    return after


WORDS = st.sampled_from(["a", "b", "c", "", " a", "a ", "\u2014", "-"])
PREFIXED = st.tuples(st.sampled_from(" -+"), WORDS).map("".join)
CHUNK = st.tuples(
    st.sampled_from(["@@", "@@ a", "@@ b", "@@ -"]),
    st.lists(PREFIXED | st.just(""), min_size=1, max_size=4),
    st.sampled_from([[], ["*** End of File"]]),
).map(lambda parts: [parts[0], *parts[1], *parts[2]])


@given(
    st.lists(WORDS, max_size=8),
    st.lists(CHUNK, min_size=1, max_size=3).map(lambda chunks: list(chain.from_iterable(chunks))),
)
def test_placing_agrees_with_the_plain_rule(texts: list[str], body: list[str]):
    chunks = _chunks("\n".join(body))
    expected = _plainly_after(texts, chunks)
    text = "".join(f"{line}\n" for line in texts)
    if expected is None:
        assert "nearest" in _refusal(text, "\n".join(body)).details
    else:
        assert _after(text, "\n".join(body)) == "".join(f"{line}\n" for line in expected)
