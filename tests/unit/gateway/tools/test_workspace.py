"""`workspace_info` tells the truth of policy and machine."""

from dataclasses import asdict, fields, replace
from pathlib import Path
from typing import cast

import pytest

from binding import check_binding
from codespace.domain.ids import WorkspaceId
from codespace.domain.limits import Limits
from codespace.domain.run_limits import RunLimits
from codespace.domain.tool import Effect, Json, Tool
from codespace.domain.workspace import Environment, Network, Profile, Root, Workspace
from codespace.gateway.dispatch import Dispatcher
from codespace.gateway.toolbox import Toolbox
from codespace.gateway.tools.workspace import WorkspaceTools
from codespace.runner.api import Containment, RunnerFacts
from schemas import fits

pytestmark = pytest.mark.anyio

LIMITS = replace(Limits(), max_processes=3)
READING = Workspace(WorkspaceId("reading"), Root("/r", 1, 2))
WRITING = replace(
    READING,
    workspace_id=WorkspaceId("writing"),
    profile=Profile.WORKSPACE_WRITE,
    network=Network.ENABLED,
)
CONTAINED = replace(
    WRITING, workspace_id=WorkspaceId("contained"), environment=Environment.LINUX_CONTAINER
)
WORKSPACES = {item.workspace_id: item for item in (READING, WRITING, CONTAINED)}
KEPT = RunnerFacts(Containment.KEEPER, "no bubblewrap")


def tool(facts: RunnerFacts = KEPT) -> Tool:
    family = WorkspaceTools("1.2.3", ("stdio",), WORKSPACES, facts, LIMITS, lambda: ("a", "b"))
    (only,) = family.tools()
    return only


async def info(workspace_id: str | None = None, facts: RunnerFacts = KEPT) -> Json:
    asked = tool(facts)
    arguments = {} if workspace_id is None else {"workspace_id": workspace_id}
    outcome = await Dispatcher(Toolbox([asked]), WORKSPACES).call("workspace_info", arguments)
    assert not outcome.is_error
    assert fits(asked.output_schema, outcome.body)
    return outcome.body


async def execution(workspace_id: str, facts: RunnerFacts = KEPT) -> dict[str, Json]:
    return cast("dict[str, Json]", (await info(workspace_id, facts))["execution"])


def test_the_schema_and_the_binding_say_the_same() -> None:
    check_binding(tool())


def test_it_only_looks() -> None:
    assert (tool().effect, tool().idempotent) == (Effect.INSPECT, True)


async def test_without_an_id_all_are_listed_and_none_is_told_of() -> None:
    body = await info()
    assert body["workspaces"] == [
        {"workspace_id": "reading", "profile": "read-only"},
        {"workspace_id": "writing", "profile": "workspace-write"},
        {"workspace_id": "contained", "profile": "workspace-write"},
    ]
    assert not {"workspace_id", "profile", "root", "execution"} & set(body)


async def test_the_gateway_is_told_either_way() -> None:
    for body in (await info(), await info("reading")):
        assert (body["server"], body["version"]) == ("codespace", "1.2.3")
        assert body["internal_model_calls"] is False
        assert body["workspace_id_is_credential"] is False
        assert body["tools_exposed"] == ["a", "b"]
        assert body["transports"] == ["stdio"]
        assert body["note"]


async def test_with_an_id_only_that_one_is_told_of() -> None:
    body = await info("writing")
    assert (body["workspace_id"], body["profile"], body["root"]) == (
        "writing",
        "workspace-write",
        "/r",
    )
    assert "workspaces" not in body


@pytest.mark.parametrize(
    ("name", "read", "change"),
    [("reading", 1, 0), ("writing", 1, 1), ("contained", 0, 0)],
)
async def test_what_is_available_is_what_policy_permits(name: str, read: int, change: int) -> None:
    told = await execution(name)
    assert told["permissions"] == {"read": bool(read), "write": bool(change), "exec": bool(change)}
    assert told["files"] == {
        **{tool: {"available": bool(read)} for tool in ("read", "find", "grep")},
        "patch": {"available": bool(change)},
    }
    assert told["process"]["available"] is bool(change)
    assert ("capabilities" in told["process"]) is bool(change)


async def test_an_environment_without_a_backend_supports_nothing_and_says_so() -> None:
    assert (await execution("contained"))["environment"] == {
        "kind": "linux-container",
        "client_selectable": False,
        "exec_supported": False,
        "file_read_supported": False,
        "file_write_supported": False,
    }


async def test_the_host_supports_everything_whatever_the_profile() -> None:
    environment = (await execution("reading"))["environment"]
    assert environment["kind"] == "host"
    assert environment["exec_supported"]
    assert environment["file_write_supported"]


async def test_the_network_policy_is_told_and_not_called_enforced() -> None:
    for name, policy in (("reading", "restricted"), ("writing", "enabled")):
        assert (await execution(name))["network"] == {
            "policy": policy,
            "enforcement": "none",
            "client_may_escalate": False,
        }


async def test_containment_is_told_apart_from_a_sandbox() -> None:
    assert (await execution("writing"))["isolation"] == {
        "file_tools_workspace_scoped": True,
        "command_sandbox": "none",
        "command_containment": "keeper",
        "command_containment_reason": "no bubblewrap",
    }
    strong = await execution("writing", RunnerFacts(Containment.PID_NAMESPACE))
    assert strong["isolation"]["command_containment"] == "pid-namespace"
    assert "command_containment_reason" not in strong["isolation"]


async def test_every_limit_in_force_is_told() -> None:
    limits = (await execution("reading"))["limits"]
    scripts = {f"codemode_{name}": most for name, most in asdict(RunLimits()).items()}
    assert limits == {**asdict(LIMITS), **scripts}
    assert limits["max_processes"] == 3
    assert set(limits) == {*scripts, *(field.name for field in fields(Limits))}


async def test_the_contracts_capabilities_are_told() -> None:
    told = await execution("writing")
    assert told["process"]["capabilities"] == {
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
    }
    assert told["serialization"] == {
        "live_process_holds_mutation_lease": True,
        "parallel_exec": False,
        "read_while_process_live": True,
        "find_while_process_live": True,
        "patch_while_process_live": False,
        "conflict_error": "WORKSPACE_BUSY",
    }
    assert (told["approvals"], told["approvals_granted_by"]) == ("off", "caller")


async def test_the_root_is_told_as_it_was_registered(tmp_path: Path) -> None:
    place = replace(READING, root=Root(str(tmp_path), 1, 2))
    family = WorkspaceTools("1", (), {place.workspace_id: place}, KEPT, LIMITS, tuple)
    dispatcher = Dispatcher(Toolbox(family.tools()), {place.workspace_id: place})
    outcome = await dispatcher.call("workspace_info", {"workspace_id": "reading"})
    assert outcome.body["root"] == str(tmp_path)
