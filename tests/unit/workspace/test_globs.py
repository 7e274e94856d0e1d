import re
from functools import cache

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from codespace.domain.errors import CodeSpaceError, ErrorCode
from codespace.workspace.globs import Glob, compile_glob


def compiled(glob: str) -> Glob:
    return compile_glob(glob, max_chars=4_096)


def matches(glob: str, path: str) -> bool:
    return compiled(glob).pattern.fullmatch(path) is not None


@pytest.mark.parametrize(
    ("glob", "hits", "misses"),
    [
        ("*", ["a", ".a", "a b\n", "é"], ["a/b"]),
        ("*.txt", ["a.txt", ".txt", "a.b.txt"], ["a/b.txt", "a.txtx", "atxt"]),
        ("?", ["a", "é", "\n", "😀"], ["", "ab", "/"]),
        ("**", ["a", "a/b/c", ".a/.b"], []),
        ("**/*", ["a", "a/b/c", ".a/.b"], []),
        ("**/*.txt", ["a.txt", "b/a.txt", "c/b/a.txt"], ["a.txt/b"]),
        ("a/**", ["a/b", "a/b/c"], ["a", "ab/c", "b/a/c"]),
        ("a/**/b", ["a/b", "a/x/b", "a/x/y/b"], ["ab", "a/b/c", "x/a/b"]),
        ("**/a/**/b/**", ["a/b/c", "x/a/y/b/z", "a/a/b/b/b"], ["a/b", "b/a/c"]),
        ("**/**/a", ["a", "b/a", "c/b/a"], ["a/b"]),
        ("a**b", ["ab", "axb"], ["a/b"]),
        ("a/***", ["a/b"], ["a/b/c"]),
        ("[abc]", ["a", "c"], ["d", "ab", "-"]),
        ("[a-c]", ["a", "b", "c"], ["d", "-"]),
        ("[!a-c]", ["d", "-", "é"], ["a", "/"]),
        ("[^a-c]", ["d", "^"], ["b"]),
        ("[]]", ["]"], ["["]),
        ("[!]]", ["["], ["]"]),
        ("[a-]", ["a", "-"], ["b"]),
        ("[-a]", ["a", "-"], ["b"]),
        ("[+-9]", ["5", "."], ["/"]),
        ("x[*?{]y", ["x*y", "x?y", "x{y"], ["xay"]),
        (r"[\]a\\]", ["]", "a", "\\"], ["b"]),
        ("[[]", ["["], ["]"]),
        ("[&&~~||.]", ["&", "~", "|", "."], ["a"]),
        ("{a,b}", ["a", "b"], ["{a,b}", "a,b"]),
        ("a{b,{c,d/e}f}g", ["abg", "acfg", "ad/efg"], ["ag", "acg"]),
        ("a{,b}", ["a", "ab"], ["a,b"]),
        ("{a}", ["a"], ["{a}"]),
        ("{**/,}a", ["a", "b/a"], []),
        ("{a/**,b}/c", ["a/c", "a/x/c", "b/c"], ["b/x/c"]),
        ("{[,],x}", [",", "x"], ["[", "]"]),
        ("a,b", ["a,b"], ["a"]),
        (r"\*\{\[\,\\", ["*{[,\\"], ["x{[,\\"]),
        (r"a\b", ["ab"], ["a\\b"]),
        ("./a//./b", ["a/b"], ["./a/b"]),
        ("a.b+(c)|$^", ["a.b+(c)|$^"], ["axb+(c)|$^"]),
        ("A", ["A"], ["a"]),
        (".../x", [".../x"], ["/x"]),
    ],
)
def test_a_glob_matches_whole_paths(glob: str, hits: list[str], misses: list[str]) -> None:
    assert [path for path in hits if not matches(glob, path)] == []
    assert [path for path in misses if matches(glob, path)] == []


@pytest.mark.parametrize(
    ("glob", "code", "why"),
    [
        ("", ErrorCode.INVALID_ARGUMENT, "names no file"),
        (".", ErrorCode.INVALID_ARGUMENT, "names no file"),
        ("a/", ErrorCode.INVALID_ARGUMENT, "names no file"),
        ("{a,}", ErrorCode.INVALID_ARGUMENT, "names no file"),
        ("[a", ErrorCode.INVALID_ARGUMENT, "'[' without"),
        ("[]", ErrorCode.INVALID_ARGUMENT, "'[' without"),
        ("[a\\", ErrorCode.INVALID_ARGUMENT, "'[' without"),
        ("[z-a]", ErrorCode.INVALID_ARGUMENT, "z-a"),
        ("[a/b]", ErrorCode.INVALID_ARGUMENT, "'/' inside"),
        ("[+-/]", ErrorCode.INVALID_ARGUMENT, "'/' inside"),
        ("[[:alpha:]]", ErrorCode.INVALID_ARGUMENT, "named class"),
        ("{a", ErrorCode.INVALID_ARGUMENT, "'{' without"),
        ("{a,{b}", ErrorCode.INVALID_ARGUMENT, "'{' without"),
        ("a}", ErrorCode.INVALID_ARGUMENT, "'}' without"),
        ("a\\", ErrorCode.INVALID_ARGUMENT, "lone"),
        ("/a", ErrorCode.PATH_ESCAPE, "absolute"),
        ("..", ErrorCode.PATH_ESCAPE, "'..'"),
        ("a/../b", ErrorCode.PATH_ESCAPE, "'..'"),
        ("{a,..}/b", ErrorCode.PATH_ESCAPE, "'..'"),
        ("a\0", ErrorCode.PATH_ESCAPE, "NUL"),
        ("x" * 4_097, ErrorCode.LIMIT_EXCEEDED, "4096"),
        ("{a,b}" * 10, ErrorCode.LIMIT_EXCEEDED, "alternatives"),
        ("{a,b}" * 700, ErrorCode.LIMIT_EXCEEDED, "alternatives"),
        ("{" * 1_000, ErrorCode.LIMIT_EXCEEDED, "nests"),
        (
            "{" + ",".join(map(str, range(900))) + "}" + "x" * 100,
            ErrorCode.LIMIT_EXCEEDED,
            "longer",
        ),
    ],
)
def test_a_bad_glob_is_refused_with_the_reason(glob: str, code: ErrorCode, why: str) -> None:
    with pytest.raises(CodeSpaceError) as caught:
        compiled(glob)
    assert caught.value.code is code
    assert why in caught.value.message


@pytest.mark.parametrize("glob", ["**", "**/*", "**/**", "./**", "{x,**}"])
def test_a_glob_that_matches_everything_says_so(glob: str) -> None:
    assert compiled(glob).everything
    assert compiled(glob).names == ()


@pytest.mark.parametrize(
    ("glob", "names", "above"),
    [
        ("src/a-b/**/*.{py,ts}", ("*.py", "*.ts"), ("src", "a-b")),
        ("src/test_[0-9]*.py", ("test_*.py",), ("src",)),
        ("{src/a,src/b}/x", ("x",), ("src",)),
        ("{src,test}/x", ("x",), ()),
        ("s?c/x", ("x",), ()),
        (r"s\*c/x:y", ("x*y",), ("s*c",)),
        ("src/**", (), ("src",)),
        ("*/x/*", (), ()),
        ("Makefile", ("Makefile",), ()),
    ],
)
def test_a_glob_tells_what_lets_a_search_look_at_fewer_files(
    glob: str, names: tuple[str, ...], above: tuple[str, ...]
) -> None:
    assert (compiled(glob).names, compiled(glob).above) == (names, above)


@pytest.mark.parametrize(
    ("glob", "path"),
    [
        ("*a" * 30 + "b", "a" * 255),
        ("**/a/" * 30 + "b", "a/" * 1_000 + "c"),
        ("**/*a*a*a*/" * 10 + "b", "/".join(["a" * 100] * 30)),
        ("{" + ",".join(["*a" * 5] * 100) + "}b", "a" * 255),
    ],
)
def test_a_hostile_glob_does_not_try_every_combination(glob: str, path: str) -> None:
    # Trying them all would take years; the test's time limit is the bound.
    assert not matches(glob, path)


def braces(glob: str) -> list[str]:
    """Expand the innermost braces first, as text: slow, plain, and right for small globs."""
    found = re.search(r"\{([^{}]*)\}", glob)
    if found is None:
        return [glob]
    before, after = glob[: found.start()], glob[found.end() :]
    return [item for part in found[1].split(",") for item in braces(f"{before}{part}{after}")]


def reference(glob: str, path: str) -> bool:
    """Match one alternative by trying everything, component by component."""

    @cache
    def components(pattern: tuple[str, ...], names: tuple[str, ...]) -> bool:
        if not pattern:
            return not names
        if pattern[0] == "**":
            if len(pattern) == 1:
                return bool(names)
            return components(pattern[1:], names) or (
                bool(names) and components(pattern, names[1:])
            )
        return bool(names) and name(pattern[0], names[0]) and components(pattern[1:], names[1:])

    @cache
    def name(pattern: str, text: str) -> bool:
        if not pattern:
            return not text
        if pattern[0] == "*":
            return name(pattern[1:], text) or (bool(text) and name(pattern, text[1:]))
        if pattern[0] == "[":
            inside, _, rest = pattern[1:].partition("]")
            wanted = text[:1] in inside.removeprefix("!") if text else False
            return bool(text) and wanted != inside.startswith("!") and name(rest, text[1:])
        return bool(text) and pattern[0] in ("?", text[0]) and name(pattern[1:], text[1:])

    parts = tuple(part for part in glob.split("/") if part not in ("", "."))
    return components(parts, tuple(path.split("/")))


MOST_ALTERNATIVES = 1_000
PIECES = st.sampled_from(["a", "b", ".", "*", "**", "?", "/", "/", "[ab]", "[!a]", "{a,b}"])
GROUPS = st.lists(st.sampled_from(["a", "*", "**/a", "b/", "", "[!b]*", "a/**"]), min_size=1)
GLOBS = st.lists(
    st.one_of(PIECES, GROUPS.map(lambda group: "{" + ",".join(group[:3]) + "}")),
    min_size=1,
    max_size=8,
).map("".join)
PATHS = st.lists(st.text("ab.", min_size=1, max_size=3), min_size=1, max_size=5).map("/".join)


@given(glob=GLOBS, paths=st.lists(PATHS, min_size=1, max_size=10))
def test_a_glob_agrees_with_a_slow_reference(glob: str, paths: list[str]) -> None:
    alternatives = braces(glob)
    try:
        found = compiled(glob)
    except CodeSpaceError:
        bad = [
            part
            for part in alternatives
            if part.startswith("/")
            or part.endswith("/")
            or ".." in part.split("/")
            or not [name for name in part.split("/") if name not in ("", ".")]
        ]
        assert bad or glob.startswith("/") or len(alternatives) > MOST_ALTERNATIVES
        return
    assume(not glob.startswith("/"))
    for path in paths:
        expected = any(reference(part, path) for part in alternatives)
        assert (found.pattern.fullmatch(path) is not None) == expected
        if found.everything:
            assert expected
        if expected:
            assert not found.names or any(
                reference(part, path.split("/")[-1]) for part in found.names
            )
            assert tuple(path.split("/")[: len(found.above)]) == found.above


@given(glob=st.text("ab*?/[]{},!^-\\. \n", max_size=30), path=PATHS)
def test_any_text_is_a_glob_or_is_refused(glob: str, path: str) -> None:
    try:
        found = compiled(glob)
    except CodeSpaceError:
        return
    if not any(special in glob for special in "*?[]{}\\"):
        assert found.pattern.fullmatch("/".join(p for p in glob.split("/") if p not in ("", ".")))
    found.pattern.fullmatch(path)
