"""The settings as flags: all of them, and nothing else."""

from dataclasses import fields
from pathlib import Path

import pytest

from codespace.cli.flags import Flags, load_settings
from codespace.settings import Settings, SettingsError

TOKEN = "0123456789abcdef"


def test_every_setting_is_a_flag_but_for_what_only_a_file_can_say() -> None:
    flags = {field.name for field in fields(Flags)}
    settings = set(Settings.model_fields)
    assert settings - flags == {"workspaces", "process_environment", "codemode", "http_token"}
    assert flags - settings == {"config", "http_token_file"}


def test_flags_that_were_not_given_are_no_settings(tmp_path: Path) -> None:
    assert set(Flags().settings().values()) == {None}
    assert (
        load_settings(str(tmp_path), None).settings
        == load_settings(str(tmp_path), Flags()).settings
    )


def test_flags_that_were_given_are_settings(tmp_path: Path) -> None:
    (tmp_path / "token").write_text(f"{TOKEN}\n", encoding="utf-8")
    flags = Flags(
        approvals_granted_by="operator",
        operations_db="x.db",
        http_host="::1",
        http_port=0,
        http_token_file=str(tmp_path / "token"),
        http_allowed_hosts=("a.example",),
        http_allow_insecure_bind=True,
        process_timeout_secs=2,
        max_processes=3,
        runner="in-process",
        process_environment_pass=("CI",),
        log_level="ERROR",
    )
    (tmp_path / "root").mkdir()
    settings = load_settings(str(tmp_path / "root"), flags).settings
    assert settings.model_dump(exclude={"workspaces", "process_environment", "codemode"}) == {
        "approvals_granted_by": "operator",
        "operations_db": "x.db",
        "http_host": "::1",
        "http_port": 0,
        "http_token": TOKEN,
        "http_allowed_hosts": ("a.example",),
        "http_allow_insecure_bind": True,
        "process_timeout_secs": 2,
        "max_processes": 3,
        "runner": "in-process",
        "process_environment_pass": ("CI",),
        "log_level": "ERROR",
    }


def test_the_file_is_named_by_a_flag(tmp_path: Path) -> None:
    file = tmp_path / "c.toml"
    file.write_text(f'[workspaces.demo]\nroot = "{tmp_path}"\n', encoding="utf-8")
    assert load_settings(None, Flags(config=str(file))).workspace_ids == ("demo",)


def test_a_token_that_is_too_short_is_refused_without_being_shown(tmp_path: Path) -> None:
    (tmp_path / "token").write_text("short-secret", encoding="utf-8")
    with pytest.raises(SettingsError, match="http_token") as caught:
        load_settings(str(tmp_path), Flags(http_token_file=str(tmp_path / "token")))
    assert "short-secret" not in str(caught.value)
