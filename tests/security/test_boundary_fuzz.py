"""Whatever a client sends is answered: with a result, or with a code of the table that is no bug.

What was refused has changed nothing.
"""

import hashlib
import json
import os
from collections.abc import Generator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import cast

import pytest
from anyio.from_thread import BlockingPortal, start_blocking_portal
from hypothesis import given, settings
from hypothesis import strategies as st

from codespace.bootstrap import Gateway, open_gateway
from codespace.domain.errors import ErrorCode
from codespace.domain.tool import Json
from codespace.settings import load
from security.arguments import (
    ARGVS,
    PATCHES,
    PATHS,
    SCRIPTS,
    SHELL_TEXTS,
    Arguments,
    arguments,
    broken,
)

TOOLS = (
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
)
STARTING = ("exec_command", "bash")


@dataclass(frozen=True, slots=True)
class Target:
    """A gateway in a loop of its own, and the workspace that is shot at."""

    portal: BlockingPortal
    gateway: Gateway
    root: Path
    processes: tuple[str, ...]
    runs: tuple[str, ...]
    holds: tuple[str, ...]

    def call(self, tool: str, given: Json) -> Json:
        """Call a tool, hold the answer to the contract, and return its body."""
        before = picture(self.root)
        outcome = self.portal.call(self.gateway.dispatcher.call, tool, given)
        json.dumps(dict(outcome.body), ensure_ascii=False, allow_nan=False).encode()
        if outcome.is_error:
            assert ErrorCode(str(outcome.body["code"])) is not ErrorCode.INTERNAL, outcome.body
            ids = {"operation_id", "approval_id"}
            assert set(outcome.body) <= {"code", "message", "details", *ids}
        if outcome.is_error or tool != "apply_patch" or outcome.body["status"] != "applied":
            assert picture(self.root) == before
        return outcome.body

    def schema(self, tool: str) -> Json:
        """Return a tool's input schema."""
        found = self.gateway.toolbox.get(tool)
        assert found is not None
        return found.input_schema

    def strategy(self, tool: str) -> st.SearchStrategy[Arguments]:
        """Return arguments that fit, and some that do not."""
        known: Mapping[str, st.SearchStrategy[object]] = {
            "process_id": st.sampled_from([*self.processes, "proc-none", "", "\ud800"]),
            "patch": PATCHES,
            "code": SCRIPTS,
            "timeout_ms": st.integers(1, 300),
            "run_key": st.sampled_from(["k", "\ud800", "\0", "k" * 200]) | st.none(),
            "run_id": st.sampled_from([*self.runs, "run-none", "", "\ud800"]),
            "approval_id": st.sampled_from([*self.holds, "appr-none", "", "\ud800"]),
            "tool": st.sampled_from(
                ["apply_patch", "bash", "read", "approval_create", "", "\ud800"]
            ),
            "command": ARGVS if tool == "exec_command" else SHELL_TEXTS,
            "operation_key": st.sampled_from(["k", "l", "\ud800", "\0", "k" * 200]) | st.none(),
            "expected_versions": st.dictionaries(
                st.sampled_from(PATHS), st.sampled_from(["absent", "0" * 64]), max_size=2
            ),
        }
        schema = self.schema(tool)
        whole = arguments(schema, known)
        return whole | broken(whole, schema)


def picture(root: Path) -> dict[str, str]:
    """Return what stands below a directory, without the gateway's own output files."""
    seen: dict[str, str] = {}
    for directory, folders, files in os.walk(root):
        if directory == str(root) and ".codespace" in folders:
            folders.remove(".codespace")
        for name in (*folders, *files):
            path = os.path.join(directory, name)  # noqa: PTH118 -- names may be no UTF-8
            status = os.lstat(path)
            key = f"{path!r} {status.st_mode:o} {status.st_ino}"
            regular = os.path.isfile(path) and not os.path.islink(path)  # noqa: PTH113, PTH114 -- names may be no UTF-8
            seen[key] = Path(path).read_bytes().hex() if regular else ""
    return seen


def furnish(root: Path) -> None:
    """Make a tree with one of each kind."""
    (root / "d").mkdir(parents=True)
    (root / "a.txt").write_text("one\ntwo\n", encoding="utf-8")
    (root / "d" / "b.txt").write_text("one\n", encoding="utf-8")
    (root / "link").symlink_to("a.txt")
    (root / "folder").symlink_to("d")
    (root / os.fsdecode(b"not-utf-8-\xff")).write_bytes(b"one\n")
    os.mkfifo(root / "fifo")


@pytest.fixture(scope="module")
def target(tmp_path_factory: pytest.TempPathFactory) -> Generator[Target]:
    base = tmp_path_factory.mktemp("fuzz")
    root = base / "root"
    furnish(root)
    for name in ("busy", "looking", "container"):
        (base / name).mkdir()
    config = base / "codespace.json"
    config.write_text(
        json.dumps(
            {
                "process_timeout_secs": 3_600,
                "workspaces": {
                    "default": {"root": str(root), "profile": "workspace-write"},
                    "busy": {"root": str(base / "busy"), "profile": "workspace-write"},
                    "looking": {"root": str(base / "looking")},
                    "container": {
                        "root": str(base / "container"),
                        "environment": "linux-container",
                    },
                },
            }
        ),
        encoding="utf-8",
    )
    loaded = load(config=str(config), environ={"PATH": os.environ["PATH"]})
    with (
        start_blocking_portal() as portal,
        portal.wrap_async_context_manager(open_gateway(loaded, durable=False)) as gateway,
    ):
        run = portal.call(gateway.call, "codemode", {"code": "1", "workspace_id": "default"})
        processes = tuple(_processes(portal, gateway))
        holds = tuple(_holds(portal, gateway))
        yield Target(portal, gateway, root, processes, (str(run["run_id"]),), holds)


def _processes(portal: BlockingPortal, gateway: Gateway) -> Generator[str]:
    ended = portal.call(
        gateway.call, "bash", {"workspace_id": "busy", "command": "printf 'x\\377€'"}
    )
    yield str(ended["process_id"])
    living = portal.call(
        gateway.call,
        "exec_command",
        {"workspace_id": "busy", "command": ["cat"], "tty": True},
    )
    yield str(living["process_id"])


def _holds(portal: BlockingPortal, gateway: Gateway) -> Generator[str]:
    for decision in (None, "grant", "deny"):
        held = {"workspace_id": "default", "command": f"echo {decision}"}
        made = portal.call(gateway.call, "approval_create", {"tool": "bash", "arguments": held})
        approval_id = str(made["approval_id"])
        if decision is not None:
            portal.call(
                gateway.call,
                "approval_resolve",
                {"approval_id": approval_id, "decision": decision},
            )
        yield approval_id


@pytest.mark.parametrize("tool", TOOLS)
def test_every_call_is_answered_and_refused_calls_change_nothing(target: Target, tool: str) -> None:
    @settings(max_examples=25 if tool in STARTING else 60)
    @given(data=st.data())
    def shoot(data: st.DataObject) -> None:
        target.call(tool, data.draw(target.strategy(tool)))

    shoot()


def test_the_tools_shot_at_are_all_that_there_are(target: Target) -> None:
    assert target.gateway.toolbox.names == TOOLS


def test_a_patch_that_is_applied_did_what_its_answer_says(target: Target) -> None:
    @settings(max_examples=150)
    @given(patch=PATCHES)
    def shoot(patch: object) -> None:
        body = target.call("apply_patch", {"workspace_id": "default", "patch": patch})
        for change in cast("list[dict[str, str]]", body.get("changes", [])):
            path = target.root / change["path"]
            if change["kind"] == "delete":
                assert not path.exists()
            else:
                found = hashlib.sha256(path.read_bytes()).hexdigest()
                assert found == change["after_version"]

    shoot()
