"""Access lists and extended attributes on a real filesystem."""

import errno
import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from codespace.workspace.attributes import (
    ACCESS_LIST,
    Attributes,
    attributes_of,
    put_access_list,
    put_others,
)
from codespace.workspace.syscalls import Syscalls
from doubles.access_lists import (
    DEFAULT_LIST,
    GROUP,
    MASK,
    OTHER,
    OWNER,
    OWNING_GROUP,
    SOMEBODY_IS_SHUT_OUT,
    SOMEBODY_WRITES,
    USER,
    access_list,
    attributes,
    give,
)
from doubles.failing_syscalls import FailingSyscalls, Faults


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "file"
    path.touch(0o600)
    return path


@pytest.fixture
def fd(file: Path) -> Iterator[int]:
    descriptor = os.open(file, os.O_RDWR)
    yield descriptor
    os.close(descriptor)


def failing(error: int) -> FailingSyscalls:
    return FailingSyscalls(Faults(fails=lambda _: error))


def test_a_plain_file_carries_nothing(fd: int) -> None:
    assert attributes_of(fd) == Attributes()


def test_what_a_file_carries_is_put_on_another(file: Path, fd: int, tmp_path: Path) -> None:
    give(file, SOMEBODY_WRITES)
    os.setxattr(file, "user.origin", b"here")
    found = attributes_of(fd)
    assert found == Attributes(SOMEBODY_WRITES, (("user.origin", b"here"),))
    other = tmp_path / "other"
    other.touch(0o600)
    descriptor = os.open(other, os.O_RDWR)
    put_others(Syscalls(), descriptor, found)
    put_access_list(Syscalls(), descriptor, found)
    os.close(descriptor)
    assert attributes(other) == attributes(file)
    assert other.stat().st_mode & 0o777 == 0o660


def test_the_access_list_that_a_directory_gives_is_taken_again(tmp_path: Path) -> None:
    os.setxattr(tmp_path, DEFAULT_LIST, SOMEBODY_WRITES)
    file = tmp_path / "file"
    file.touch(0o600)
    assert ACCESS_LIST in attributes(file)
    descriptor = os.open(file, os.O_RDWR)
    put_others(Syscalls(), descriptor, Attributes())
    os.close(descriptor)
    assert attributes(file) == {}


def test_what_may_not_be_set_is_left_out_and_what_fails_is_told(fd: int) -> None:
    wanted = Attributes(None, (("security.label", b"x"),))
    for error in (errno.EPERM, errno.ENOTSUP):
        put_others(failing(error), fd, wanted)
    with pytest.raises(OSError, match="No space"):
        put_others(failing(errno.ENOSPC), fd, wanted)
    put_access_list(failing(errno.ENOSPC), fd, Attributes(SOMEBODY_WRITES))
    assert attributes_of(fd) == Attributes()


def test_values_are_bounded(fd: int, file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def listed(descriptor: int) -> list[str]:
        return [f"user.{number}" for number in range(4)]

    def got(descriptor: int, name: str) -> bytes:
        return name.encode() * 5_000

    with monkeypatch.context() as patched:
        patched.setattr(os, "listxattr", listed)
        patched.setattr(os, "getxattr", got)
        found = attributes_of(fd)
    assert [name for name, _ in found.others] == ["user.0", "user.1"]


def test_capabilities_and_signatures_are_those_of_the_old_content() -> None:
    old = Attributes(b"", (("security.capability", b"x"), ("security.ima", b"x"), ("user.x", b"")))
    assert old.without_privilege() == Attributes(b"", (("user.x", b""),))


@pytest.mark.parametrize(
    ("entries", "mode", "alone"),
    [
        (None, 0o664, 0o664),
        (SOMEBODY_WRITES, 0o660, 0o640),
        (SOMEBODY_IS_SHUT_OUT, 0o644, 0o600),
        (access_list((OWNER, 7), (OWNING_GROUP, 7), (MASK, 5), (OTHER, 1)), 0o751, 0o751),
        (access_list((OWNER, 6), (USER, 4), (GROUP, 6), (OWNING_GROUP, 6), (MASK, 6), (OTHER, 4)),
         0o664, 0o644),
        (b"", 0o4777, 0o4700),
        (b"nonsense", 0o664, 0o600),
        (SOMEBODY_WRITES + b"x", 0o660, 0o600),
    ],
)  # fmt: skip
def test_a_mode_without_its_list_lets_nobody_do_more(
    entries: bytes | None, mode: int, alone: int
) -> None:
    assert Attributes(entries).mode_alone(mode) == alone


@given(entries=st.binary(max_size=60), mode=st.integers(0, 0o7777))
def test_no_list_whatever_it_says_adds_a_bit(entries: bytes, mode: int) -> None:
    alone = Attributes(entries).mode_alone(mode)
    assert alone & ~mode == 0
    assert alone & 0o7700 == mode & 0o7700
