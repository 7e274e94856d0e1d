"""The contract's tables, and the code's own: neither has a row that the other lacks."""

import re
from collections.abc import Mapping
from pathlib import Path
from typing import cast

import anyio
import pytest

from codespace.bootstrap import open_gateway
from codespace.domain.errors import ErrorCode
from codespace.domain.patch import PatchStatus
from codespace.domain.tool import Effect, Tool
from codespace.settings import load

ROOT = Path(__file__).resolve().parent.parent
SOURCE = ROOT / "src" / "codespace"

CODES = {
    "INVALID_ARGUMENT": "arguments do not fit the tool's schema",
    "UNAUTHORIZED": "the workspace's profile or environment does not permit it",
    "WORKSPACE_NOT_FOUND": "unknown workspace_id",
    "WORKSPACE_BUSY": "a live process or a running patch holds the workspace's mutation lease",
    "INVALID_PATCH": "not V4A, or its context does not match the files",
    "PATH_ESCAPE": "absolute path, any '..' component, NUL, or a path that leaves the root",
    "SYMLINK_REJECTED": "the path or an ancestor inside the root is a symlink",
    "SPECIAL_FILE_REJECTED": "device, socket, FIFO",
    "FILE_NOT_FOUND": "as named",
    "PATH_NOT_DIRECTORY": "as named",
    "IS_A_DIRECTORY": "as named",
    "FILE_OPERATION_FAILED": "another filesystem error",
    "ADD_FILE_EXISTS": "the patch would overwrite",
    "MOVE_DESTINATION_EXISTS": "the patch would overwrite",
    "VERSION_CONFLICT": "a file's version is not the expected one",
    "OPERATION_KEY_CONFLICT": "the key was used with different arguments",
    "OPERATION_NOT_FOUND": "unknown id or key, or not exactly one of the two was given",
    "INVALID_COMMAND": "empty argv, empty program, NUL in an argument",
    "PROCESS_SPAWN_FAILED": "it is certain that no process was started",
    "PROCESS_NOT_FOUND": "unknown, expired, or of an earlier runner instance",
    "PROCESS_EXITED": "write_stdin or process_resize after the end, or stdin is closed",
    "NOT_A_TTY": "process_resize on a process without a PTY",
    "TIMEOUT": "a bounded wait or an operator limit ran out; partial effects may exist",
    "LIMIT_EXCEEDED": "a size or count limit of the contract",
    "APPROVAL_REQUIRED": "policy allows it, but the operator wants a confirmation first",
    "APPROVAL_NOT_FOUND": "no such hold",
    "APPROVAL_CONFLICT": "pending, denied, decided already, or being made",
    "APPROVAL_AMBIGUOUS": "a resume was interrupted, and the outcome is not known",
    "RUN_NOT_FOUND": "unknown or forgotten",
    "RUN_CONFLICT": "the run_key was used with another request",
    "WORK_NOT_FOUND": "no work has that id",
    "WORK_CLOSED": "the work has ended",
    "INTENT_NOT_FOUND": "no instruction has that id, or none of this work",
    "INTENT_ALREADY_CLAIMED": "the agent has taken it",
    "INTENT_NOT_EDITABLE": "it is not in a state in which that can be done",
    "INTENT_REVISION_CONFLICT": "it, or the queue, was changed since it was seen",
    "INTERNAL": "a bug: logged with a reference that the message repeats",
}
"""The codes of what exists, and when each is answered."""

LATER = {
    "CALL_AMBIGUOUS",
    *("TOOL_NOT_FOUND", "TOOL_DENIED", "UPSTREAM_UNAVAILABLE", "UPSTREAM_ERROR"),
}
"""The codes of capabilities that do not exist yet: nobody may be answered with one."""

STATUSES = {"checked", "applied", "rejected", "failed_rolled_back", "failed_partial", "unknown"}

TOOLS = {
    "workspace_info": ("inspect", "", "workspace_id"),
    "read": ("read", "workspace_id path", "offset max_bytes work_id"),
    "find": ("read", "workspace_id", "glob include_ignored limit work_id"),
    "grep": ("read", "workspace_id pattern", "glob case_sensitive fixed context limit work_id"),
    "apply_patch": (
        "write",
        "workspace_id patch",
        "expected_versions operation_key check_only work_id",
    ),
    "operation_status": ("inspect", "", "operation_id operation_key workspace_id"),
    "exec_command": ("execute", "workspace_id command", "tty work_id"),
    "read_process": ("read", "process_id", "cursor wait_ms work_id"),
    "process_status": ("read", "process_id", "wait_ms work_id"),
    "write_stdin": ("execute", "process_id data", "close"),
    "process_resize": ("execute", "process_id rows cols", ""),
    "terminate_process": ("execute", "process_id", ""),
    "bash": ("execute", "workspace_id command", "timeout_ms work_id"),
    "approval_create": ("write", "tool arguments", ""),
    "approval_resolve": ("write", "approval_id decision", ""),
    "operation_resume": ("execute", "approval_id", ""),
    "codemode": (
        "script",
        "code",
        "workspace_id args run_key timeout_ms wait_ms max_output_chars work_id",
    ),
    "codemode_status": ("inspect", "run_id", "wait_ms"),
    "codemode_cancel": ("script", "run_id", ""),
    "work_open": ("steer", "workspace_id", "title"),
    "steer_status": ("inspect", "work_id", ""),
    "steer_claim_next": ("steer", "work_id", ""),
    "steer_complete": ("steer", "work_id intent_id outcome", "note"),
    "work_finish": ("steer", "work_id", ""),
}
"""Effect, required and optional arguments of each tool."""

DEFAULTS = {
    ("read", "offset"): 0,
    ("find", "glob"): "**/*",
    ("find", "include_ignored"): False,
    ("find", "limit"): 1_000,
    ("grep", "case_sensitive"): True,
    ("grep", "fixed"): False,
    ("grep", "limit"): 200,
    ("apply_patch", "check_only"): False,
    ("exec_command", "tty"): False,
    ("read_process", "cursor"): 0,
    ("read_process", "wait_ms"): 0,
    ("write_stdin", "close"): False,
    ("codemode", "wait_ms"): 45_000,
    ("codemode_status", "wait_ms"): 0,
}


@pytest.fixture(scope="module")
def tools(tmp_path_factory: pytest.TempPathFactory) -> Mapping[str, Tool]:
    """The tools of a real gateway."""
    root = tmp_path_factory.mktemp("root")

    async def listed() -> Mapping[str, Tool]:
        loaded = load(path=str(root), environ={"PATH": "/usr/bin:/bin"})
        async with open_gateway(loaded) as gateway:
            return {tool.name: tool for tool in gateway.toolbox}

    return anyio.run(listed)


def test_the_codes_are_those_of_the_table_that_exist_now() -> None:
    assert {code.value for code in ErrorCode} == set(CODES)
    assert set(CODES) & LATER == set()


def test_no_code_is_only_declared() -> None:
    used = {
        found
        for path in SOURCE.rglob("*.py")
        if path.name != "errors.py"
        for found in re.findall(r"ErrorCode\.([A-Z_]+)", path.read_text(encoding="utf-8"))
    }
    assert used == set(CODES)


def test_the_statuses_of_a_patch_are_those_of_the_table() -> None:
    assert {status.value for status in PatchStatus} == STATUSES


def test_the_tools_are_those_of_the_contract(tools: Mapping[str, Tool]) -> None:
    assert list(tools) == list(TOOLS)
    assert {name: tool.effect for name, tool in tools.items()} == {
        name: Effect(effect) for name, (effect, _, _) in TOOLS.items()
    }


@pytest.mark.parametrize("name", TOOLS)
def test_a_tool_takes_the_arguments_of_the_contract(name: str, tools: Mapping[str, Tool]) -> None:
    _, required, optional = TOOLS[name]
    schema = tools[name].input_schema
    assert set(cast("list[str]", schema.get("required", []))) == set(required.split())
    properties = cast("Mapping[str, Mapping[str, object]]", schema["properties"])
    assert set(properties) == {*required.split(), *optional.split()}


@pytest.mark.parametrize(("name", "argument"), DEFAULTS)
def test_an_argument_left_out_means_what_the_contract_says(
    name: str, argument: str, tools: Mapping[str, Tool]
) -> None:
    properties = cast("Mapping[str, Mapping[str, object]]", tools[name].input_schema["properties"])
    assert properties[argument]["default"] == DEFAULTS[name, argument]


@pytest.mark.parametrize("name", TOOLS)
def test_a_tool_says_what_it_and_its_arguments_are_for(
    name: str, tools: Mapping[str, Tool]
) -> None:
    tool = tools[name]
    assert tool.title
    assert tool.description.splitlines()[0].endswith((".", ":"))
    properties = cast("Mapping[str, Mapping[str, object]]", tool.input_schema["properties"])
    assert [argument for argument, told in properties.items() if "description" not in told] == []


@pytest.mark.parametrize("name", TOOLS)
def test_schemas_are_of_the_form_that_every_client_takes(
    name: str, tools: Mapping[str, Tool]
) -> None:
    taken, given = tools[name].input_schema, tools[name].output_schema
    assert (taken["type"], given["type"]) == ("object", "object")
    assert not {"anyOf", "oneOf", "allOf", "$ref", "additionalProperties"} & set(taken)
    assert len(cast("list[object]", given["anyOf"])) == 2


def test_every_code_of_a_scripts_problems_is_in_the_page_on_errors() -> None:
    page = (ROOT / "docs" / "errors.md").read_text(encoding="utf-8")
    made = re.compile(
        r'(?:RunProblem|ToolError)\(\s*"([A-Z][A-Z_]+)"|^\s*(?:return )?"([A-Z]+_[A-Z_]+)",$'
        r'|\bcode(?:, \w+)? = "([A-Z][A-Z_]+)"',
        re.MULTILINE,
    )
    codes = {
        code
        for package in ("codemode", "gateway")
        for file in (SOURCE / package).glob("*.py")
        for found in made.findall(file.read_text(encoding="utf-8"))
        for code in found
        if code
    }
    assert {"INVALID_RESULT", "EFFECTS_REMAIN", "VALUE_TOO_DEEP", "NOT_AWAITED"} <= codes
    assert sorted(code for code in codes if f"`{code}`" not in page) == []
