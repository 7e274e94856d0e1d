import errno
import os
import stat
from collections.abc import Iterator
from pathlib import Path

import pytest

from codespace.domain.ids import OperationId
from codespace.workspace.directory import open_root, register
from codespace.workspace.placing import Ownership, Placed, Placer, by_directory
from codespace.workspace.syscalls import Syscalls
from doubles.failing_syscalls import Call, FailingSyscalls, Faults


@pytest.fixture
def placer(tmp_path: Path) -> Iterator[Placer]:
    (tmp_path / "d").mkdir()
    with open_root(register(str(tmp_path))) as root:
        yield Placer(root, OperationId("op-x"), Syscalls())


def test_a_temporary_file_is_hidden_complete_and_has_its_mode(
    tmp_path: Path, placer: Placer
) -> None:
    ownership = Ownership(0o750, os.geteuid(), os.getegid())
    placer.write_temporary(3, b"text", ownership, dir_fd=placer.root.fd, sync=True)
    path = tmp_path / ".op-x.3.tmp"
    assert (path.read_bytes(), stat.S_IMODE(path.stat().st_mode)) == (b"text", 0o750)


def test_a_short_write_is_continued(tmp_path: Path, placer: Placer) -> None:
    faults = Faults()
    halving = Placer(placer.root, placer.operation_id, FailingSyscalls(faults))
    halving.write_temporary(0, b"12345678", None, dir_fd=placer.root.fd, sync=False)
    assert (tmp_path / ".op-x.0.tmp").read_bytes() == b"12345678"
    assert faults.called.count("write") > 1


def test_a_file_of_somebody_else_that_cannot_be_given_back_keeps_its_group_at_least(
    tmp_path: Path, placer: Placer
) -> None:
    asked: list[str] = []

    def denied(call: Call) -> int | None:
        asked.append(call.name)
        return errno.EPERM if call.name == "chown" else None

    unprivileged = Placer(placer.root, placer.operation_id, FailingSyscalls(Faults(fails=denied)))
    owner = Ownership(0o600, os.geteuid() + 1, os.getegid())
    unprivileged.write_temporary(0, b"", owner, dir_fd=placer.root.fd, sync=False)
    assert asked.count("chown") == 2
    assert (tmp_path / ".op-x.0.tmp").exists()


def test_privileged_bits_go_with_the_old_content() -> None:
    assert Ownership(0o6755, 1, 2).without_privilege() == Ownership(0o755, 1, 2)


def test_only_the_temporaries_of_the_operation_are_removed(tmp_path: Path, placer: Placer) -> None:
    for name in (".op-x.0.tmp", "d/.op-x.1.tmp", ".op-x.7.tmp", ".op-y.0.tmp", "a"):
        (tmp_path / name).touch()
    files = [Placed("a", 0), Placed("d/b", 1), Placed("gone/c", 2)]
    placer.remove_temporaries(files)
    left = sorted(path.name for path in tmp_path.rglob("*") if path.is_file())
    assert left == [".op-x.7.tmp", ".op-y.0.tmp", "a"]


def test_a_directory_that_cannot_be_synced_by_itself_is_synced_with_its_filesystem(
    placer: Placer,
) -> None:
    for error, expected in ((errno.EINVAL, ["sync", "sync_filesystem"]), (None, ["sync"])):
        faults = Faults(fails=lambda call, error=error: error if call.name == "sync" else None)
        Placer(placer.root, placer.operation_id, FailingSyscalls(faults)).sync_directory(
            placer.root.fd
        )
        assert faults.called == expected


def test_a_disk_that_fails_to_sync_is_not_hidden(placer: Placer) -> None:
    faults = Faults(fails=lambda _: errno.EIO)
    failing = Placer(placer.root, placer.operation_id, FailingSyscalls(faults))
    with pytest.raises(OSError, match="Input/output"):
        failing.sync_directory(placer.root.fd)


def test_files_are_grouped_by_their_directory() -> None:
    files = [Placed("b/x", 0), Placed("a", 1), Placed("b/c/y", 2), Placed("b/z", 3)]
    groups = [[file.path for file in group] for group in by_directory(files)]
    assert groups == [["a"], ["b/x", "b/z"], ["b/c/y"]]
