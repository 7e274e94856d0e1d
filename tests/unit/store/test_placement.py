"""The way that a path leads, through whatever there is on it."""

import os
from pathlib import Path

import pytest

from codespace.store.placement import identity, way


def test_what_is_not_there_has_no_identity(tmp_path: Path) -> None:
    (tmp_path / "dangling").symlink_to("nowhere")
    assert identity(str(tmp_path)) == (tmp_path.stat().st_dev, tmp_path.stat().st_ino)
    for name in ("none", "dangling", "a\0b", "x" * 5_000):
        assert identity(tmp_path / name) is None


@pytest.mark.parametrize(
    ("path", "through", "past"),
    [
        ("a/b/file", ["a", "a/b"], ["c"]),
        ("a/b/none/at/all", ["a", "a/b"], ["c"]),
        ("c/../a/./b", ["c", "a", "a/b"], []),
        ("to-b/x", ["a", "a/b"], ["c"]),
        ("c/up/x", ["c", "a"], ["a/b"]),
        ("a/out/x", ["a", "c"], ["a/b"]),
        ("to-to-b/../x", ["a", "a/b"], ["c"]),
        ("to-b/../../c", ["a", "a/b", "c"], []),
    ],
)
def test_a_way_is_all_that_a_path_leads_through(
    tmp_path: Path, path: str, through: list[str], past: list[str]
) -> None:
    (tmp_path / "a" / "b").mkdir(parents=True)
    (tmp_path / "c").mkdir()
    (tmp_path / "to-b").symlink_to(tmp_path / "a" / "b")
    (tmp_path / "to-to-b").symlink_to("to-b")
    (tmp_path / "c" / "up").symlink_to("../a")
    (tmp_path / "a" / "out").symlink_to(tmp_path / "c")
    found = way(f"{tmp_path}/{path}")
    assert {
        identity("/"),
        identity(tmp_path),
        *(identity(tmp_path / name) for name in through),
    } <= found
    assert not {identity(tmp_path / name) for name in past} & found


def test_a_relative_path_leads_through_the_current_directory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert identity(tmp_path) in way("file")
    assert identity(tmp_path) in way(".")


def test_the_systems_own_links_are_followed() -> None:
    descriptor = os.open(Path(__file__).parent, os.O_RDONLY | os.O_DIRECTORY)
    try:
        assert identity(Path(__file__).parent) in way(f"/proc/self/fd/{descriptor}/ledger.db")
    finally:
        os.close(descriptor)


@pytest.mark.parametrize("target", ["loop", "./loop/x", "a\0b"])
def test_a_path_that_leads_nowhere_has_a_way_that_ends(tmp_path: Path, target: str) -> None:
    if "\0" not in target:
        (tmp_path / "loop").symlink_to(target)
    assert identity(tmp_path) in way(f"{tmp_path}/{target}")
