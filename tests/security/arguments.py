"""Hypothesis strategies for a tool's arguments, made from its input schema: fitting and broken."""

from collections.abc import Mapping
from typing import cast

from hypothesis import strategies as st

Json = Mapping[str, object]
Arguments = dict[str, object]

PATHS = (
    *("a.txt", "d/b.txt", "d", "link", "folder/b.txt", "fifo", "missing", "new/x.txt", "."),
    *(
        "",
        "/",
        "/etc/passwd",
        "..",
        "../x",
        "a/../b",
        "a.txt/x",
        "a\nb",
        "a\0b",
        "a.",
        "a..",
        "...",
    ),
    *("n" * 255, "n" * 256, "ä" * 128, "d/" * 2_100 + "x", "\ud800", "\udcff", "\uffff", "😀"),
    *(
        "C:\\x",
        "a\\b",
        "%2e%2e/x",
        "~",
        ".git/config",
        " ",
        "\u202e",
        "CON",
        "a/",
        "//a",
        "./a.txt",
    ),
)
WORKSPACES = ("default", "looking", "container", "nobody's", "", "\0", "\ud800", "x" * 300)
TEXTS = ("", "x", "\0", "\ud800\udc00", "\ud800", "\n", "a" * 5_000, "(", "[", "{a,b", "**/*", "é")
"""Texts that have broken something somewhere."""

NUMBERS = (0, 1, -1, 2, 24, 1_000, 1_001, 2**31, 2**53 + 1, 2**63, 2**64, -(2**63) - 1, 10**30)

_by_name: dict[str, st.SearchStrategy[object]] = {
    "workspace_id": st.sampled_from([*["default"] * 8, *WORKSPACES]),
    "path": st.sampled_from(PATHS) | st.text(max_size=20),
    "wait_ms": st.integers(0, 5),
    "timeout_ms": st.integers(1, 2_000),
    "context": st.integers(0, 10),
}


def arguments(
    schema: Json, known: Mapping[str, st.SearchStrategy[object]]
) -> st.SearchStrategy[Arguments]:
    """Return arguments that fit a tool's schema; `known` says what some of them are drawn from."""
    properties = cast("Mapping[str, Json]", schema["properties"])
    required = cast("list[str]", schema.get("required", []))
    special = {**_by_name, **known}
    drawn = {
        name: special[name] if name in special else fitting(schema_of)
        for name, schema_of in properties.items()
    }
    return st.fixed_dictionaries(
        {name: drawn[name] for name in required},
        optional={name: one for name, one in drawn.items() if name not in required},
    )


@st.composite
def broken(draw: st.DrawFn, whole: st.SearchStrategy[Arguments], schema: Json) -> Arguments:
    """Return arguments of which some were replaced, left out, or added."""
    given = dict(draw(whole))
    names = [*cast("Json", schema["properties"]), "approved", "network", "\ud800", ""]
    for name in draw(st.lists(st.sampled_from(names), min_size=1, max_size=3)):
        if draw(st.booleans()):
            given[name] = draw(JUNK)
        else:
            given.pop(name, None)
    return given


def fitting(schema: Json) -> st.SearchStrategy[object]:
    """Return values that fit a property's schema."""
    if "anyOf" in schema:
        return st.one_of([fitting(choice) for choice in cast("list[Json]", schema["anyOf"])])
    if "enum" in schema:
        return st.sampled_from(cast("list[object]", schema["enum"]))
    kind = schema.get("type")
    if kind == "string":
        return _texts(schema)
    if kind == "integer":
        return _integers(schema)
    if kind == "boolean":
        return st.booleans()
    if kind == "number":
        return st.sampled_from(NUMBERS) | st.floats()
    if kind == "array":
        items = fitting(cast("Json", schema["items"])) if "items" in schema else JUNK
        return st.lists(items, max_size=5).map(list[object])
    if kind == "object":
        inner = schema.get("additionalProperties")
        items = fitting(cast("Json", inner)) if isinstance(inner, dict) else JUNK
        return st.dictionaries(st.sampled_from(PATHS), items, max_size=3).map(dict[str, object])
    if kind == "null":
        return st.none()
    raise TypeError(f"no strategy for {schema}")


def _texts(schema: Json) -> st.SearchStrategy[object]:
    if "pattern" in schema:
        return st.from_regex(str(schema["pattern"]), fullmatch=True)
    least, most = (
        cast("int", schema.get("minLength", 0)),
        cast("int", schema.get("maxLength", 9_999)),
    )
    texts = st.sampled_from(TEXTS) | st.text(max_size=50)
    return texts.filter(lambda text: least <= len(text) <= most)


def _integers(schema: Json) -> st.SearchStrategy[object]:
    least, most = schema.get("minimum"), schema.get("maximum")
    return st.integers(cast("int | None", least), cast("int | None", most))


JUNK: st.SearchStrategy[object] = st.recursive(
    st.none()
    | st.booleans()
    | st.sampled_from(NUMBERS)
    | st.integers()
    | st.floats()
    | st.sampled_from(TEXTS)
    | st.sampled_from(PATHS)
    | st.text(max_size=30),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3)
    ),
    max_leaves=8,
)

SCRIPTS = st.sampled_from(
    [
        *("return args", "text(args); return [args, args]", "store('k', args)", "throw args"),
        *("return load('k')", "exit(args)", "image(args)", "return (", "while (1) {}", "(" * 5_000),
        *("await tools.read({path: args})", "return await tools.find(args)", "tools.grep(args)"),
        *("await tools[args]({})", "return searchTools(args)", "await new Promise(() => {})"),
        *("let v = 1; for (let i = 0; i < 399; i++) v = {v}; return v", "return '\\ud800'"),
        *("for (;;) text(args ?? 'x')", "return 2n ** 900n", "return -0", "return [, undefined]"),
    ]
)

_lines = st.one_of(
    st.sampled_from(PATHS).map("*** Add File: {}".format),
    st.sampled_from(PATHS).map("*** Update File: {}".format),
    st.sampled_from(PATHS).map("*** Delete File: {}".format),
    st.sampled_from(PATHS).map("*** Move to: {}".format),
    st.sampled_from(
        [
            *("@@", "@@ one", " one", "-one", "+two", "+", "-", " ", "", "*** End of File"),
            *("*** Begin Patch", "*** End Patch", "*** Environment ID: x", "one", "\r", "\t"),
        ]
    ),
    st.text(max_size=10).map("+{}".format),
)
_NAMES = st.sampled_from(["a.txt", "b", "d/b.txt", "d/c/d.txt", "d", "e", "./a.txt", "link", "é"])
_TEXT_LINES = st.lists(st.sampled_from(["one", "two", "", " ", "three\r"]), min_size=1, max_size=3)


def _added(path: str, lines: list[str]) -> list[str]:
    return [f"*** Add File: {path}", *(f"+{line}" for line in lines)]


def _deleted(path: str) -> list[str]:
    return [f"*** Delete File: {path}"]


def _updated(path: str, to: str | None, old: list[str], new: list[str]) -> list[str]:
    move = [] if to is None else [f"*** Move to: {to}"]
    chunk = [*(f"-{line}" for line in old), *(f"+{line}" for line in new)]
    return [f"*** Update File: {path}", *move, "@@", *chunk]


_NO_LINES = st.just(cast("list[str]", []))
_SECTIONS = st.one_of(
    st.builds(_added, _NAMES, _TEXT_LINES),
    st.builds(_deleted, _NAMES),
    st.builds(_updated, _NAMES, st.none() | _NAMES, _TEXT_LINES | _NO_LINES, _TEXT_LINES),
)
"""Sections that are V4A, and often fit the tree."""

PATCHES: st.SearchStrategy[object] = st.one_of(
    st.lists(_SECTIONS, min_size=1, max_size=4).map(
        lambda sections: [line for section in sections for line in section]
    ),
    st.lists(_lines, max_size=8),
).map(lambda lines: "\n".join(("*** Begin Patch", *lines, "*** End Patch"))) | st.sampled_from(
    TEXTS
)

ARGVS: st.SearchStrategy[object] = st.lists(st.sampled_from(TEXTS), max_size=3).flatmap(
    lambda rest: st.sampled_from(["true", "echo", "./a.txt", "no-such", "", "d", "tr\0ue"]).map(
        lambda program: [program, *rest]
    )
) | st.just(cast("list[str]", []))
"""Commands that change nothing, whatever their arguments."""

SHELL_TEXTS: st.SearchStrategy[object] = st.sampled_from(
    ["true", "exit 3", "echo '", "", "\0", "\ud800", "echo \u20ac", "kill -9 $$", "(", "seq 3000"]
)
