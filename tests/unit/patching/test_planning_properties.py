"""Whole patches over a large space of trees and patches."""

import json
from collections.abc import Iterable, Mapping, Sequence
from difflib import SequenceMatcher

from hypothesis import given
from hypothesis import strategies as st

from codespace.domain.errors import CodeSpaceError
from codespace.domain.patch import PatchPlan
from codespace.domain.paths import ancestors
from codespace.patching.grammar import cleaned, parse, touched
from codespace.patching.planning import DirectoryEntry, Entry, FileEntry, plan

POOL = [*"abcdefgh", "", " a", "a ", "\tb", "*** End Patch", "@@", "-x", "+y", "\u2014", "\x0bq"]
# Equal lines would make a context ambiguous; which of two places is meant is not tested here.
TEXTS = st.lists(st.sampled_from(POOL), unique=True, max_size=12)
ENDINGS = st.sampled_from(["\n", "\r\n", "\r"])


def _disk(files: Mapping[str, bytes]) -> dict[str, Entry]:
    above: dict[str, Entry] = {a: DirectoryEntry() for path in files for a in ancestors(path)}
    return above | {path: FileEntry(data) for path, data in files.items()}


def _plan(files: Mapping[str, bytes], text: str) -> PatchPlan:
    return plan(cleaned(parse(text)), _disk(files))


def _written(before: Sequence[str], after: Sequence[str], context: int) -> str:
    """Write a patch of `f`, as a model would: one chunk a place, with some context."""
    lines = ["*** Begin Patch", "*** Update File: f"]
    matcher = SequenceMatcher(None, before, after, autojunk=False)
    for group in matcher.get_grouped_opcodes(context):
        lines.append("@@")
        for tag, old, old_end, new, new_end in group:
            if tag == "equal":
                lines += [f" {text}" for text in before[old:old_end]]
            else:
                lines += [f"-{text}" for text in before[old:old_end]]
                lines += [f"+{text}" for text in after[new:new_end]]
    if before == after:
        lines += ["@@", *[f" {text}" for text in before]]
    return "\n".join([*lines, "*** End Patch"])


def _bytes(texts: Iterable[str], ending: str) -> bytes:
    return "".join(text + ending for text in texts).encode()


def _result(before: bytes, text: str) -> bytes:
    files = _plan({"f": before}, text).files
    after = files[0].after if files else before
    assert after is not None
    return after


@given(before=TEXTS, after=TEXTS, context=st.integers(1, 3), ending=ENDINGS, ended=st.booleans())
def test_a_written_patch_makes_exactly_the_text_it_was_written_for(
    before: list[str], after: list[str], context: int, ending: str, *, ended: bool
):
    if not before:
        ending = "\n"
    if not before and not after:
        return
    data = _bytes(before, ending)
    if before and before[-1] and not ended and len(before) > 1:
        data = data.removesuffix(ending.encode())
    assert _result(data, _written(before, after, context)) == _bytes(after, ending)


@given(TEXTS.filter(bool), TEXTS.filter(bool), st.integers(1, 3), st.integers(1, 3), ENDINGS)
def test_a_patch_and_its_inverse_give_the_same_bytes_back(
    before: list[str], after: list[str], context: int, inverse_context: int, ending: str
):
    data = _bytes(before, ending)
    changed = _result(data, _written(before, after, context))
    assert _result(changed, _written(after, before, inverse_context)) == data


PATHS = st.sampled_from(["a", "b", "d", "d/x", "d/y", "a/z", "./b", "d//x"])
LINES = st.sampled_from(["", "p", "q", " p", "p ", "\u2014"])
TREES = st.dictionaries(
    st.sampled_from(["a", "b", "d/x", "d/y"]),
    st.lists(st.tuples(LINES, st.sampled_from(["\n", "\r\n"])).map("".join), max_size=4).map(
        lambda lines: "".join(lines).encode()
    ),
)
CHUNKS = st.lists(
    st.tuples(
        st.sampled_from(["@@", "@@ p", "@@"]),
        st.lists(st.tuples(st.sampled_from(" -+"), LINES).map("".join), min_size=1, max_size=3),
    ).map(lambda chunk: "\n".join([chunk[0], *chunk[1]])),
    min_size=1,
    max_size=2,
).map("\n".join)
SECTIONS = st.one_of(
    st.tuples(PATHS, st.lists(LINES.map("+{}".format), max_size=2)).map(
        lambda parts: "\n".join([f"*** Add File: {parts[0]}", *parts[1]])
    ),
    PATHS.map("*** Delete File: {}".format),
    st.tuples(PATHS, CHUNKS).map(lambda parts: f"*** Update File: {parts[0]}\n{parts[1]}"),
    st.tuples(PATHS, PATHS, CHUNKS).map(
        lambda parts: f"*** Update File: {parts[0]}\n*** Move to: {parts[1]}\n{parts[2]}"
    ),
)
SECTION_LISTS = st.lists(SECTIONS, min_size=1, max_size=4)


def _patch(sections: Iterable[str]) -> str:
    return "\n".join(["*** Begin Patch", *sections, "*** End Patch"])


PATCHES = SECTION_LISTS.map(_patch)


def _outcome(tree: Mapping[str, bytes], text: str) -> PatchPlan | CodeSpaceError:
    try:
        return _plan(tree, text)
    except CodeSpaceError as error:
        return error


@given(TREES, PATCHES)
def test_a_plan_starts_from_the_tree_and_names_only_what_the_patch_names(
    tree: dict[str, bytes], text: str
):
    named = touched(cleaned(parse(text)))
    result = _outcome(tree, text)
    if isinstance(result, CodeSpaceError):
        assert result.details["path"] in named
        assert json.dumps(result.body())
        return
    paths = [file.path for file in result.files]
    assert paths == sorted(set(paths))
    assert set(paths) <= set(named)
    for file in result.files:
        assert file.before == tree.get(file.path)
        assert file.before != file.after
        assert file.mode_from is None or file.mode_from in tree
    for change in result.changes:
        assert {change.path, change.source or change.path} <= set(named)
    assert {change.path for change in result.changes} <= set(named)


@given(TREES, SECTION_LISTS)
def test_all_sections_at_once_do_what_one_after_the_other_do(
    tree: dict[str, bytes], sections: list[str]
):
    whole = _outcome(tree, _patch(sections))
    if isinstance(whole, CodeSpaceError):
        return
    now = dict(tree)
    for section in sections:
        for file in _plan(now, _patch([section])).files:
            assert now.pop(file.path, None) == file.before
            if file.after is not None:
                now[file.path] = file.after
    assert {file.path: file.after for file in whole.files} == {
        path: now.get(path) for path in {*tree, *now} if tree.get(path) != now.get(path)
    }


NOISE = st.sampled_from(["", " ", "@@", "+z", "-z", "*** End of File", "\t", "*** End Patch", "\r"])


@given(TREES, PATCHES, st.integers(0, 40), NOISE, st.sampled_from(["insert", "delete", "replace"]))
def test_a_damaged_patch_is_planned_or_refused_with_its_place(
    tree: dict[str, bytes], text: str, at: int, noise: str, how: str
):
    lines = text.split("\n")
    at %= len(lines)
    lines[at : at + (how != "insert")] = [] if how == "delete" else [noise]
    result = _outcome(tree, "\n".join(lines))
    if isinstance(result, CodeSpaceError):
        assert result.message.endswith(".")
        assert json.dumps(result.body())


@given(
    tree=TREES,
    text=PATCHES,
    ending=st.sampled_from(["\n", "\r\n", "\r\r\n"]),
    wrapped=st.booleans(),
    padded=st.booleans(),
)
def test_the_wrapping_of_a_patch_changes_nothing(
    tree: dict[str, bytes], text: str, ending: str, *, wrapped: bool, padded: bool
):
    lines = text.split("\n")
    if padded:
        lines = [f"{line} \t" if line.startswith("*** ") else line for line in lines]
    if wrapped and ending != "\r\r\n":
        lines = ["<<'EOF'", *lines, "EOF"]
    plain, other = _outcome(tree, text), _outcome(tree, ending.join(lines) + ending)
    if isinstance(plain, CodeSpaceError):
        assert isinstance(other, CodeSpaceError)
        assert other.code is plain.code
    else:
        assert other == plain
