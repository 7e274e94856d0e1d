"""The line machine: what each state takes, and how it refuses the rest."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from codespace.domain.errors import CodeSpaceError, ErrorCode
from codespace.patching.grammar import (
    AddFile,
    Chunk,
    DeleteFile,
    Section,
    UpdateFile,
    cleaned,
    parse,
    touched,
)


def _text(*lines: str) -> str:
    return "\n".join(["*** Begin Patch", *lines, "*** End Patch"])


def _sections(*lines: str) -> tuple[Section, ...]:
    return parse(_text(*lines)).sections


def _chunks(*lines: str) -> tuple[Chunk, ...]:
    (section,) = _sections("*** Update File: f", *lines)
    assert isinstance(section, UpdateFile)
    return section.chunks


def _refusal(*lines: str) -> CodeSpaceError:
    with pytest.raises(CodeSpaceError) as caught:
        parse(_text(*lines))
    assert caught.value.code is ErrorCode.INVALID_PATCH
    assert caught.value.message.startswith(f"Line {caught.value.details['line']}: ")
    return caught.value


def test_the_three_kinds_of_sections_are_read_in_order():
    assert _sections(
        "*** Add File: a b",
        "+one",
        "+",
        "+ two ",
        "*** Delete File: d",
        "*** Update File: u",
        "*** Move to: v",
        "@@ head",
        " c",
        "-o",
        "+n",
    ) == (
        AddFile("a b", "one\n\n two \n"),
        DeleteFile("d"),
        UpdateFile("u", "v", (Chunk("head", ("c", "o"), ("c", "n"), context=((0, 0),), line=9),)),
    )


def test_a_patch_without_a_section_is_read():
    assert _sections() == ()
    assert _sections("*** Environment ID: box") == ()


def test_a_new_file_may_be_empty_and_may_hold_marks():
    assert _sections("*** Add File: a", "*** Add File: b", "+*** End Patch", "+@@") == (
        AddFile("a", ""),
        AddFile("b", "*** End Patch\n@@\n"),
    )


def test_only_the_one_blank_after_the_colon_belongs_to_a_header():
    assert _sections("*** Add File:   a  b \u3000") == (AddFile("  a  b", ""),)


def test_headers_may_be_indented_outside_of_updates():
    assert _sections(
        " *** Add File: a ",
        "+x",
        "\t*** Delete File: b",
        "\u3000*** Delete File: c",
        "  *** Update File: d",
        "-x",
        "*** Delete File: e \t",
    ) == (
        AddFile("a", "x\n"),
        DeleteFile("b"),
        DeleteFile("c"),
        UpdateFile("d", None, (Chunk(None, ("x",), (), line=7),)),
        DeleteFile("e"),
    )


def test_an_indented_header_in_an_update_is_context():
    (chunk,) = _chunks(" *** Delete File: x", " *** Move to: y", " @@", " *** End of File")
    assert chunk.old == ("*** Delete File: x", "*** Move to: y", "@@", "*** End of File")


def test_the_end_mark_ends_in_any_state_and_blank_lines_may_follow():
    for section in (["*** Add File: a"], ["*** Delete File: a"], ["*** Update File: a", "+x"]):
        assert len(_sections(*section, "*** End Patch", "", " \t")) == 1
    assert _sections("*** End Patch", "") == ()


def test_environment_is_taken_before_the_first_section():
    assert _sections("  *** Environment ID:box", "*** Delete File: a") == (DeleteFile("a"),)


def test_the_first_mark_of_an_update_may_be_missing():
    assert _chunks("-a", "+b") == (Chunk(None, ("a",), ("b",), line=3),)


def test_a_mark_opens_a_chunk_with_or_without_header():
    chunks = _chunks("@@ ", "-a", "@@   b  c \t", "-d", "@@ -1,2 +1,2 @@", "-e", "@@ f @@", "-g")
    assert [chunk.header for chunk in chunks] == [None, "  b  c", "-1,2 +1,2 @@", "f @@"]
    assert [chunk.line for chunk in chunks] == [3, 5, 7, 9]


def test_texts_of_a_chunk_are_kept_as_they_are():
    (chunk,) = _chunks("@@", "  a \t", "- b\r c ", "+\td \u3000")
    assert chunk.old == (" a \t", " b\r c ")
    assert chunk.new == (" a \t", "\td \u3000")


def test_an_empty_line_of_an_update_is_context():
    assert _chunks("@@", "", " ", "-a") == (
        Chunk(None, ("", "", "a"), ("", ""), context=((0, 0), (1, 1)), line=3),
    )


def test_an_empty_line_under_the_header_is_a_chunk_of_its_own():
    assert _chunks("", "@@", "-a") == (
        Chunk(None, ("",), ("",), context=((0, 0),), line=3),
        Chunk(None, ("a",), (), line=4),
    )


def test_context_is_paired_by_its_place_in_old_and_new():
    (chunk,) = _chunks("@@", "-a", "-b", " c", "+d", " e")
    assert chunk.context == ((2, 0), (3, 2))


def test_the_end_of_file_mark_closes_a_chunk():
    first, second = _chunks("@@", "-a", "*** End of File ", "", " \t", "@@ x", "+b")
    assert (first.eof, second.eof) == (True, False)


def test_a_section_may_follow_the_end_of_file_mark():
    assert len(_sections("*** Update File: f", "-a", "*** End of File", "*** Delete File: g")) == 2


def test_an_end_of_file_mark_before_any_chunk_says_nothing():
    (section,) = _sections("*** Update File: f", "*** End of File", "*** Move to: g", "-a")
    assert section == UpdateFile("f", "g", (Chunk(None, ("a",), (), line=5),))


@pytest.mark.parametrize(
    ("lines", "line"),
    [
        (["", "*** Delete File: a"], 2),
        (["x"], 2),
        (["*** add file: a"], 2),
        (["***Add File: a"], 2),
        (["*** Add File:"], 2),
        (["*** Add File: "], 2),
        (["*** Add File:a"], 2),
        (["*** Move to: a"], 2),
        (["@@"], 2),
        (["*** Environment ID:"], 2),
        (["*** Environment ID: \t"], 2),
        (["*** Environment ID: a", "*** Environment ID: b"], 3),
        (["*** End Patch", "x"], 3),
        (["*** End Patch", "*** Delete File: a"], 3),
    ],
)
def test_where_a_section_must_begin_nothing_else_is_taken(lines: list[str], line: int):
    assert _refusal(*lines).details == {"line": line}


@pytest.mark.parametrize(
    "line", ["", " ", "x", " +x", "-x", "@@", "*** End of File", "\\ No newline"]
)
def test_a_new_file_takes_added_lines_alone(line: str):
    error = _refusal("*** Add File: a", "+x", line)
    assert error.details == {"line": 4, "section": 1, "path": "a"}
    assert "begins with '+'" in error.message


@pytest.mark.parametrize(
    "line", ["", "x", "+x", "*** Move to: b", "*** End of File", "*** Environment ID: x"]
)
def test_a_deletion_takes_no_lines(line: str):
    error = _refusal("*** Delete File: z", "*** Delete File: a", line)
    assert error.details == {"line": 4, "section": 2, "path": "a"}


@pytest.mark.parametrize(
    "line",
    [
        "x",
        "\tx",
        "\t",
        "\u00a0",
        "\r\r\rx",
        "\t*** Delete File: a",
        "\\ No newline at end of file",
        "*** Environment ID: x",
        "*** Frobnicate",
        "*** Add File:",
        "@@x",
        "@@\tx",
        "@@@",
        "*** Move to: b",
        "*** Move to:",
        "*** end of file",
    ],
)
def test_an_update_takes_no_other_lines(line: str):
    error = _refusal("*** Update File: a", "@@", "-y", line, "-z")
    assert error.details == {"line": 5, "section": 1, "path": "a", "chunk": 1}


@pytest.mark.parametrize(
    ("line", "advice"),
    [("@@x", "'@@ TEXT'"), ("*** Move to: b", "directly under"), ("x", "'+' (added)")],
)
def test_the_refusal_of_a_line_says_what_to_write(line: str, advice: str):
    assert advice in _refusal("*** Update File: a", "-y", line).message


@pytest.mark.parametrize(
    "lines",
    [
        ["*** Move to: b", "*** Move to: c", "-x"],
        ["", "*** Move to: b", "-x"],
        ["-x", "*** End of File", "-y"],
        ["-x", "*** End of File", " y"],
        ["-x", "*** End of File", "@@y"],
        ["-x", "*** End of File", "*** End of File"],
        ["-x", "*** End of File", "*** Move to: b"],
    ],
)
def test_marks_of_an_update_have_their_place(lines: list[str]):
    assert _refusal("*** Update File: a", *lines).details["section"] == 1


@pytest.mark.parametrize(
    "lines", [[], ["*** Move to: b"], ["*** End of File"], ["*** Delete File: b"]]
)
def test_an_update_without_chunk_is_refused_at_its_header(lines: list[str]):
    error = _refusal("*** Delete File: z", "*** Update File: a", *lines)
    assert error.details == {"line": 3, "section": 2, "path": "a"}


@pytest.mark.parametrize(
    "after",
    [[], ["@@ b", "-x"], ["@@"], ["*** End of File"], ["*** Delete File: b"], ["*** End Patch"]],
)
def test_a_chunk_without_lines_is_refused_at_its_mark(after: list[str]):
    error = _refusal("*** Update File: a", "-x", "@@ a", *after)
    assert error.details == {"line": 4, "section": 1, "path": "a", "chunk": 2}


def test_line_numbers_count_the_text_as_sent():
    with pytest.raises(CodeSpaceError) as caught:
        parse(f"\n<<EOF\n{_text('*** Delete File: a', 'x')}\nEOF\n")
    assert caught.value.details["line"] == 5


def test_a_patch_in_crlf_is_the_same_patch():
    text = _text("*** Add File: a", "+x", "*** Update File: b", "@@ h", " c", "", "-d", "+e")
    assert parse(text.replace("\n", "\r\n")) == parse(text)
    assert parse(text.replace("\n", "\r\r\n")) == parse(text)


LINES = st.sampled_from(
    [
        "*** Begin Patch",
        "*** End Patch",
        "*** Add File: a",
        "*** Delete File: b",
        "*** Update File: c",
        " *** Update File: c",
        "*** Move to: d",
        "*** End of File",
        "*** Environment ID: x",
        "@@",
        "@@ h",
        "",
        " ",
        "\t",
        " c",
        "+n",
        "-o",
        "x",
        "\r\r\rx",
        "<<EOF",
        "EOF",
    ]
)


@given(st.text() | st.lists(LINES | st.text()).map("\n".join))
def test_any_text_is_read_or_refused(text: str):
    refusal: CodeSpaceError | None = None
    try:
        parse(text)
    except CodeSpaceError as error:
        refusal = error
    assert refusal is None or refusal.code is ErrorCode.INVALID_PATCH
    assert refusal is None or isinstance(refusal.details["line"], int)


@given(st.lists(LINES, max_size=12))
def test_what_is_read_is_well_formed(lines: list[str]):
    try:
        sections = _sections(*lines)
    except CodeSpaceError as error:
        line = error.details["line"]
        assert isinstance(line, int)
        assert 1 <= line <= len(lines) + 2
        return
    for section in sections:
        assert section.path == section.path.strip()
        if isinstance(section, UpdateFile):
            assert section.chunks
            for chunk in section.chunks:
                assert chunk.old or chunk.new
                assert all(chunk.old[i] == chunk.new[j] for i, j in chunk.context)


def test_the_grammar_offers_the_paths_of_a_patch():
    assert touched(cleaned(parse(_text("*** Delete File: ./a")))) == ("a",)
