import errno
import os
import stat
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from codespace.domain.ids import OperationId
from codespace.workspace.attributes import ACCESS_LIST, Attributes
from codespace.workspace.directory import open_root, register
from codespace.workspace.syscalls import Syscalls
from codespace.workspace.temporaries import Ownership, Target, Temporaries, by_directory
from doubles.access_lists import DEFAULT_LIST, SOMEBODY_WRITES, attributes
from doubles.failing_syscalls import Call, FailingSyscalls, Faults


@pytest.fixture
def temporaries(tmp_path: Path) -> Iterator[Temporaries]:
    (tmp_path / "d").mkdir()
    with open_root(register(str(tmp_path))) as root:
        yield Temporaries(root, OperationId("op-x"), Syscalls())


def test_a_temporary_file_is_hidden_complete_and_has_its_mode(
    tmp_path: Path, temporaries: Temporaries
) -> None:
    ownership = Ownership(0o750, os.geteuid(), os.getegid())
    temporaries.write(3, b"text", ownership, dir_fd=temporaries.root.fd, sync=True)
    path = tmp_path / ".op-x.3.tmp"
    assert (path.read_bytes(), stat.S_IMODE(path.stat().st_mode)) == (b"text", 0o750)


def test_a_short_write_is_continued(tmp_path: Path, temporaries: Temporaries) -> None:
    faults = Faults()
    halving = Temporaries(temporaries.root, temporaries.operation_id, FailingSyscalls(faults))
    halving.write(0, b"12345678", None, dir_fd=temporaries.root.fd, sync=False)
    assert (tmp_path / ".op-x.0.tmp").read_bytes() == b"12345678"
    assert faults.called.count("write") > 1


def test_a_file_of_somebody_else_that_cannot_be_given_back_keeps_its_group_if_it_may(
    tmp_path: Path, temporaries: Temporaries
) -> None:
    asked: list[str] = []

    def denied(call: Call) -> int | None:
        asked.append(call.name)
        return errno.EPERM if call.name == "chown" else None

    unprivileged = Temporaries(
        temporaries.root, temporaries.operation_id, FailingSyscalls(Faults(fails=denied))
    )
    owner = Ownership(0o600, os.geteuid() + 1, os.getegid() + 1)
    unprivileged.write(0, b"", owner, dir_fd=temporaries.root.fd, sync=False)
    assert asked.count("chown") == 2
    assert (tmp_path / ".op-x.0.tmp").exists()


@pytest.mark.parametrize(("group", "expected"), [("ours", 0o1675), ("another", 0o1605)])
def test_a_file_that_is_not_given_back_loses_the_bits_that_were_for_others(
    tmp_path: Path, temporaries: Temporaries, group: str, expected: int
) -> None:
    calls = FailingSyscalls(
        Faults(fails=lambda call: errno.EPERM if call.name == "chown" else None)
    )
    unprivileged = Temporaries(temporaries.root, temporaries.operation_id, calls)
    gid = os.getegid() + (group == "another")
    plain = Ownership(0o7675, os.geteuid() + 1, gid)
    unprivileged.write(0, b"", plain, dir_fd=temporaries.root.fd, sync=False)
    assert stat.S_IMODE((tmp_path / ".op-x.0.tmp").stat().st_mode) == expected
    listed = replace(plain, attributes=Attributes(SOMEBODY_WRITES))
    unprivileged.write(1, b"", listed, dir_fd=temporaries.root.fd, sync=False)
    found = attributes(tmp_path / ".op-x.1.tmp")
    assert (ACCESS_LIST in found) is (group == "ours"), "it says what the file's own group may"


def test_a_file_without_an_access_list_gets_none_from_its_directory(
    tmp_path: Path, temporaries: Temporaries
) -> None:
    os.setxattr(tmp_path, DEFAULT_LIST, SOMEBODY_WRITES)
    owner = Ownership(0o660, os.geteuid(), os.getegid())
    temporaries.write(0, b"", owner, dir_fd=temporaries.root.fd, sync=False)
    assert attributes(tmp_path / ".op-x.0.tmp") == {}


def test_a_new_file_has_the_access_list_that_its_directory_gives(
    tmp_path: Path, temporaries: Temporaries
) -> None:
    os.setxattr(tmp_path, DEFAULT_LIST, SOMEBODY_WRITES)
    temporaries.write(0, b"", None, dir_fd=temporaries.root.fd, sync=False)
    assert ACCESS_LIST in attributes(tmp_path / ".op-x.0.tmp")


def test_without_its_access_list_a_file_has_the_mode_that_is_safe_alone(
    tmp_path: Path, temporaries: Temporaries
) -> None:
    def unsupported(call: Call) -> int | None:
        return errno.ENOTSUP if call.name == "set_attribute" else None

    calls = FailingSyscalls(Faults(fails=unsupported))
    owner = Ownership(0o660, os.geteuid(), os.getegid(), Attributes(SOMEBODY_WRITES))
    Temporaries(temporaries.root, temporaries.operation_id, calls).write(
        0, b"", owner, dir_fd=temporaries.root.fd, sync=False
    )
    assert stat.S_IMODE((tmp_path / ".op-x.0.tmp").stat().st_mode) == 0o640


def test_privileged_bits_go_with_the_old_content() -> None:
    assert Ownership(0o6755, 1, 2).without_privilege() == Ownership(0o755, 1, 2)


def test_only_the_temporaries_of_the_operation_are_removed(
    tmp_path: Path, temporaries: Temporaries
) -> None:
    for name in (".op-x.0.tmp", "d/.op-x.1.tmp", ".op-x.7.tmp", ".op-y.0.tmp", "a"):
        (tmp_path / name).touch()
    files = [Target("a", 0), Target("d/b", 1), Target("gone/c", 2)]
    temporaries.remove(files)
    left = sorted(path.name for path in tmp_path.rglob("*") if path.is_file())
    assert left == [".op-x.7.tmp", ".op-y.0.tmp", "a"]


def test_a_directory_that_cannot_be_synced_by_itself_is_synced_with_its_filesystem(
    temporaries: Temporaries,
) -> None:
    for error, expected in ((errno.EINVAL, ["sync", "sync_filesystem"]), (None, ["sync"])):
        faults = Faults(fails=lambda call, error=error: error if call.name == "sync" else None)
        Temporaries(
            temporaries.root, temporaries.operation_id, FailingSyscalls(faults)
        ).sync_directory(temporaries.root.fd)
        assert faults.called == expected


def test_a_disk_that_fails_to_sync_is_not_hidden(temporaries: Temporaries) -> None:
    faults = Faults(fails=lambda _: errno.EIO)
    failing = Temporaries(temporaries.root, temporaries.operation_id, FailingSyscalls(faults))
    with pytest.raises(OSError, match="Input/output"):
        failing.sync_directory(temporaries.root.fd)


def test_files_are_grouped_by_their_directory() -> None:
    files = [Target("b/x", 0), Target("a", 1), Target("b/c/y", 2), Target("b/z", 3)]
    groups = [[file.path for file in group] for group in by_directory(files)]
    assert groups == [["a"], ["b/x", "b/z"], ["b/c/y"]]
