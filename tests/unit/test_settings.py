"""File, environment and flags become one value, or are refused by name."""

import json
from collections.abc import Mapping
from pathlib import Path

import pytest

from codespace.domain.run_limits import RunLimits
from codespace.domain.workspace import Approvals, Environment, Network, Profile
from codespace.settings import Loaded, SettingsError, load, read_token_file

TOKEN = "0123456789abcdef-secret"
BARE = {"PATH": "/usr/bin", "HOME": "/home/op"}


def configured(tmp_path: Path, **settings: object) -> Loaded:
    """Load a JSON file with one workspace and these settings."""
    return load(config=written(tmp_path, **settings), environ=BARE)


def written(tmp_path: Path, **settings: object) -> str:
    settings.setdefault("workspaces", {"demo": {"root": str(root_of(tmp_path))}})
    file = tmp_path / "codespace.json"
    file.write_text(json.dumps(settings), encoding="utf-8")
    return str(file)


def root_of(tmp_path: Path) -> Path:
    """Return a directory to register, beside the files that say so."""
    root = tmp_path / "root"
    root.mkdir(exist_ok=True)
    return root


def refusal(tmp_path: Path, **settings: object) -> str:
    with pytest.raises(SettingsError) as caught:
        configured(tmp_path, **settings)
    return str(caught.value)


def environment_refusal(tmp_path: Path, **variables: str) -> str:
    with pytest.raises(SettingsError) as caught:
        load(path=str(tmp_path), environ={**BARE, **variables})
    return str(caught.value)


# Zero configuration.


def test_a_path_becomes_a_writable_workspace_named_default(tmp_path: Path) -> None:
    loaded = load(path=str(tmp_path), environ={})
    assert loaded.workspace_ids == ("default",)
    assert loaded.settings.workspaces["default"].root == str(tmp_path)
    assert loaded.settings.workspaces["default"].profile is Profile.WORKSPACE_WRITE


def test_without_a_path_it_is_the_current_directory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert load(environ={}).settings.workspaces["default"].root == str(tmp_path)


def test_a_relative_path_is_made_absolute(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "inner").mkdir()
    monkeypatch.chdir(tmp_path)
    loaded = load(path="inner", environ={})
    assert loaded.settings.workspaces["default"].root == str(tmp_path / "inner")


def test_a_path_beside_configured_workspaces_is_refused(tmp_path: Path) -> None:
    with pytest.raises(SettingsError, match="exclude each other"):
        load(path=str(tmp_path), config=written(tmp_path, http_port=9), environ={})


def test_a_path_joins_the_settings_of_a_file_without_workspaces(tmp_path: Path) -> None:
    file = tmp_path / "codespace.toml"
    file.write_text("http_port = 9\n", encoding="utf-8")
    loaded = load(path=str(root_of(tmp_path)), config=str(file), environ={})
    assert (loaded.workspace_ids, loaded.settings.http_port) == (("default",), 9)


def test_a_file_without_workspaces_serves_the_current_directory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "codespace.toml"
    file.write_text("http_port = 9\n", encoding="utf-8")
    monkeypatch.chdir(root_of(tmp_path))
    loaded = load(config=str(file), environ={})
    assert (loaded.workspace_ids, loaded.settings.http_port) == (("default",), 9)


@pytest.mark.parametrize("kind", ["file", "nothing"])
def test_a_path_that_is_no_directory_is_refused(tmp_path: Path, kind: str) -> None:
    place = tmp_path / "x"
    if kind == "file":
        place.touch()
    with pytest.raises(SettingsError, match="PATH takes a directory that exists"):
        load(path=str(place), environ={})


def test_the_defaults_are_the_contracts(tmp_path: Path) -> None:
    settings = load(path=str(tmp_path), environ={}).settings
    assert (settings.http_host, settings.http_port) == ("127.0.0.1", 8787)
    assert (settings.process_timeout_secs, settings.max_processes) == (30, 8)
    assert (settings.operations_db, settings.http_token) == (None, None)
    assert settings.runner == "in-process"
    assert settings.codemode == RunLimits()


def test_a_limit_of_scripts_is_set_and_the_others_stay(tmp_path: Path) -> None:
    file = tmp_path / "c.toml"
    file.write_text(f'[codemode]\nruns = 3\n[workspaces.demo]\nroot = "{tmp_path}"\n')
    settings = load(config=str(file), environ={}).settings
    assert settings.codemode == RunLimits(runs=3)


# Files.


def test_a_workspace_in_a_file_is_read_only_and_restricted_unless_it_says_otherwise(
    tmp_path: Path,
) -> None:
    demo = configured(tmp_path).settings.workspaces["demo"]
    assert demo.profile is Profile.READ_ONLY
    assert demo.network is Network.RESTRICTED
    assert demo.approvals is Approvals.OFF
    assert demo.environment is Environment.HOST


def test_every_setting_of_a_workspace_is_read(tmp_path: Path) -> None:
    given = {
        "root": str(root_of(tmp_path)),
        "profile": "workspace-write",
        "network": "enabled",
        "approvals": "off",
        "environment": "linux-container",
    }
    demo = configured(tmp_path, workspaces={"demo": given}).settings.workspaces["demo"]
    assert demo.profile is Profile.WORKSPACE_WRITE
    assert demo.network is Network.ENABLED
    assert demo.environment is Environment.LINUX_CONTAINER


def test_json_and_toml_mean_the_same(tmp_path: Path) -> None:
    toml = tmp_path / "codespace.toml"
    toml.write_text(
        'http_port = 9\nprocess_timeout_secs = 5\nhttp_allowed_hosts = ["a.example:1"]\n'
        'process_environment_pass = ["CI"]\nhttp_allow_insecure_bind = true\n'
        f'[process_environment]\nA = "b"\n[workspaces.demo]\nroot = "{root_of(tmp_path)}"\n',
        encoding="utf-8",
    )
    same = configured(
        tmp_path,
        http_port=9,
        process_timeout_secs=5,
        http_allowed_hosts=["a.example:1"],
        process_environment_pass=["CI"],
        http_allow_insecure_bind=True,
        process_environment={"A": "b"},
    )
    assert load(config=str(toml), environ=BARE) == same
    assert same.settings.http_allowed_hosts == ("a.example:1",)


@pytest.mark.parametrize("seconds", [1, 1.0, 0.5, 86_400])
def test_whole_and_broken_seconds_are_time_limits(tmp_path: Path, seconds: float) -> None:
    settings = configured(tmp_path, process_timeout_secs=seconds).settings
    assert settings.process_timeout_secs == seconds


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("bad.json", "{"),
        ("bad.json", '{"a": 1, "a": 2}'),
        ("bad.json", "[" * 100_000),
        ("bad.toml", "a = "),
        ("bad.toml", "a = 1\na = 2"),
        ("bad.json", "a = 1"),
    ],
)
def test_a_file_that_is_not_its_format_is_refused_by_name(
    tmp_path: Path, name: str, text: str
) -> None:
    (tmp_path / name).write_text(text, encoding="utf-8")
    with pytest.raises(SettingsError, match=rf"{name}' cannot be read"):
        load(config=str(tmp_path / name), environ={})


def test_a_file_that_is_not_text_is_refused(tmp_path: Path) -> None:
    (tmp_path / "bad.json").write_bytes(b"\xff\xfe{}")
    with pytest.raises(SettingsError, match=r"bad.json' cannot be read"):
        load(config=str(tmp_path / "bad.json"), environ={})


def test_a_file_that_is_not_there_is_refused(tmp_path: Path) -> None:
    with pytest.raises(SettingsError, match="No such file"):
        load(config=str(tmp_path / "none.json"), environ={})


@pytest.mark.parametrize("text", ["[]", "1", '"text"', "null"])
def test_a_file_that_holds_no_object_is_refused(tmp_path: Path, text: str) -> None:
    (tmp_path / "bad.json").write_text(text, encoding="utf-8")
    with pytest.raises(SettingsError, match="takes an object at its root"):
        load(config=str(tmp_path / "bad.json"), environ={})


@pytest.mark.parametrize(
    ("settings", "key"),
    [
        ({"http_prot": 1}, "http_prot: is not a setting (did you mean http_port?)"),
        ({"zzz": 1}, "zzz: is not a setting"),
        ({"http_port": 65_536}, "http_port: "),
        ({"http_port": -1}, "http_port: "),
        ({"http_port": "8787"}, "http_port: "),
        ({"http_port": True}, "http_port: "),
        ({"max_processes": 0}, "max_processes: "),
        ({"max_processes": 1_001}, "max_processes: "),
        ({"max_processes": 2.5}, "max_processes: "),
        ({"process_timeout_secs": 0}, "process_timeout_secs: "),
        ({"process_timeout_secs": 0.0001}, "process_timeout_secs: "),
        ({"process_timeout_secs": 86_401}, "process_timeout_secs: "),
        ({"process_timeout_secs": "30"}, "process_timeout_secs: "),
        ({"process_timeout_secs": float("nan")}, "process_timeout_secs: "),
        ({"process_timeout_secs": float("inf")}, "process_timeout_secs: "),
        ({"http_token": "short"}, "http_token: "),
        ({"http_token": ""}, "http_token: "),
        ({"http_token": "sixteen chars or more"}, "http_token: "),
        ({"http_token": "ünïcödé-is-no-header"}, "http_token: "),
        ({"http_allowed_hosts": "one.example"}, "http_allowed_hosts: "),
        ({"http_allowed_hosts": [1]}, "http_allowed_hosts.0: "),
        ({"http_allowed_hosts": ["https://one.example"]}, "http_allowed_hosts: takes names"),
        ({"http_allowed_hosts": ["*.example"]}, "http_allowed_hosts: takes names"),
        ({"http_allowed_hosts": [""]}, "http_allowed_hosts: takes names"),
        ({"http_allow_insecure_bind": "yes"}, "http_allow_insecure_bind: "),
        ({"runner": "ssh"}, "runner: "),
        ({"log_level": "info"}, "log_level: "),
        ({"codemode": {"no_such_limit": 1}}, "codemode.no_such_limit: is not a setting"),
        ({"codemode": {"runs": 0}}, "codemode: the limit runs must be"),
        ({"codemode": {"runs": "5"}}, "codemode: takes limits by their names"),
        ({"codemode": {"runs": True}}, "codemode: takes limits by their names"),
        ({"codemode": {"runs": 1.0}}, "codemode: takes limits by their names"),
        ({"codemode": 5}, "codemode: "),
        ({"operations_db": ""}, "operations_db: "),
        ({"operations_db": 1}, "operations_db: "),
        ({"process_environment": {"A": 1}}, "process_environment.A: "),
        ({"process_environment": {"A=B": "c"}}, "process_environment: "),
        ({"process_environment": {"A": "b\0c"}}, "process_environment: "),
        ({"process_environment": {"CODESPACE_HTTP_TOKEN": "x"}}, "process_environment: "),
        ({"process_environment_pass": ["CODESPACE_HTTP_TOKEN"]}, "process_environment: "),
        ({"workspaces": {}}, "workspaces: "),
        ({"workspaces": []}, "workspaces: "),
        ({"workspaces": {"": {"root": "/"}}}, "workspaces: takes names"),
        ({"workspaces": {"a\nb": {"root": "/"}}}, "workspaces: takes names"),
        ({"workspaces": {"a" * 101: {"root": "/"}}}, "workspaces: takes names"),
        ({"workspaces": {"demo": {}}}, "workspaces.demo.root: "),
        ({"workspaces": {"demo": {"root": "relative"}}}, "workspaces.demo.root: takes an absolute"),
        ({"workspaces": {"demo": {"root": ""}}}, "workspaces.demo.root: takes an absolute"),
        ({"workspaces": {"demo": {"root": "/no/such"}}}, "workspaces.demo.root: takes a directory"),
        ({"workspaces": {"demo": {"root": "/a\0b"}}}, "workspaces.demo.root: takes a directory"),
        ({"workspaces": {"demo": {"root": "/dev/null"}}}, "workspaces.demo.root: takes a dir"),
        ({"workspaces": {"demo": {"root": 1}}}, "workspaces.demo.root: "),
        ({"workspaces": {"demo": {"root": "/", "x": 1}}}, "workspaces.demo.x: is not a setting"),
        (
            {"workspaces": {"demo": {"root": "/", "profil": "x"}}},
            "workspaces.demo.profil: is not a setting (did you mean profile?)",
        ),
        ({"workspaces": {"demo": {"root": "/", "profile": "rw"}}}, "workspaces.demo.profile: "),
        ({"workspaces": {"demo": {"root": "/", "network": "on"}}}, "workspaces.demo.network: "),
        ({"workspaces": {"demo": {"root": "/", "approvals": "ask"}}}, "workspaces.demo.approvals"),
        ({"approvals_granted_by": "nobody"}, "approvals_granted_by"),
        (
            {"workspaces": {"demo": {"root": "/", "approvals_granted_by": "me"}}},
            "workspaces.demo.approvals_granted_by",
        ),
    ],
)
def test_a_bad_setting_is_refused_by_its_key(
    tmp_path: Path, settings: dict[str, object], key: str
) -> None:
    assert key in refusal(tmp_path, **settings)


def test_every_bad_setting_is_named_at_once(tmp_path: Path) -> None:
    text = refusal(tmp_path, http_port=-1, nonsense=1)
    assert "http_port: " in text
    assert "nonsense: " in text


def test_a_refusal_says_what_the_key_takes_and_not_what_it_got(tmp_path: Path) -> None:
    workspaces = {"demo": {"root": str(tmp_path), "profile": TOKEN}}
    text = refusal(tmp_path, log_level=TOKEN, http_port=TOKEN, workspaces=workspaces)
    assert "'read-only' or 'workspace-write'" in text
    assert "'DEBUG', 'INFO', 'WARNING' or 'ERROR'" in text
    assert TOKEN not in text


# The address.


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "192.0.2.1", "example.org", "127.1", ""])
def test_a_public_address_without_a_token_is_refused(tmp_path: Path, host: str) -> None:
    assert "http_host is not a loopback address" in refusal(tmp_path, http_host=host)


@pytest.mark.parametrize("more", [{"http_token": TOKEN}, {"http_allow_insecure_bind": True}])
def test_a_public_address_takes_a_token_or_insistence(
    tmp_path: Path, more: dict[str, object]
) -> None:
    assert configured(tmp_path, http_host="0.0.0.0", **more).settings.http_host == "0.0.0.0"


@pytest.mark.parametrize("host", ["127.0.0.1", "127.9.9.9", "::1", "[::1]", "localhost"])
def test_a_loopback_address_needs_no_token(tmp_path: Path, host: str) -> None:
    assert configured(tmp_path, http_host=host).settings.http_host == host


@pytest.mark.parametrize(
    "hosts", [["a.example"], ["a.example:8443", "[2001:db8::1]:1", "2001:db8::1", "192.0.2.1"], []]
)
def test_public_names_are_taken_with_and_without_a_port(tmp_path: Path, hosts: list[str]) -> None:
    settings = configured(tmp_path, http_allowed_hosts=hosts).settings
    assert settings.http_allowed_hosts == tuple(hosts)


# The environment and the flags.


def test_every_variable_is_a_setting(tmp_path: Path) -> None:
    settings = load(
        path=str(tmp_path),
        environ={
            "CODESPACE_APPROVALS_GRANTED_BY": "operator",
            "CODESPACE_OPERATIONS_DB": "ledger.db",
            "CODESPACE_HTTP_HOST": "0.0.0.0",
            "CODESPACE_HTTP_PORT": "0",
            "CODESPACE_HTTP_TOKEN": TOKEN,
            "CODESPACE_HTTP_ALLOWED_HOSTS": "a.example, b.example:1,",
            "CODESPACE_HTTP_ALLOW_INSECURE_BIND": "false",
            "CODESPACE_PROCESS_TIMEOUT_SECS": "1.5",
            "CODESPACE_MAX_PROCESSES": "3",
            "CODESPACE_RUNNER": "uds",
            "CODESPACE_PROCESS_ENVIRONMENT_PASS": "CI,TERM",
            "CODESPACE_LOG_LEVEL": "DEBUG",
        },
    ).settings
    assert settings.model_dump(exclude={"workspaces", "codemode"}) == {
        "approvals_granted_by": "operator",
        "operations_db": "ledger.db",
        "http_host": "0.0.0.0",
        "http_port": 0,
        "http_token": TOKEN,
        "http_allowed_hosts": ("a.example", "b.example:1"),
        "http_allow_insecure_bind": False,
        "process_timeout_secs": 1.5,
        "max_processes": 3,
        "runner": "uds",
        "process_environment": {},
        "process_environment_pass": ("CI", "TERM"),
        "log_level": "DEBUG",
    }


@pytest.mark.parametrize("text", ["1", "true", "TRUE"])
def test_a_switch_is_on_in_words_and_in_numbers(tmp_path: Path, text: str) -> None:
    environ = {"CODESPACE_HTTP_ALLOW_INSECURE_BIND": text}
    assert load(path=str(tmp_path), environ=environ).settings.http_allow_insecure_bind


@pytest.mark.parametrize(
    ("name", "text", "said"),
    [
        (
            "CODESPACE_HTTP_PROT",
            "1",
            "CODESPACE_HTTP_PROT is not a setting (did you mean CODESPACE_HTTP_PORT?)",
        ),
        ("CODESPACE_CONFIGURATION", "x", "(did you mean CODESPACE_CONFIG?)"),
        ("CODESPACE_HTTP_PROT", "", "CODESPACE_HTTP_PROT is not a setting"),
        (
            "CODESPACE_http_port",
            "1",
            "CODESPACE_http_port is not a setting (did you mean CODESPACE_HTTP_PORT?)",
        ),
        ("CODESPACE_WORKSPACES", "{}", "CODESPACE_WORKSPACES is not a setting"),
        ("CODESPACE_PROCESS_ENVIRONMENT", "A=b", "is not a setting"),
        ("CODESPACE_", "1", "CODESPACE_ is not a setting"),
        ("CODESPACE_HTTP_PORT", "http", "CODESPACE_HTTP_PORT takes a number"),
        ("CODESPACE_HTTP_PORT", "1.5", "CODESPACE_HTTP_PORT takes a number"),
        ("CODESPACE_HTTP_PORT", "70000", "http_port: "),
        ("CODESPACE_PROCESS_TIMEOUT_SECS", "soon", "takes a number"),
        ("CODESPACE_PROCESS_TIMEOUT_SECS", "nan", "process_timeout_secs: "),
        ("CODESPACE_HTTP_ALLOW_INSECURE_BIND", "yes", "takes true or false"),
        ("CODESPACE_HTTP_TOKEN", "", "http_token: "),
        ("CODESPACE_RUNNER", "ssh", "runner: "),
        ("CODESPACE_CONFIG", "/no/such/file", "cannot be read"),
    ],
)
def test_a_bad_variable_is_refused_by_name(tmp_path: Path, name: str, text: str, said: str) -> None:
    assert said in environment_refusal(tmp_path, **{name: text})


def test_an_empty_variable_is_as_good_as_none(tmp_path: Path) -> None:
    environ = {"CODESPACE_HTTP_PORT": "", "CODESPACE_OPERATIONS_DB": "", "CODESPACE_CONFIG": ""}
    settings = load(path=str(tmp_path), environ=environ).settings
    assert (settings.http_port, settings.operations_db) == (8787, None)


def test_variables_of_others_with_our_prefix_are_let_be(tmp_path: Path) -> None:
    environ = {"CODESPACE_NAME": "orange-disco", "CODESPACE_VSCODE_FOLDER": "/w", "CODESPACES": "1"}
    assert load(path=str(tmp_path), environ=environ).workspace_ids == ("default",)


def test_a_flag_wins_over_the_environment_and_the_environment_over_the_file(
    tmp_path: Path,
) -> None:
    config = written(tmp_path, http_port=1, max_processes=1, process_timeout_secs=1)
    environ = {"CODESPACE_HTTP_PORT": "2", "CODESPACE_MAX_PROCESSES": "2"}
    flags: Mapping[str, object] = {"http_port": 3, "log_level": None}
    settings = load(config=config, environ=environ, flags=flags).settings
    assert (settings.http_port, settings.max_processes, settings.process_timeout_secs) == (3, 2, 1)
    assert settings.log_level == "WARNING"


def test_a_named_file_wins_over_the_variable_that_names_one(tmp_path: Path) -> None:
    environ = {"CODESPACE_CONFIG": "/no/such/file"}
    assert load(config=written(tmp_path), environ=environ).workspace_ids == ("demo",)


def test_the_variable_names_the_file(tmp_path: Path) -> None:
    environ = {"CODESPACE_CONFIG": written(tmp_path)}
    assert load(environ=environ).workspace_ids == ("demo",)


def test_the_processs_own_environment_is_read_when_none_is_given(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CODESPACE_HTTP_PORT", "4321")
    assert load(path=str(tmp_path)).settings.http_port == 4321


# The token.


def test_the_token_is_in_no_text_of_the_settings(tmp_path: Path) -> None:
    loaded = configured(tmp_path, http_token=TOKEN, process_environment={"KEY": TOKEN})
    assert loaded.settings.http_token == TOKEN
    for text in (repr(loaded), str(loaded), repr(loaded.settings), str(loaded.settings)):
        assert TOKEN not in text


@pytest.mark.parametrize("token", ["short-secret", f"{TOKEN} {TOKEN}", f"{TOKEN}é"])
def test_the_token_is_in_no_refusal(tmp_path: Path, token: str) -> None:
    for text in (
        refusal(tmp_path, http_token=token),
        refusal(tmp_path, http_token={"value": token}),
        refusal(tmp_path, http_token=token, http_host="0.0.0.0", nonsense=token),
        environment_refusal(tmp_path, CODESPACE_HTTP_TOKEN=token, CODESPACE_HTTP_PORT="x"),
        environment_refusal(tmp_path, CODESPACE_HTTP_TOKEN=token),
    ):
        assert token not in text


def test_a_refusal_hides_the_error_that_holds_the_values(tmp_path: Path) -> None:
    with pytest.raises(SettingsError) as caught:
        configured(tmp_path, http_token="short-secret")
    assert caught.value.__cause__ is None
    assert caught.value.__suppress_context__


def test_a_token_file_is_read_without_its_newline(tmp_path: Path) -> None:
    (tmp_path / "token").write_text(f"{TOKEN}\n", encoding="utf-8")
    assert read_token_file(str(tmp_path / "token")) == TOKEN


@pytest.mark.parametrize("content", [None, b"\xff\xfe"])
def test_a_token_file_that_cannot_be_read_is_refused(tmp_path: Path, content: bytes | None) -> None:
    if content is not None:
        (tmp_path / "token").write_bytes(content)
    with pytest.raises(SettingsError, match="token file"):
        read_token_file(str(tmp_path / "token"))


# What must be apart.


def split_config(tmp_path: Path, profile: str = "workspace-write", **settings: object) -> str:
    """Write a configuration with one workspace beside it, and return its name."""
    workspaces = {"demo": {"root": str(root_of(tmp_path)), "profile": profile}}
    return written(tmp_path, workspaces=workspaces, **settings)


@pytest.mark.parametrize("profile", ["read-only", "workspace-write"])
@pytest.mark.parametrize(
    "place", ["root/l.db", "root/deep/new/l.db", "x/../root/l.db", "into/l.db", "root/out/l.db"]
)
def test_a_ledger_that_clients_could_reach_is_refused(
    tmp_path: Path, profile: str, place: str
) -> None:
    config = split_config(tmp_path, profile, operations_db=str(tmp_path / place))
    (tmp_path / "x").mkdir()
    (tmp_path / "into").symlink_to("root")
    (tmp_path / "root" / "out").symlink_to(tmp_path / "x")
    with pytest.raises(SettingsError, match=r"operations_db: .*'demo'.*outside of every workspace"):
        load(config=config, environ=BARE)


def test_a_ledger_beside_the_workspace_is_taken(tmp_path: Path) -> None:
    place = str(tmp_path / "root-of-it" / "l.db")
    config = split_config(tmp_path, operations_db=place)
    assert load(config=config, environ=BARE).settings.operations_db == place


def test_a_relative_ledger_in_the_served_directory_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(SettingsError, match=r"operations_db: 'ledger\.db' lies in"):
        load(path=".", environ={"CODESPACE_OPERATIONS_DB": "ledger.db"})


@pytest.mark.parametrize("profile", ["read-only", "workspace-write"])
def test_a_token_file_that_clients_could_read_is_refused(tmp_path: Path, profile: str) -> None:
    config = split_config(tmp_path, profile)
    (tmp_path / "root" / "token").write_text(TOKEN, encoding="utf-8")
    (tmp_path / "token").symlink_to("root/token")
    with pytest.raises(SettingsError, match=r"http_token_file: .*lies in the workspace") as caught:
        load(config=config, token_file=str(tmp_path / "token"), environ=BARE)
    assert TOKEN not in str(caught.value)


def test_a_token_file_wins_over_the_variable(tmp_path: Path) -> None:
    (tmp_path / "token").write_text(f"{TOKEN}-of-the-file", encoding="utf-8")
    loaded = load(
        config=split_config(tmp_path),
        token_file=str(tmp_path / "token"),
        environ={"CODESPACE_HTTP_TOKEN": TOKEN},
    )
    assert loaded.settings.http_token == f"{TOKEN}-of-the-file"


@pytest.mark.parametrize(
    ("profile", "more", "taken"),
    [
        ("read-only", {}, True),
        ("read-only", {"http_token": TOKEN}, False),
        ("read-only", {"process_environment": {"A": "b"}}, False),
        ("workspace-write", {}, False),
    ],
)
def test_a_configuration_in_a_workspace_is_one_that_clients_may_see_and_not_change(
    tmp_path: Path, profile: str, more: dict[str, object], *, taken: bool
) -> None:
    workspaces = {"demo": {"root": str(tmp_path), "profile": profile}}
    config = written(tmp_path, workspaces=workspaces, **more)
    if taken:
        assert load(config=config, environ=BARE).workspace_ids == ("demo",)
        return
    with pytest.raises(SettingsError, match=r"configuration: .*lies in the workspace 'demo'"):
        load(config=config, environ=BARE)


@pytest.mark.parametrize("again", ["a", "a/.", "a/../a", "other"])
def test_a_directory_is_registered_once(tmp_path: Path, again: str) -> None:
    (tmp_path / "a").mkdir()
    (tmp_path / "other").symlink_to("a")
    workspaces = {"one": {"root": f"{tmp_path}/a"}, "two": {"root": f"{tmp_path}/{again}"}}
    text = refusal(tmp_path, workspaces=workspaces)
    assert text == (
        "workspaces.two.root: is the same directory as that of 'one'; register each directory once"
    )


@pytest.mark.parametrize(
    ("outer", "inner", "taken"),
    [
        ("read-only", "read-only", True),
        ("read-only", "workspace-write", True),
        ("workspace-write", "read-only", False),
        ("workspace-write", "workspace-write", False),
    ],
)
def test_a_workspace_lies_in_another_only_where_nobody_can_move_it(
    tmp_path: Path, outer: str, inner: str, *, taken: bool
) -> None:
    (tmp_path / "a" / "b").mkdir(parents=True)
    workspaces = {
        "inner": {"root": str(tmp_path / "a" / "b"), "profile": inner},
        "outer": {"root": str(tmp_path / "a"), "profile": outer},
    }
    if taken:
        assert configured(tmp_path, workspaces=workspaces).workspace_ids == ("inner", "outer")
        return
    text = refusal(tmp_path, workspaces=workspaces)
    assert text.startswith("workspaces.inner.root: lies in the workspace 'outer'")
    assert "make 'outer' read-only" in text


# What commands get.


def test_commands_get_what_the_operator_passes_and_nothing_else(tmp_path: Path) -> None:
    config = written(
        tmp_path, process_environment={"A": "own"}, process_environment_pass=["CI", "MISSING", "A"]
    )
    environ = {**BARE, "CI": "1", "A": "inherited", "SECRET": "s", "CODESPACE_HTTP_TOKEN": TOKEN}
    variables = load(config=config, environ=environ).environment.variables(tty=False)
    assert variables["CI"] == "1"
    assert variables["A"] == "own"
    assert (variables["PATH"], variables["HOME"]) == ("/usr/bin", "/home/op")
    assert not {"SECRET", "MISSING", "CODESPACE_HTTP_TOKEN"} & set(variables)


def test_commands_get_a_path_and_a_home_when_the_gateway_has_none(tmp_path: Path) -> None:
    variables = load(path=str(tmp_path), environ={}).environment.variables(tty=False)
    assert variables["HOME"] == "/"
    assert "/usr/bin" in variables["PATH"]
