"""The paths of a patch: cleaning them, and which ones there are."""

import pytest

from codespace.domain.errors import CodeSpaceError, ErrorCode
from codespace.patching.sections import (
    AddFile,
    Chunk,
    DeleteFile,
    Patch,
    Section,
    UpdateFile,
    cleaned,
    touched,
)

CHUNK = Chunk(None, ("a",), ("b",))


def test_every_path_is_cleaned():
    patch = Patch(
        (
            AddFile("./a//b", "x\n"),
            UpdateFile("c/./d/", "e/", (CHUNK,)),
            UpdateFile("f/", None, (CHUNK,)),
            DeleteFile("plain"),
        )
    )
    assert cleaned(patch) == Patch(
        (
            AddFile("a/b", "x\n"),
            UpdateFile("c/d", "e", (CHUNK,)),
            UpdateFile("f", None, (CHUNK,)),
            DeleteFile("plain"),
        )
    )


@pytest.mark.parametrize(
    ("sections", "path", "number"),
    [
        ((DeleteFile("/etc/x"),), "/etc/x", 1),
        ((DeleteFile("a"), AddFile("a/../b", "")), "a/../b", 2),
        ((UpdateFile("a", "../a", (CHUNK,)), DeleteFile("/b")), "../a", 1),
        ((UpdateFile("/a", "../a", (CHUNK,)),), "/a", 1),
        ((DeleteFile("a\0b"),), "a\0b", 1),
    ],
)
def test_the_first_path_that_leaves_the_root_is_refused(
    sections: tuple[Section, ...], path: str, number: int
):
    with pytest.raises(CodeSpaceError) as caught:
        cleaned(Patch(sections))
    assert caught.value.code is ErrorCode.PATH_ESCAPE
    assert caught.value.details == {"path": path, "section": number}


def test_paths_come_once_in_the_order_of_first_mention():
    patch = Patch(
        (
            UpdateFile("z", "m", (CHUNK,)),
            AddFile("a", ""),
            DeleteFile("m"),
            UpdateFile("z", None, (CHUNK,)),
        )
    )
    assert touched(patch) == ("z", "m", "a")
