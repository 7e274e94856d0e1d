"""The composition root: a gateway from settings, its errors, and its orderly end."""

import json
import logging
import re
from pathlib import Path

import anyio
import pytest

from codespace import bootstrap
from codespace.bootstrap import (
    FILE_THREADS,
    MEMORY_WARNING,
    NOBODY_GRANTS,
    VERSION,
    Gateway,
    open_gateway,
)
from codespace.domain.errors import CodeSpaceError, ErrorCode
from codespace.domain.ids import ProcessId, WorkspaceId
from codespace.domain.limits import Limits
from codespace.domain.tool import Json
from codespace.gateway.dispatch import UnknownToolError
from codespace.runner.uds import UdsRunner
from codespace.settings import Loaded, SettingsError, load
from codespace.store.engine import Store
from codespace.store.errors import StoreError
from doubles.fake_runner import FakeRunner, unknown_process

pytestmark = pytest.mark.anyio

DEFAULT = WorkspaceId("default")
ADD = "*** Begin Patch\n*** Add File: new.txt\n+hello\n*** End Patch"


def loaded(root: Path, **settings: object) -> Loaded:
    """Settings of one writable workspace named `default`."""
    return load(path=str(root), flags=settings, environ={"PATH": "/usr/bin:/bin"})


def below(directory: Path, name: str) -> Path:
    """Make a directory and return it."""
    made = directory / name
    made.mkdir()
    return made


async def test_a_call_returns_its_result_or_raises_its_error(tmp_path: Path) -> None:
    async with open_gateway(loaded(tmp_path)) as gateway:
        found = await gateway.call("find", {"workspace_id": "default"})
        assert found == {"paths": [], "truncated": False}
        with pytest.raises(CodeSpaceError) as caught:
            await gateway.call("read", {"workspace_id": "default", "path": "none"})
        assert caught.value.code is ErrorCode.FILE_NOT_FOUND
        with pytest.raises(UnknownToolError):
            await gateway.call("no_such_tool", {})


async def test_what_the_block_raises_leaves_it_as_it_is(tmp_path: Path) -> None:
    with pytest.raises(KeyError, match="mine"):
        async with open_gateway(loaded(tmp_path)):
            raise KeyError("mine")


async def test_every_tool_is_exposed_under_its_own_name(tmp_path: Path) -> None:
    async with open_gateway(loaded(tmp_path), transports=("stdio",)) as gateway:
        info = await gateway.call("workspace_info", {"workspace_id": "default"})
        assert info["tools_exposed"] == list(gateway.toolbox.names)
    assert (info["version"], info["transports"]) == (VERSION, ["stdio"])
    assert re.fullmatch(r"\d+\.\d+\.\d+", VERSION)


async def test_huge_reads_do_not_hold_up_the_output_of_a_command(tmp_path: Path) -> None:
    with (tmp_path / "huge").open("wb") as huge:
        huge.truncate(1024**4)
    looking = {"workspace_id": "default", "path": "huge"}
    text = {"workspace_id": "default", "command": "yes | head -c 200000"}
    async with open_gateway(loaded(tmp_path)) as gateway, anyio.create_task_group() as tasks:
        for _ in range(2 * FILE_THREADS):
            tasks.start_soon(gateway.call, "read", looking)
        with anyio.fail_after(gateway.limits.grep_timeout_ms / 1_000 / 2):
            assert (await gateway.call("bash", text))["full_output_path"]
        tasks.cancel_scope.cancel()


async def test_the_operators_limits_are_in_force(tmp_path: Path) -> None:
    settings = loaded(tmp_path, max_processes=1, process_timeout_secs=0.25)
    async with open_gateway(settings) as gateway:
        assert (gateway.limits.max_processes, gateway.limits.process_timeout_ms) == (1, 250)
        answer = await gateway.call("bash", {"workspace_id": "default", "command": "sleep 60"})
    assert answer["termination"] == "timeout"


async def test_ids_are_of_the_contracts_form_and_no_two_are_alike(tmp_path: Path) -> None:
    async with open_gateway(loaded(tmp_path)) as gateway:
        answers = [
            await gateway.call("bash", {"workspace_id": "default", "command": "true"})
            for _ in range(2)
        ]
        patched = await gateway.call("apply_patch", {"workspace_id": "default", "patch": ADD})
    ids = {str(answer["process_id"]) for answer in answers}
    assert len(ids) == 2
    assert all(re.fullmatch(r"proc-[\w-]{22}", process_id) for process_id in ids)
    assert re.fullmatch(r"op-[\w-]{22}", str(patched["operation_id"]))


async def test_the_end_of_the_gateway_is_the_end_of_its_processes(tmp_path: Path) -> None:
    answers: list[Json] = []

    async def call(gateway: Gateway) -> None:
        command = "touch begun; sleep 600"
        answers.append(await gateway.call("bash", {"workspace_id": "default", "command": command}))

    async with anyio.create_task_group() as tasks, open_gateway(loaded(tmp_path)) as gateway:
        tasks.start_soon(call, gateway)
        with anyio.fail_after(20):
            while not (tmp_path / "begun").exists():
                await anyio.sleep(0.01)
    # The call was told the truth about its command, and did not fail with the gateway.
    assert [answer["termination"] for answer in answers] in (["terminated"], ["unknown"])


async def test_a_ledger_in_a_file_is_remembered_by_the_next_gateway(tmp_path: Path) -> None:
    root = tmp_path / "root"
    root.mkdir()
    settings = loaded(root, operations_db=str(tmp_path / "ledger.db"))
    patch = {"workspace_id": "default", "patch": ADD, "operation_key": "k"}
    async with open_gateway(settings) as gateway:
        first = await gateway.call("apply_patch", patch)
    async with open_gateway(settings) as gateway:
        again = await gateway.call("apply_patch", patch)
    assert again == {**first, "replayed": True}


async def test_a_ledger_that_is_something_else_is_refused(tmp_path: Path) -> None:
    place = tmp_path / "ledger.db"
    place.write_text("no database " * 500, encoding="utf-8")
    with pytest.raises(StoreError):
        async with open_gateway(loaded(below(tmp_path, "root"), operations_db=str(place))):
            pass


async def test_a_gateway_that_ends_lets_go_of_its_ledger(tmp_path: Path) -> None:
    place = str(tmp_path / "ledger.db")
    async with open_gateway(loaded(below(tmp_path, "root"), operations_db=place)):
        with pytest.raises(StoreError):
            Store(place, patience_seconds=0)
    Store(place, patience_seconds=0).close()


async def test_a_root_that_went_away_meanwhile_is_refused_by_its_key(tmp_path: Path) -> None:
    root = tmp_path / "root"
    root.mkdir()
    settings = loaded(root)
    root.rmdir()
    with pytest.raises(SettingsError, match=r"workspaces\.default\.root: "):
        async with open_gateway(settings):
            pass


async def test_a_server_without_a_ledger_warns_that_nothing_survives(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async with open_gateway(loaded(tmp_path), transports=("http",)):
        pass
    assert [record.getMessage() for record in caplog.records] == [MEMORY_WARNING]
    assert caplog.records[0].levelno == logging.WARNING


@pytest.mark.parametrize(
    ("served", "token", "granted_by", "warns"),
    [
        ("stdio", True, "operator", True),
        ("http", False, "operator", True),
        ("http", True, "operator", False),
        ("stdio", False, "caller", False),
    ],
)
async def test_a_server_on_which_nobody_can_grant_says_so(
    tmp_path: Path,
    caplog: pytest.LogCaptureFixture,
    *,
    served: str,
    token: bool,
    granted_by: str,
    warns: bool,
) -> None:
    settings = loaded(
        below(tmp_path, "root"),
        operations_db=str(tmp_path / "ledger.db"),
        approvals_granted_by=granted_by,
        http_token="t" * 16 if token else None,
    )
    async with open_gateway(settings, transports=(served,)) as gateway:
        told = gateway.workspaces[DEFAULT].approvals_granted_by
        assert told.value == granted_by
        assert gateway.approvals.operator.known is token
    assert [record.getMessage() for record in caplog.records] == [NOBODY_GRANTS] * warns


@pytest.mark.parametrize("served", [("stdio",), ()])
async def test_there_is_no_warning_where_there_is_nothing_to_lose(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, served: tuple[str, ...]
) -> None:
    kept = {"operations_db": str(tmp_path / "ledger.db")} if served else {}
    async with open_gateway(loaded(below(tmp_path, "root"), **kept), transports=served):
        pass
    assert caplog.records == []


async def test_each_workspace_has_the_policy_of_its_settings(tmp_path: Path) -> None:
    config = tmp_path / "c.json"
    workspaces = {
        "looking": {"root": str(below(tmp_path, "looking"))},
        "contained": {
            "root": str(below(tmp_path, "contained")),
            "profile": "workspace-write",
            "network": "enabled",
            "environment": "linux-container",
        },
    }
    config.write_text(json.dumps({"workspaces": workspaces}), encoding="utf-8")
    async with open_gateway(load(config=str(config), environ={})) as gateway:
        codes = [
            await _refusal(gateway, "apply_patch", workspace_id="looking", patch=ADD),
            await _refusal(gateway, "find", workspace_id="contained"),
            await _refusal(gateway, "find", workspace_id="default"),
        ]
        info = await gateway.call("workspace_info", {"workspace_id": "contained"})
    assert codes == ["UNAUTHORIZED", "UNAUTHORIZED", "WORKSPACE_NOT_FOUND"]
    assert '"policy": "enabled"' in json.dumps(info)


async def _refusal(gateway: Gateway, name: str, **arguments: object) -> str:
    with pytest.raises(CodeSpaceError) as caught:
        await gateway.call(name, arguments)
    return caught.value.code.value


async def test_the_worker_process_is_a_setting_and_ends_with_the_gateway(tmp_path: Path) -> None:
    async with open_gateway(loaded(tmp_path, runner="uds")) as gateway:
        runner = gateway.runner
        assert isinstance(runner, UdsRunner)
        worker = runner.worker_pid
        parent = {"workspace_id": "default", "command": "echo done"}
        assert (await gateway.call("bash", parent))["output"] == "done\n"
        assert Path(f"/proc/{worker}").exists()
    assert not Path(f"/proc/{worker}").exists()


async def test_a_worker_that_does_not_come_up_is_a_refused_start(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("codespace.runner.child._BEGIN", "raise SystemExit(1)")
    with pytest.raises(SettingsError, match="runner: The worker process did not come up"):
        async with open_gateway(loaded(tmp_path, runner="uds")):
            pass


async def test_a_gateway_that_does_not_come_up_leaves_no_worker(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    opened: list[UdsRunner] = []
    opening = UdsRunner.open

    async def noted(*, limits: Limits, search_path: str) -> UdsRunner:
        opened.append(await opening(limits=limits, search_path=search_path))
        return opened[0]

    def broken(*_: object, **__: object) -> None:
        raise KeyError("mine")

    monkeypatch.setattr(UdsRunner, "open", noted)
    monkeypatch.setattr(bootstrap, "Patches", broken)
    with pytest.raises(KeyError, match="mine"):
        async with open_gateway(loaded(tmp_path, runner="uds")):
            pass
    assert opened[0].worker_pid is None


async def test_a_lease_outlives_a_runner_that_was_lost_before_it_could_tell() -> None:
    runner = FakeRunner()
    runner.lose("status")
    assert await bootstrap._is_live(runner, ProcessId("proc-1"))  # pyright: ignore[reportPrivateUsage] -- what the leases ask
    runner.failures["status"] = unknown_process()
    assert not await bootstrap._is_live(runner, ProcessId("proc-1"))  # pyright: ignore[reportPrivateUsage] -- as above
