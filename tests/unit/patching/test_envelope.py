"""From the text of a patch to its lines."""

import pytest

from codespace.domain.errors import CodeSpaceError, ErrorCode
from codespace.patching.envelope import opened

BEGIN = "*** Begin Patch"
END = "*** End Patch"


def _refusal(text: str) -> CodeSpaceError:
    with pytest.raises(CodeSpaceError) as caught:
        opened(text)
    assert caught.value.code is ErrorCode.INVALID_PATCH
    return caught.value


def test_the_lines_between_the_marks_are_numbered_as_sent():
    envelope = opened(f"\n \n{BEGIN}\none\n\ntwo\n{END}\n\n")
    assert list(envelope.lines) == ["one", "", "two"]
    assert envelope.first == 4


def test_marks_may_be_padded():
    envelope = opened(f" \u3000{BEGIN} \t\nx\n \u00a0{END} ")
    assert list(envelope.lines) == ["x"]
    assert envelope.first == 2


def test_lines_end_at_lf_alone():
    text = "a\x0bb\x0cc\x1cd\x85e\u2028f\u2029g\rh"
    assert list(opened(f"{BEGIN}\n{text}\n{END}").lines) == [text]


@pytest.mark.parametrize(
    ("ending", "left"), [("\n", ""), ("\r\n", ""), ("\r\r\n", ""), ("\r\r\r\n", "\r")]
)
def test_two_carriage_returns_before_a_line_feed_are_dropped(ending: str, left: str):
    envelope = opened(f"{BEGIN}\r\nx{ending}{END}")
    assert list(envelope.lines) == [f"x{left}"]


@pytest.mark.parametrize("tag", ["<<EOF", "<<'EOF'", '<<"EOF"'])
@pytest.mark.parametrize("last", ["EOF", "# EOF", "xEOF", " EOF"])
@pytest.mark.parametrize("ending", ["\n", "\r\n"])
def test_a_heredoc_wrapper_is_dropped(tag: str, last: str, ending: str):
    envelope = opened(ending.join([tag, BEGIN, "x", END, last]))
    assert list(envelope.lines) == ["x"]
    assert envelope.first == 3


def test_the_shortest_wrapped_patch_has_four_lines():
    assert list(opened(f"<<EOF\n{BEGIN}\n{END}\nEOF").lines) == []


@pytest.mark.parametrize(
    "text",
    [
        "",
        " \n ",
        BEGIN,
        END,
        f"{END}\n{BEGIN}",
        f"{BEGIN}\rx\r{END}",
        f"*** begin patch\n{END}",
        f"{BEGIN} x\n{END}",
        f"\ufeff{BEGIN}\n{END}",
        f"\x1c{BEGIN}\n{END}",
        f"some text\n{BEGIN}\n{END}",
        f"```\n{BEGIN}\n{END}\n```",
        f"<<PATCH\n{BEGIN}\n{END}\nPATCH",
        f"<<eof\n{BEGIN}\n{END}\neof",
        f"<< EOF\n{BEGIN}\n{END}\nEOF",
        f"<<EOF\r\r\n{BEGIN}\n{END}\nEOF",
        f"<<EOF \n{BEGIN}\n{END}\nEOF",
        f"apply_patch <<'EOF'\n{BEGIN}\n{END}\nEOF",
        f"<<EOF\n{BEGIN}\nEOF",
        f"<<EOF\n\n{BEGIN}\n{END}\nEOF",
    ],
)
def test_anything_else_before_the_first_mark_is_refused_with_its_line(text: str):
    error = _refusal(text)
    assert error.details["line"] in {1, 2}
    assert "'*** Begin Patch'" in error.message or "'*** End Patch'" in error.message


@pytest.mark.parametrize(
    ("text", "line"),
    [
        (f"{BEGIN}\nx\n{END}\nthanks!", 4),
        (f"\n{BEGIN}\nx\n{END} now\n", 4),
        (f"{BEGIN}\nx\n*** end patch", 3),
        (f"<<EOF\n{BEGIN}\n{END}\n\nEOF", 4),
        (f"<<EOF\n{BEGIN}\n{END}\nEOF\nx", 1),
    ],
)
def test_anything_else_after_the_last_mark_is_refused_with_its_line(text: str, line: int):
    assert _refusal(text).details == {"line": line}


def test_the_message_says_what_the_patch_must_begin_with():
    assert _refusal(f"x\n{BEGIN}\n{END}").message == (
        "Line 1: the patch must begin with the line '*** Begin Patch', with no text or fence"
        " before it."
    )
