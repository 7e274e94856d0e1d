"""Files, variables and flags; what is refused at start; and what the gateway leaves on disk."""

import json
import stat
from pathlib import Path

import pytest

from codespace.settings import load
from contract.houses import over_http, over_stdio
from contract.raw import raw_stdio
from contract.servers import RefusedStart, run, serving, write_config
from contract.session import Space

pytestmark = pytest.mark.anyio


@pytest.mark.requirement("config.json-and-toml", "config.flag-and-variable")
@pytest.mark.parametrize("suffix", ["json", "toml"])
@pytest.mark.parametrize("how", ["flag", "variable"])
def test_a_file_is_named_by_flag_or_variable(
    tmp_path: Path, root: Path, suffix: str, how: str
) -> None:
    file = tmp_path / f"settings.{suffix}"
    text = (
        json.dumps({"workspaces": {"demo": {"root": str(root)}}})
        if suffix == "json"
        else f'[workspaces.demo]\nroot = "{root}"\n'
    )
    file.write_text(text, encoding="utf-8")
    flags = ("--config", str(file)) if how == "flag" else ()
    variables = {"CODESPACE_CONFIG": str(file)} if how == "variable" else {}
    with raw_stdio(tmp_path / "stderr.txt", *flags, variables=variables) as gateway:
        gateway.open()
        info = gateway.call("workspace_info", {})
        assert info["workspaces"] == [{"workspace_id": "demo", "profile": "read-only"}]


@pytest.mark.requirement("config.zero")
def test_a_path_is_the_writable_workspace_default(tmp_path: Path, root: Path) -> None:
    with raw_stdio(tmp_path / "stderr.txt", str(root)) as gateway:
        gateway.open()
        info = gateway.call("workspace_info", {"workspace_id": "default"})
        assert (info["profile"], info["root"]) == ("workspace-write", str(root))
        listed = gateway.call("workspace_info", {})
        assert listed["workspaces"] == [{"workspace_id": "default", "profile": "workspace-write"}]


@pytest.mark.requirement("config.current-directory", "config.memory-ledger-warns")
def test_without_anything_it_is_the_current_directory_and_a_ledger_in_memory(
    tmp_path: Path, root: Path
) -> None:
    with raw_stdio(tmp_path / "stderr.txt", cwd=root) as gateway:
        gateway.open()
        info = gateway.call("workspace_info", {"workspace_id": "default"})
        assert (info["profile"], info["root"]) == ("workspace-write", str(root))
        assert "nothing survives a restart" in gateway.said()
        assert gateway.leave() == (0, b"")
    assert list(root.iterdir()) == []


@pytest.mark.requirement("config.memory-ledger-warns")
def test_with_a_ledger_there_is_no_warning(tmp_path: Path, root: Path) -> None:
    ledger = ("--operations-db", str(tmp_path / "ledger.db"))
    with raw_stdio(tmp_path / "stderr.txt", str(root), *ledger) as gateway:
        gateway.open()
        assert gateway.leave() == (0, b"")
        assert gateway.said() == ""


@pytest.mark.requirement("config.settings-in-three-places", "config.token-flag-is-a-file")
def test_every_setting_is_in_the_file_in_the_environment_and_a_flag(root: Path) -> None:
    values: dict[str, object] = {
        "operations_db": "/some/where.db",
        "http_host": "127.0.0.1",
        "http_port": 1234,
        "http_token": "a-token-of-the-operator",
        "process_timeout_secs": 7.5,
        "max_processes": 3,
        "runner": "in-process",
    }
    file = root.with_name("settings.json")
    workspaces = {"demo": {"root": str(root)}}
    write_config(file, workspaces, **values)
    from_file = load(config=str(file), environ={}).settings
    variables = {f"CODESPACE_{key.upper()}": str(value) for key, value in values.items()}
    from_environment = load(path=str(root), environ=variables).settings
    for key, value in values.items():
        assert getattr(from_file, key) == getattr(from_environment, key) == value
    told = run("serve", "--help").stdout
    for key in values:
        flag = "http_token_file" if key == "http_token" else key
        assert f"--{flag.replace('_', '-')}" in told
    assert "--http-token " not in told


@pytest.mark.requirement("config.settings-in-three-places")
async def test_flags_win_over_the_environment_and_the_environment_over_the_file(
    tmp_path: Path, root: Path
) -> None:
    config = write_config(
        tmp_path / "codespace.json",
        {"default": {"root": str(root)}},
        max_processes=1,
        process_timeout_secs=1,
        http_port=1,
    )
    variables = {"CODESPACE_MAX_PROCESSES": "2", "CODESPACE_PROCESS_TIMEOUT_SECS": "2"}
    flags = ("--process-timeout-secs", "3")
    async with over_stdio(config, "2025-11-25", *flags, variables=variables) as session:
        limits = (await session.call("workspace_info", workspace_id="default")).at(
            "execution", "limits"
        )
        assert (limits["max_processes"], limits["process_timeout_ms"]) == (2, 3_000)


@pytest.mark.requirement("config.unknown-key-is-an-error", "config.bad-value-is-refused")
@pytest.mark.parametrize(
    ("change", "told"),
    [
        ({"workspace": {}}, ["workspace", "not a setting"]),
        ({"max_proceses": 3}, ["max_proceses", "not a setting"]),
        ({"workspaces": {"a": {"root": "ROOT", "profil": "x"}}}, ["workspaces.a.profil"]),
        ({"workspaces": {"a": {"root": "ROOT", "profile": "admin"}}}, ["workspaces.a.profile"]),
        ({"workspaces": {"a": {"root": "ROOT", "network": True}}}, ["workspaces.a.network"]),
        ({"workspaces": {"a": {"root": "ROOT", "approvals": "no"}}}, ["workspaces.a.approvals"]),
        ({"workspaces": {"a": {"root": "ROOT", "environment": "vm"}}}, ["workspaces.a.environ"]),
        ({"workspaces": {"a": {}}}, ["workspaces.a.root"]),
        ({"workspaces": {}}, ["workspaces"]),
        ({"workspaces": []}, ["workspaces"]),
        ({"max_processes": 0}, ["max_processes"]),
        ({"max_processes": "3"}, ["max_processes"]),
        ({"process_timeout_secs": -1}, ["process_timeout_secs"]),
        ({"http_port": 65_536}, ["http_port"]),
        ({"http_token": "short"}, ["http_token"]),
        ({"runner": "ssh"}, ["runner"]),
    ],
)
def test_a_bad_key_or_value_is_refused_by_name(
    tmp_path: Path,
    root: Path,
    refused_start: RefusedStart,
    change: dict[str, object],
    told: list[str],
) -> None:
    settings: dict[str, object] = {"workspaces": {"default": {"root": str(root)}}, **change}
    text = json.dumps(settings).replace("ROOT", str(root))
    (tmp_path / "codespace.json").write_text(text, encoding="utf-8")
    refusal = refused_start("--config", str(tmp_path / "codespace.json"))
    for part in told:
        assert part in refusal


@pytest.mark.requirement("config.unknown-key-is-an-error")
def test_an_unknown_key_variable_or_flag_is_refused_at_start(
    tmp_path: Path,
    root: Path,
    refused_start: RefusedStart,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    workspaces = {"default": {"root": str(root)}}
    file = write_config(tmp_path / "codespace.json", workspaces, http_prot=1)
    done = run("serve", "--config", str(file))
    assert (done.returncode, done.stdout) == (2, "")
    assert "http_prot" in done.stderr
    assert "Traceback" not in done.stderr
    assert "--http-prot" in refused_start(str(root), "--http-prot", "1")
    monkeypatch.setenv("CODESPACE_HTTP_PROT", "1")
    assert "CODESPACE_HTTP_PROT" in refused_start(str(root))


@pytest.mark.requirement(
    "config.bad-root-is-refused", "workspaces.root-is-absolute", "config.bad-file-is-refused"
)
def test_a_bad_root_or_file_is_refused_at_start_by_name(
    tmp_path: Path, root: Path, refused_start: RefusedStart
) -> None:
    (root / "file").write_text("x", encoding="utf-8")
    cases = [
        (str(root / "missing"), "directory"),
        (str(root / "file"), "directory"),
        ("relative", "absolute"),
        ("", "absolute"),
        (17, ""),
    ]
    for bad, takes in cases:
        file = tmp_path / "bad.json"
        file.write_text(json.dumps({"workspaces": {"demo": {"root": bad}}}), encoding="utf-8")
        refusal = refused_start("--config", str(file))
        assert "workspaces.demo.root" in refusal
        assert takes in refusal
    for name, text in (("a.json", "{"), ("a.toml", "= 1"), ("b.json", "[]"), ("c.json", None)):
        file = tmp_path / name
        if text is not None:
            file.write_text(text, encoding="utf-8")
        assert name in refused_start("--config", str(file))
    assert "PATH" in refused_start(str(root / "missing"))


@pytest.mark.requirement("workspaces.approvals")
def test_confirmations_are_asked_for_only_where_the_operator_wants_them(
    tmp_path: Path, root: Path
) -> None:
    file = write_config(
        tmp_path / "codespace.json", {"demo": {"root": str(root), "approvals": "confirm"}}
    )
    settings = load(config=str(file), environ={}).settings
    assert settings.workspaces["demo"].approvals.value == "confirm"
    assert settings.approvals_granted_by.value == "caller"
    off = load(path=str(root), environ={}).settings.workspaces["default"]
    assert off.approvals.value == "off"


@pytest.mark.requirement("workspaces.profile", "workspaces.environment", "config.defaults")
def test_the_defaults_are_the_careful_ones(tmp_path: Path, root: Path) -> None:
    file = write_config(tmp_path / "codespace.json", {"demo": {"root": str(root)}})
    settings = load(config=str(file), environ={}).settings
    demo = settings.workspaces["demo"]
    assert demo.profile.value == "read-only"
    assert demo.network.value == "restricted"
    assert demo.environment.value == "host"
    assert (settings.process_timeout_secs, settings.max_processes) == (30, 8)
    assert settings.runner == "in-process"
    assert settings.operations_db is None
    assert settings.http_token is None


@pytest.mark.requirement("config.state-is-private")
async def test_what_the_gateway_writes_is_its_owners_alone(
    tmp_path: Path, config: Path, root: Path
) -> None:
    ledger = tmp_path / "new" / "state" / "ledger.db"
    wrapper = ("sh", "-c", 'umask 000; exec "$@"', "sh")
    arguments = ("--config", str(config), "--operations-db", str(ledger))
    with serving(tmp_path / "stderr.txt", *arguments, wrapper=wrapper) as server:
        async with over_http(server.url) as session:
            space = Space(session, "default", root)
            await space.patch("*** Add File: a.txt", "+a", operation_key="k")
            await space.call("bash", command="seq 1 3000")
        written = [*ledger.parent.iterdir(), ledger.parent, ledger.parent.parent]
        assert {path.name for path in written} >= {"ledger.db", "ledger.db-wal", "state"}
        for path in written:
            assert stat.S_IMODE(path.stat().st_mode) & 0o077 == 0, path
        output = next((root / ".codespace" / "output").iterdir())
        assert stat.S_IMODE(output.stat().st_mode) & 0o077 == 0


@pytest.mark.requirement("config.state-is-private")
def test_a_ledger_that_others_could_read_is_made_private(tmp_path: Path, root: Path) -> None:
    ledger = tmp_path / "ledger.db"
    ledger.touch()
    ledger.chmod(0o666)
    with raw_stdio(tmp_path / "err", str(root), "--operations-db", str(ledger)) as gateway:
        gateway.open()
        assert stat.S_IMODE(ledger.stat().st_mode) == 0o600


def test_a_second_gateway_on_the_same_ledger_is_refused(tmp_path: Path, root: Path) -> None:
    ledger = ("--operations-db", str(tmp_path / "ledger.db"))
    with raw_stdio(tmp_path / "stderr.txt", str(root), *ledger) as gateway:
        gateway.open()
        done = run("serve", str(root), *ledger)
        assert (done.returncode, done.stdout) == (2, "")
        assert "ledger.db" in done.stderr
        assert str(gateway.process.pid) in done.stderr
        assert gateway.leave() == (0, b"")
    with raw_stdio(tmp_path / "stderr.txt", str(root), *ledger) as gateway:
        gateway.open()


def test_a_file_that_is_no_ledger_is_refused_and_left_alone(
    tmp_path: Path, root: Path, refused_start: RefusedStart
) -> None:
    file = tmp_path / "precious.txt"
    file.write_text("precious\n" * 1_000, encoding="utf-8")
    assert "precious.txt" in refused_start(str(root), "--operations-db", str(file))
    assert file.read_text(encoding="utf-8") == "precious\n" * 1_000
