import pytest

from codespace.codemode.source import Source, SourceError, read_source


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("return 1", "return 1"),
        ("```js\nreturn 1\n```", "\nreturn 1"),
        ("\n```javascript\nreturn 1\n\n``` \n", "\n\nreturn 1\n"),
        ("~~~\na\n~~~", "\na"),
        ("~~~~\na\n~~~", "~~~~\na\n~~~"),
        ("```\r\na\r\n```\r\n", "\na\r"),
        ("```js\n```", "\n"),
        ("  ```\n a\n\t```  ", "  \n a"),
        ("````\n```\n````", "\n```"),
        ("```js\nreturn 1", "```js\nreturn 1"),
        ("return `a`\n```\nb\n```", "return `a`\n```\nb\n```"),
        ("```js\nreturn 1\n``` and more", "```js\nreturn 1\n``` and more"),
    ],
)
def test_a_fence_around_the_whole_is_taken_off_and_lines_keep_their_numbers(
    text: str, code: str
) -> None:
    assert read_source(text) == Source(code)


@pytest.mark.parametrize("before", ["", "\n\n", "```js\n", "\ufeff"])
def test_the_first_line_may_have_options(before: str) -> None:
    text = before + '// @options {"timeout_ms": 60000, "max_output_chars": 8000}\nreturn 1'
    source = read_source(text + ("\n```" if "`" in before else ""))

    assert (source.timeout_ms, source.max_output_chars) == (60_000, 8_000)


def test_a_later_line_is_a_comment_like_any_other() -> None:
    text = 'return 1\n// @options {"timeout_ms": 5}'

    assert read_source(text) == Source(text)


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("{", "one JSON object"),
        ("[1]", "one JSON object"),
        ("", "one JSON object"),
        ('{"timeout": 5}', "knows timeout_ms and max_output_chars, not 'timeout'"),
        ('{"timeout_ms": 0}', "timeout_ms must be an integer from 1"),
        ('{"timeout_ms": true}', "timeout_ms must be an integer from 1"),
    ],
)
def test_options_that_cannot_be_understood_are_refused_with_their_line(
    line: str, message: str
) -> None:
    with pytest.raises(SourceError, match=message) as refusal:
        read_source(f"\n// @options {line}\nreturn 1")

    assert refusal.value.line == 2


@pytest.mark.timeout(10)
@pytest.mark.parametrize(
    "text",
    [
        "```\n" + " " * 250_000 + "x",
        "```\n```" + " " * 250_000 + "x",
        "`" * 125_000 + "\n" + "`" * 125_000 + "x",
        "```\n" + "```\n" * 60_000 + "x",
        " \n" * 120_000 + "```",
    ],
)
def test_what_is_no_fence_after_all_is_seen_in_time_that_grows_with_its_length(text: str) -> None:
    # A pattern took the square of it: minutes, in which the event loop stood still.
    assert read_source(text) == Source(text)
