"""Who else can read an operator's file. What is read from it is in the tests of the settings."""

import os
from pathlib import Path

import pytest

from codespace.operator_files import others_can_read


@pytest.mark.parametrize(
    ("mode", "open_to_others"),
    [(0o600, False), (0o400, False), (0o700, False), (0o640, True), (0o604, True), (0o620, True)],
)
def test_a_file_is_open_to_others_by_its_mode(
    tmp_path: Path, mode: int, *, open_to_others: bool
) -> None:
    file = tmp_path / "token"
    file.touch()
    file.chmod(mode)
    assert others_can_read(str(file)) is open_to_others


def test_a_pipe_and_a_file_that_is_gone_are_nobodys_concern(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe", 0o666)
    (tmp_path / "pipe").chmod(0o666)
    assert not others_can_read(str(tmp_path / "pipe"))
    assert not others_can_read(str(tmp_path / "gone"))
