"""The white space of the patch format, over the whole basic plane."""

from codespace.patching.whitespace import WHITE_SPACE, rtrim, trim

_SPACES = (0x20, 0x85, 0xA0, 0x1680, 0x2028, 0x2029, 0x202F, 0x205F, 0x3000)
_EXPECTED = frozenset([*range(0x09, 0x0E), *_SPACES, *range(0x2000, 0x200B)])


def test_exactly_the_listed_characters_are_trimmed():
    code_points = (code for code in range(0x10000) if not 0xD800 <= code < 0xE000)
    trimmed = {code for code in code_points if trim(f"{chr(code)}x{chr(code)}") == "x"}
    assert trimmed == _EXPECTED


def test_no_character_is_listed_twice():
    assert sorted(map(ord, WHITE_SPACE)) == sorted(_EXPECTED)


def test_what_python_alone_calls_white_space_stays():
    assert trim("\x1c\x1d\x1e\x1fx\x1f") == "\x1c\x1d\x1e\x1fx\x1f"
    assert trim("\ufeffx\u200b\u180e") == "\ufeffx\u200b\u180e"


def test_rtrim_keeps_the_beginning():
    assert rtrim("\t x \u3000\r\n") == "\t x"
