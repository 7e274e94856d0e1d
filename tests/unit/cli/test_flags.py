"""The settings as flags: all of them, and nothing else."""

from dataclasses import fields
from pathlib import Path

import pytest

from codespace.cli.flags import (
    CommandFlags,
    Elsewhere,
    Flags,
    ServerFlags,
    goes_elsewhere,
    load_settings,
)
from codespace.settings import Settings, SettingsError

TOKEN = "0123456789abcdef"


def test_every_setting_is_a_flag_but_for_what_only_a_file_can_say() -> None:
    groups = (Flags, CommandFlags, ServerFlags)
    names = [field.name for group in groups for field in fields(group)]
    flags = set(names)
    assert len(flags) == len(names)
    settings = set(Settings.model_fields)
    assert settings - flags == {"workspaces", "process_environment", "codemode", "http_token"}
    assert flags - settings == {"config", "http_token_file"}


def test_flags_that_were_not_given_are_no_settings(tmp_path: Path) -> None:
    assert (
        load_settings(str(tmp_path), None).settings
        == load_settings(str(tmp_path), Flags(), CommandFlags(), ServerFlags()).settings
    )


def test_flags_that_were_given_are_settings(tmp_path: Path) -> None:
    (tmp_path / "token").write_text(f"{TOKEN}\n", encoding="utf-8")
    flags = Flags(approvals_granted_by="operator", operations_db="x.db", log_level="ERROR")
    commands = CommandFlags(
        process_timeout_secs=2, max_processes=3, process_environment_pass=("CI",)
    )
    server = ServerFlags(
        http_host="::1",
        http_port=0,
        http_token_file=str(tmp_path / "token"),
        http_allowed_hosts=("a.example",),
        http_allow_insecure_bind=True,
        runner="in-process",
    )
    (tmp_path / "root").mkdir()
    settings = load_settings(str(tmp_path / "root"), flags, commands, server).settings
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
        load_settings(str(tmp_path), ServerFlags(http_token_file=str(tmp_path / "token")))
    assert "short-secret" not in str(caught.value)


def test_a_gateway_elsewhere_excludes_what_is_only_said_to_one_of_this_command() -> None:
    there = Elsewhere("http://127.0.0.1:1/mcp", "token")
    assert goes_elsewhere(there, None, Flags(), CommandFlags()) is there
    assert goes_elsewhere(None, "p", Flags(config="c"), None) is None
    assert goes_elsewhere(Elsewhere(), "p") is None
    with pytest.raises(SettingsError, match="--url excludes --path: "):
        goes_elsewhere(there, "p", None)
    with pytest.raises(SettingsError, match="excludes --operations-db, --max-processes: "):
        goes_elsewhere(there, None, Flags(operations_db="o"), CommandFlags(max_processes=1))


def test_a_token_for_no_gateway_is_refused() -> None:
    with pytest.raises(SettingsError, match="--token-file belongs to --url"):
        goes_elsewhere(Elsewhere(token_file="t"), None)
