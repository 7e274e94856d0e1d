"""`workspace_info`: every field, and whether it is true."""

from importlib.metadata import version
from pathlib import Path

import pytest

from codespace.domain.errors import ErrorCode
from contract.houses import CONTAINER, READ_ONLY, House, over_stdio
from contract.servers import write_config
from contract.session import Session, Space

pytestmark = pytest.mark.anyio

TOOLS = [
    "workspace_info",
    "read",
    "find",
    "grep",
    "apply_patch",
    "operation_status",
    "exec_command",
    "read_process",
    "process_status",
    "write_stdin",
    "process_resize",
    "terminate_process",
    "bash",
    "approval_create",
    "approval_resolve",
    "operation_resume",
    "codemode",
    "codemode_status",
    "codemode_cancel",
    "work_open",
    "steer_status",
    "steer_claim_next",
    "steer_complete",
    "work_finish",
]
COMMON = {
    "server",
    "version",
    "internal_model_calls",
    "tools_exposed",
    "transports",
    "workspace_id_is_credential",
    "note",
}
KIB = 1024


@pytest.mark.requirement("info.gateway", "info.list", "info.id-is-no-credential")
async def test_without_an_id_the_gateway_and_all_workspaces_are_told(
    cell: tuple[House, Session],
) -> None:
    house, session = cell
    reply = await session.call("workspace_info")
    assert reply.keys == {*COMMON, "workspaces"}
    assert reply["server"] == "codespace"
    assert reply["version"] == version("codespace")
    assert reply["internal_model_calls"] is False
    assert reply["tools_exposed"] == TOOLS
    assert reply["transports"] == ["http" if house.server else "stdio"]
    assert reply["workspace_id_is_credential"] is False
    assert reply.text("note")
    listed = {item["workspace_id"]: item["profile"] for item in reply.each("workspaces")}
    assert listed[READ_ONLY] == "read-only"
    assert listed[CONTAINER] == "workspace-write"
    # A test about a root that was moved away leaves a directory that nobody registered.
    here = {path.name for path in house.directory.iterdir()}
    assert set(listed) == {name.removesuffix("-moved") for name in here}


async def test_the_exposed_tools_are_those_that_are_listed(
    cell: tuple[House, Session],
) -> None:
    _, session = cell
    listed = await session.client.list_tools()
    assert [tool.name for tool in listed.tools] == TOOLS


@pytest.mark.requirement("info.one", "info.id-is-no-credential")
async def test_with_an_id_one_workspace_is_told(space: Space) -> None:
    reply = await space.call("workspace_info")
    assert reply.keys == {*COMMON, "workspace_id", "profile", "root", "execution"}
    assert reply["workspace_id"] == space.id
    assert reply["workspace_id_is_credential"] is False
    assert reply["profile"] == "workspace-write"
    assert reply["root"] == str(space.root)


@pytest.mark.requirement(
    "info.environment", "info.permissions", "info.files", "info.process", "info.capabilities"
)
async def test_a_writable_workspace_tells_all_that_works(space: Space) -> None:
    execution = (await space.call("workspace_info")).at("execution")
    assert execution["environment"] == {
        "kind": "host",
        "client_selectable": False,
        "exec_supported": True,
        "file_read_supported": True,
        "file_write_supported": True,
    }
    assert execution["permissions"] == {"read": True, "write": True, "exec": True}
    files = execution.at("files").body
    assert files == {key: {"available": True} for key in ("read", "find", "grep", "patch")}
    assert execution["process"] == {
        "available": True,
        "capabilities": {
            "handles": True,
            "survives_request_end": True,
            "write_stdin": True,
            "incremental_read": True,
            "terminate": True,
            "output_combined": True,
            "lifetime": {
                "owner": "runner-instance",
                "survives_client_disconnect": True,
                "survives_runner_restart": False,
            },
            "tty": {
                "supported": True,
                "default": False,
                "initial_rows": 24,
                "initial_cols": 80,
                "resize_supported": True,
            },
        },
    }


@pytest.mark.requirement(
    "info.serialization", "info.isolation", "info.network", "info.approvals", "info.tells-the-truth"
)
async def test_what_is_not_enforced_is_not_called_enforced(space: Space) -> None:
    execution = (await space.call("workspace_info")).at("execution")
    assert execution["serialization"] == {
        "live_process_holds_mutation_lease": True,
        "parallel_exec": False,
        "read_while_process_live": True,
        "find_while_process_live": True,
        "patch_while_process_live": False,
        "conflict_error": "WORKSPACE_BUSY",
    }
    isolation = execution.at("isolation")
    assert isolation["file_tools_workspace_scoped"] is True
    assert isolation["command_sandbox"] == "none"
    assert execution["network"] == {
        "policy": "restricted",
        "enforcement": "none",
        "client_may_escalate": False,
    }
    assert (execution["approvals"], execution["approvals_granted_by"]) == ("off", "caller")
    # And it is so: a command sees what lies outside.
    outside = await space.call("bash", command=f"ls {space.root.parent} | grep -c .")
    assert int(outside.text("output")) > 1


@pytest.mark.requirement("info.permissions", "info.process", "workspaces.read-only-permits-looking")
async def test_a_read_only_workspace_says_so_and_keeps_to_it(looking: Space) -> None:
    info = await looking.call("workspace_info")
    assert info["profile"] == "read-only"
    execution = info.at("execution")
    assert execution["permissions"] == {"read": True, "write": False, "exec": False}
    assert execution["files"] == {
        "read": {"available": True},
        "find": {"available": True},
        "grep": {"available": True},
        "patch": {"available": False},
    }
    assert execution["process"] == {"available": False}
    assert execution["environment", "exec_supported"] is True
    assert (await looking.call("read", path="kept.txt"))["content"] == "kept\n"
    assert (await looking.call("find"))["paths"] == ["kept.txt"]
    assert len((await looking.call("grep", pattern="kept")).list("matches")) == 1
    add = ("*** Add File: a.txt", "+a")
    await looking.patch_refused(ErrorCode.UNAUTHORIZED, *add)
    await looking.patch_refused(ErrorCode.UNAUTHORIZED, *add, check_only=True)
    await looking.refused(ErrorCode.UNAUTHORIZED, "exec_command", command=["true"])
    await looking.refused(ErrorCode.UNAUTHORIZED, "bash", command="true")
    assert looking.tree() == {"kept.txt": b"kept\n"}


@pytest.mark.requirement("workspaces.container-fails-closed", "info.environment")
async def test_a_workspace_without_a_backend_says_so_and_refuses_everything(
    contained: Space,
) -> None:
    execution = (await contained.call("workspace_info")).at("execution")
    assert execution["environment"] == {
        "kind": "linux-container",
        "client_selectable": False,
        "exec_supported": False,
        "file_read_supported": False,
        "file_write_supported": False,
    }
    assert execution["permissions"] == {"read": False, "write": False, "exec": False}
    files = execution["files"]
    assert files == {key: {"available": False} for key in ("read", "find", "grep", "patch")}
    assert execution["process"] == {"available": False}
    calls: dict[str, dict[str, object]] = {
        "read": {"path": "kept.txt"},
        "find": {},
        "grep": {"pattern": "x"},
        "apply_patch": {"patch": "x"},
        "exec_command": {"command": ["true"]},
        "bash": {"command": "true"},
    }
    for tool, arguments in calls.items():
        await contained.refused(ErrorCode.UNAUTHORIZED, tool, **arguments)


@pytest.mark.requirement("info.available-is-not-occupancy")
async def test_what_is_available_does_not_change_while_a_process_lives(space: Space) -> None:
    idle = await space.call("workspace_info")
    process_id = await space.start("sleep", "600")
    assert (await space.call("workspace_info")).body == idle.body
    await space.session.call("terminate_process", process_id=process_id)


@pytest.mark.requirement("info.limits", "config.defaults")
async def test_the_limits_of_the_contract_are_in_force(space: Space) -> None:
    limits = (await space.call("workspace_info")).at("execution", "limits").body
    promised = {
        "read_max_bytes": 1024 * KIB,
        "read_default_bytes": 512 * KIB,
        "find_max_paths": 10_000,
        "find_default_paths": 1_000,
        "grep_max_matches": 2_000,
        "grep_default_matches": 200,
        "grep_max_context": 10,
        "result_text_max_bytes": 256 * KIB,
        "process_timeout_ms": 30_000,
        "max_processes": 8,
        "output_kept_bytes": 256 * KIB,
        "wait_max_ms": 30_000,
        "tty_max_size": 1_000,
        "finished_processes_kept": 64,
        "finished_process_kept_ms": 15 * 60 * 1_000,
        "bash_output_max_lines": 2_000,
        "bash_output_max_bytes": 50 * KIB,
    }
    assert {name: limits.get(name) for name in promised} == promised
    assert all(isinstance(value, int) and value > 0 for value in limits.values())


@pytest.mark.requirement("info.limits", "workspaces.network", "workspaces.profile")
async def test_the_operators_own_limits_and_policy_are_told(tmp_path: Path, root: Path) -> None:
    (tmp_path / "plain").mkdir()
    config = write_config(
        tmp_path / "codespace.json",
        {
            "plain": {"root": str(tmp_path / "plain")},
            "open": {"root": str(root), "profile": "workspace-write", "network": "enabled"},
        },
        process_timeout_secs=12.5,
        max_processes=3,
    )
    async with over_stdio(config) as session:
        plain = await session.call("workspace_info", workspace_id="plain")
        assert plain["profile"] == "read-only"
        execution = plain.at("execution")
        assert execution["limits", "process_timeout_ms"] == 12_500
        assert execution["limits", "max_processes"] == 3
        assert execution["network", "policy"] == "restricted"
        assert (execution["approvals"], execution["environment", "kind"]) == ("off", "host")
        opened = await session.call("workspace_info", workspace_id="open")
        assert opened["execution", "network"] == {
            "policy": "enabled",
            "enforcement": "none",
            "client_may_escalate": False,
        }


@pytest.mark.requirement("workspaces.a-client-can-only-select")
async def test_no_tool_registers_a_workspace_or_changes_its_policy(
    cell: tuple[House, Session], tmp_path: Path
) -> None:
    _, session = cell
    listed = await session.client.list_tools()
    given = {name for tool in listed.tools for name in tool.input_schema["properties"]}
    assert not given & {"root", "profile", "network", "approvals", "environment", "approved"}
    await session.refused(
        ErrorCode.WORKSPACE_NOT_FOUND,
        "read",
        workspace_id=str(tmp_path),
        root=str(tmp_path),
        path="x",
    )
