"""Where a text of the command line comes from."""

import io
from pathlib import Path

import pytest

from codespace.cli.given_text import json_text_of, text_of
from codespace.settings import SettingsError


def test_a_text_is_itself_or_that_of_a_file_or_of_stdin(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "a.txt").write_text("é\n", encoding="utf-8")
    assert text_of("k", "a@b") == "a@b"
    assert text_of("k", "-") == "-"
    for read in (text_of, json_text_of):
        assert read("k", f"@{tmp_path / 'a.txt'}") == "é\n"
    for read, given in ((text_of, "@-"), (json_text_of, "@-"), (json_text_of, "-")):
        monkeypatch.setattr("sys.stdin", io.StringIO("in"))
        assert read("k", given) == "in"


def test_a_file_that_is_no_text_is_named_with_what_wanted_it(tmp_path: Path) -> None:
    (tmp_path / "b").write_bytes(b"\xff")
    for file in (tmp_path / "b", tmp_path / "none", tmp_path):
        with pytest.raises(SettingsError, match=rf"--json: the file '{file}' cannot be read"):
            json_text_of("--json", f"@{file}")
