"""The lexical rule for a client's path, against a slow and plain reading of it."""

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from codespace.domain.errors import CodeSpaceError, ErrorCode
from codespace.domain.paths import ancestors, clean, shown, shown_raw

PATHS = st.text(st.sampled_from("./ab\\~:%é\0\ud800\n "), max_size=14) | st.text(max_size=20)


def refused(path: str) -> CodeSpaceError:
    with pytest.raises(CodeSpaceError) as caught:
        clean(path)
    return caught.value


def slowly(path: str) -> str | None:
    """Read the rule character by character; nothing for what it refuses."""
    if path[:1] == "/" or "\0" in path:
        return None
    components, current = list[str](), ""
    for character in [*path, "/"]:
        if character != "/":
            current += character
            continue
        if current == "..":
            return None
        if current and current != ".":
            components.append(current)
        current = ""
    return "/".join(components) or "."


@given(PATHS)
@example("")
@example("..")
@example("a/../b")
@example("a/..b/c..")
@example("././/.")
@example(" /..")
def test_cleaning_agrees_with_a_slow_reading_of_the_rule(path: str) -> None:
    expected = slowly(path)
    if expected is None:
        assert refused(path).code is ErrorCode.PATH_ESCAPE
    else:
        assert clean(path) == expected


@given(PATHS)
def test_a_cleaned_path_is_relative_and_has_no_component_that_leads_elsewhere(path: str) -> None:
    try:
        cleaned = clean(path)
    except CodeSpaceError:
        return
    assert not cleaned.startswith("/")
    assert "\0" not in cleaned
    assert cleaned == "." or not {"", ".", ".."} & set(cleaned.split("/"))
    assert clean(cleaned) == cleaned


@pytest.mark.parametrize("path", ["./a", "a/", "a//", ".//a/.", "a"])
def test_spellings_of_one_path_are_one_path(path: str) -> None:
    assert clean(path) == "a"


@pytest.mark.parametrize("path", ["", ".", "./", "././/"])
def test_the_root_is_a_dot(path: str) -> None:
    assert clean(path) == "."


@pytest.mark.parametrize(
    "path", ["..\\x", "C:\\x", "~/x", "%2e%2e/x", "a..b", "...", "file:x", " ", "a\nb"]
)
def test_other_systems_tricks_are_ordinary_names(path: str) -> None:
    assert clean(path) == path


@pytest.mark.parametrize("path", ["/", "/a", "//a", "/./a"])
def test_an_absolute_path_is_an_escape(path: str) -> None:
    error = refused(path)
    assert error.code is ErrorCode.PATH_ESCAPE
    assert error.details == {"path": path}
    assert "absolute" in error.message


@pytest.mark.parametrize("path", ["..", "../a", "a/..", "a/../b", "./..", "a/b/../../.."])
def test_going_up_is_an_escape_even_where_it_would_come_back(path: str) -> None:
    assert refused(path).code is ErrorCode.PATH_ESCAPE


def test_a_nul_is_an_escape() -> None:
    assert refused("a\0b").code is ErrorCode.PATH_ESCAPE


@pytest.mark.parametrize(
    "path", ["a" * 255, "é" * 127, "/".join(["a" * 255] * 16), "d/" * 2047 + "f"]
)
def test_the_longest_path_that_a_filesystem_holds_is_accepted(path: str) -> None:
    assert clean(path) == path


@pytest.mark.parametrize(
    "path", ["a" * 256, "é" * 128, "b/" + "a" * 256, "d/" * 2047 + "ff", "d/" * 2049]
)
def test_what_no_filesystem_holds_is_too_long(path: str) -> None:
    error = refused(path)
    assert error.code is ErrorCode.FILE_OPERATION_FAILED
    assert error.details["errno"] == "ENAMETOOLONG"


def test_components_that_say_nothing_do_not_count_towards_the_length() -> None:
    assert clean("./" * 5_000 + "a") == "a"


def test_ancestors_are_outermost_first_and_without_the_root() -> None:
    assert ancestors("a/b/c") == ("a", "a/b")
    assert ancestors("a") == ()


@given(st.text(max_size=600))
def test_a_message_repeats_a_path_cut_escaped_and_as_unicode(path: str) -> None:
    text = shown(path)
    assert text.isprintable()
    assert len(shown_raw(path)) <= 257
    shown_raw(path).encode()


def test_a_path_with_a_lone_surrogate_can_be_shown() -> None:
    assert shown_raw("a\ud800b") == "a?b"
    assert refused("/\ud800").details == {"path": "/?"}


def test_only_a_long_path_is_cut() -> None:
    assert shown_raw("a" * 256) == "a" * 256
    assert shown_raw("a" * 257) == "a" * 256 + "…"
