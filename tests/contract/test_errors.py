"""The form of errors and results, whichever the tool."""

import json
from pathlib import Path
from typing import cast

import jsonschema
import pytest

from codespace.domain.errors import ErrorCode
from contract.answers import Json, Reply
from contract.houses import CONTAINER, READ_ONLY, over_stdio
from contract.raw import RawStdio, raw_stdio
from contract.session import Session, Space, v4a

pytestmark = pytest.mark.anyio

ADD = v4a("*** Add File: a.txt", "+a")
LOOKING = {
    "read": {"path": "kept.txt"},
    "find": {},
    "grep": {"pattern": "x"},
}
CHANGING = {
    "apply_patch": {"patch": ADD},
    "exec_command": {"command": ["true"]},
    "bash": {"command": "true"},
}


@pytest.mark.requirement("errors.are-results", "errors.text-is-the-object", "errors.fields")
async def test_an_error_is_a_result_whose_text_and_object_are_the_same(cell_space: Space) -> None:
    answer = await cell_space.session.ask(
        "read", {"workspace_id": cell_space.id, "path": "missing.txt"}
    )
    assert answer.is_error is True
    body = cast("Json", answer.structured_content)
    assert set(body) == {"code", "message", "details"}
    assert body["code"] == "FILE_NOT_FOUND"
    assert [item.type for item in answer.content] == ["text"]
    assert json.loads(answer.content[0].model_dump()["text"]) == body


@pytest.mark.requirement("errors.operation-id-once-minted", "errors.fields")
async def test_an_error_has_its_operation_once_one_was_minted(space: Space) -> None:
    before = await space.patch_refused(ErrorCode.INVALID_ARGUMENT, "", check_only="no")
    assert "operation_id" not in before
    minted = await space.patch_refused(ErrorCode.FILE_NOT_FOUND, "*** Delete File: a")
    assert minted.keys == {"code", "message", "details", "operation_id"}


@pytest.mark.requirement("errors.results-are-the-same")
async def test_a_result_is_an_object_and_its_json_as_text(cell_space: Space) -> None:
    answer = await cell_space.session.ask("workspace_info", {})
    assert not answer.is_error
    text = answer.content[0].model_dump()["text"]
    assert json.loads(text) == answer.structured_content


@pytest.mark.requirement("errors.output-schema-admits-both", "errors.input-schema-is-flat")
async def test_every_tools_schemas_are_flat_for_arguments_and_admit_errors_as_results(
    cell_space: Space,
) -> None:
    listed = await cell_space.session.client.list_tools()
    error: Json = {
        "code": "FILE_NOT_FOUND",
        "message": "No.",
        "details": {},
        "operation_id": "op-1",
    }
    assert len(listed.tools) == 24
    for tool in listed.tools:
        flat = cast("Json", tool.input_schema)
        assert flat["type"] == "object"
        assert not {"anyOf", "oneOf", "allOf", "$ref"} & set(flat)
        output = cast("dict[str, object]", tool.output_schema)
        assert output["type"] == "object"
        assert len(cast("list[object]", output["anyOf"])) == 2
        jsonschema.validate(error, output)
        with pytest.raises(jsonschema.ValidationError):
            jsonschema.validate([], output)


@pytest.mark.requirement("errors.message-is-one-sentence", "errors.message-holds-no-secret")
async def test_messages_are_sentences_that_name_no_place_outside(space: Space) -> None:
    calls: list[tuple[str, Json]] = [
        ("read", {"path": "missing"}),
        ("read", {"path": "../x"}),
        ("read", {}),
        ("find", {"glob": "["}),
        ("grep", {"pattern": "("}),
        ("apply_patch", {"patch": "nothing"}),
        ("exec_command", {"command": []}),
        ("exec_command", {"command": ["no-such-program"]}),
        ("process_status", {"process_id": "proc-none"}),
        ("operation_status", {}),
    ]
    for tool, arguments in calls:
        answer = await space.session.ask(tool, {"workspace_id": space.id, **arguments})
        reply = Reply(cast("Json", answer.structured_content))
        message = reply.text("message")
        assert answer.is_error
        assert message[:1] == message[:1].upper() or message.startswith(tool)
        assert message.endswith(".")
        assert str(space.root) not in str(reply.body)
        assert "Traceback" not in message


@pytest.mark.requirement("errors.message-holds-no-secret")
async def test_no_error_repeats_the_gateways_environment(config: Path) -> None:
    own = {"CODESPACE_HTTP_TOKEN": "a-secret-of-the-gateway", "OTHER_SECRET": "another-secret"}
    async with over_stdio(config, variables=own) as session:
        for tool, arguments in (*LOOKING.items(), *CHANGING.items()):
            answer = await session.ask(tool, {"workspace_id": "$OTHER_SECRET", **arguments})
            assert "secret" not in str(answer.structured_content).lower().replace(
                "$other_secret", ""
            )


@pytest.mark.requirement("errors.unknown-tool-is-a-protocol-error")
@pytest.mark.requirement("errors.malformed-message-is-a-protocol-error")
def test_unknown_tools_and_malformed_messages_are_json_rpc_errors(
    tmp_path: Path, config: Path
) -> None:
    with raw_stdio(tmp_path / "stderr.txt", "--config", str(config)) as gateway:
        gateway.open()
        unknown = gateway.ask("tools/call", {"name": "no_such_tool", "arguments": {}})
        assert unknown["error", "code"] == -32602
        assert "result" not in unknown
        method = gateway.ask("no/such/method")
        assert method["error", "code"] == -32601
        assert _refusal(gateway, b"not json") == -32700
        assert _refusal(gateway, b'{"jsonrpc":"2.0","id":7') == -32700
        assert _refusal(gateway, b"\xff\xfe") == -32700
        assert _refusal(gateway, b"[]") == -32600
        assert _refusal(gateway, b"17") == -32600
        assert _refusal(gateway, b'{"jsonrpc":"1.0","id":1,"method":"ping"}') == -32600
        wrong = gateway.ask("tools/call", {"name": 17})
        assert wrong["error", "code"] == -32602
        assert gateway.call("workspace_info", {})["server"] == "codespace"


def _refusal(gateway: RawStdio, line: bytes) -> object:
    gateway.send(line)
    return gateway.receive()["error", "code"]


@pytest.mark.requirement("errors.invalid-argument-names-the-path", "code.invalid-argument")
@pytest.mark.parametrize(
    ("tool", "arguments", "path"),
    [
        ("read", {}, "path"),
        ("read", {"path": 17}, "path"),
        ("read", {"path": "a", "offset": "3"}, "offset"),
        ("read", {"path": "a", "offset": True}, "offset"),
        ("read", {"path": "a", "offset": 1.5}, "offset"),
        ("read", {"path": None}, "path"),
        ("find", {"include_ignored": "yes"}, "include_ignored"),
        ("grep", {"pattern": ["x"]}, "pattern"),
        ("apply_patch", {"patch": ADD, "check_only": 1}, "check_only"),
        ("apply_patch", {"patch": ADD, "expected_versions": []}, "expected_versions"),
        ("apply_patch", {"patch": ADD, "expected_versions": {"a": 1}}, "expected_versions.a"),
        ("exec_command", {"command": "ls -l"}, "command"),
        ("exec_command", {"command": ["ls", 1]}, "command.1"),
        ("bash", {"command": "true", "timeout_ms": 10.5}, "timeout_ms"),
    ],
)
async def test_arguments_that_fail_the_schema_name_the_place_and_mint_nothing(
    space: Space, tool: str, arguments: dict[str, object], path: str
) -> None:
    given = {**arguments, "operation_key": f"key {space.id}"}
    reply = await space.refused(ErrorCode.INVALID_ARGUMENT, tool, **given)
    assert reply["details", "path"] == path
    assert "operation_id" not in reply
    if tool == "apply_patch":
        await space.session.refused(
            ErrorCode.OPERATION_NOT_FOUND,
            "operation_status",
            operation_key=f"key {space.id}",
            workspace_id=space.id,
        )
    assert space.tree() == {}


@pytest.mark.requirement("errors.invalid-argument-names-the-path")
async def test_an_invalid_argument_never_repeats_values(space: Space) -> None:
    for tool, arguments in (
        ("read", {"path": ["sensitive-value"]}),
        ("bash", {"command": "true", "timeout_ms": "sensitive-value"}),
        ("apply_patch", {"patch": ADD, "expected_versions": {"a": "sensitive-value"}}),
    ):
        reply = await space.refused(ErrorCode.INVALID_ARGUMENT, tool, **arguments)
        assert "sensitive" not in str(reply.body)


@pytest.mark.requirement("errors.unknown-arguments-are-ignored")
async def test_unknown_arguments_make_no_difference(cell_space: Space) -> None:
    extra = {
        "approved": True,
        "network": True,
        "user_id": "root",
        "environment_id": "host",
        "work_id": "work-none",
        "nested": {"deep": [None, {"x": 1}]},
        "": 0,
    }
    cell_space.write("kept.txt", "kept\n")
    for tool, arguments in (*LOOKING.items(), *CHANGING.items()):
        reply = await cell_space.call(tool, **{**extra, **arguments})
        if tool == "exec_command":
            await cell_space.ended(reply.text("process_id"))
    await cell_space.session.call("workspace_info", **extra)


@pytest.mark.requirement("errors.unknown-arguments-grant-nothing", "code.unauthorized")
async def test_unknown_arguments_grant_nothing(session: Session, looking: Space) -> None:
    extra = {
        "approved": True,
        "approval_id": "appr-granted",
        "network": "enabled",
        "profile": "workspace-write",
        "environment": "host",
        "environment_id": "host",
        "user_id": "root",
        "root": "/",
        "sudo": True,
    }
    before = looking.tree()
    for tool, arguments in CHANGING.items():
        reply = await looking.refused(ErrorCode.UNAUTHORIZED, tool, **{**extra, **arguments})
        assert "operation_id" not in reply
    for tool, arguments in (*LOOKING.items(), *CHANGING.items()):
        await session.refused(
            ErrorCode.UNAUTHORIZED, tool, workspace_id=CONTAINER, **{**extra, **arguments}
        )
    info = await session.call("workspace_info", workspace_id=READ_ONLY, **extra)
    assert info["execution", "permissions"] == {"read": True, "write": False, "exec": False}
    assert looking.tree() == before


@pytest.mark.requirement("code.workspace-not-found")
async def test_an_unknown_workspace_is_not_found_by_any_tool(session: Session) -> None:
    for tool, arguments in (*LOOKING.items(), *CHANGING.items(), ("workspace_info", {})):
        reply = await session.refused(
            ErrorCode.WORKSPACE_NOT_FOUND, tool, workspace_id="nobody's", **arguments
        )
        assert "operation_id" not in reply


@pytest.mark.requirement("code.limit-exceeded")
async def test_a_patch_that_is_too_large_is_told_with_its_limit_and_not_recorded(
    space: Space,
) -> None:
    key = {"operation_key": f"large {space.id}", "workspace_id": space.id}
    large = v4a("*** Add File: a.txt", "+" + "x" * (8 * 1024 * 1024))
    many = v4a(*(line for n in range(1_001) for line in (f"*** Add File: {n}", "+x")))
    for patch, limit in ((large, "patch_max_bytes"), (many, "patch_max_files")):
        reply = await space.session.refused(
            ErrorCode.LIMIT_EXCEEDED, "apply_patch", patch=patch, **key
        )
        assert reply["details", "limit"] == limit
        assert "operation_id" not in reply
        await space.session.refused(ErrorCode.OPERATION_NOT_FOUND, "operation_status", **key)
    assert space.tree() == {}


@pytest.mark.requirement("patch.order-arguments-first")
async def test_bad_arguments_are_told_before_workspace_and_profile(session: Session) -> None:
    for workspace_id in ("nobody's", READ_ONLY, CONTAINER):
        await session.refused(
            ErrorCode.INVALID_ARGUMENT, "apply_patch", workspace_id=workspace_id, patch=1
        )


@pytest.mark.requirement("patch.order-profile-before-key", "code.unauthorized")
async def test_a_workspace_that_permits_no_patch_looks_at_no_key(looking: Space) -> None:
    for _ in range(2):
        reply = await looking.refused(
            ErrorCode.UNAUTHORIZED, "apply_patch", patch=ADD, operation_key="k"
        )
        assert "operation_id" not in reply
    await looking.session.refused(
        ErrorCode.OPERATION_NOT_FOUND,
        "operation_status",
        operation_key="k",
        workspace_id=looking.id,
    )


@pytest.mark.requirement("errors.codes-are-the-tables")
def test_the_codes_are_those_of_the_table_that_this_version_can_answer() -> None:
    assert " ".join(code.value for code in ErrorCode).split() == [
        *("INVALID_ARGUMENT", "UNAUTHORIZED", "WORKSPACE_NOT_FOUND", "WORKSPACE_BUSY"),
        *("INVALID_PATCH", "PATH_ESCAPE", "SYMLINK_REJECTED", "SPECIAL_FILE_REJECTED"),
        *("FILE_NOT_FOUND", "PATH_NOT_DIRECTORY", "IS_A_DIRECTORY", "FILE_OPERATION_FAILED"),
        *("ADD_FILE_EXISTS", "MOVE_DESTINATION_EXISTS", "VERSION_CONFLICT"),
        *("OPERATION_KEY_CONFLICT", "OPERATION_NOT_FOUND", "INVALID_COMMAND"),
        *("PROCESS_SPAWN_FAILED", "PROCESS_NOT_FOUND", "PROCESS_EXITED", "NOT_A_TTY", "TIMEOUT"),
        *("LIMIT_EXCEEDED", "APPROVAL_REQUIRED", "APPROVAL_NOT_FOUND", "APPROVAL_CONFLICT"),
        *("APPROVAL_AMBIGUOUS", "WORK_NOT_FOUND", "WORK_CLOSED", "INTENT_NOT_FOUND"),
        *("INTENT_ALREADY_CLAIMED", "INTENT_NOT_EDITABLE", "INTENT_REVISION_CONFLICT"),
        *("RUN_NOT_FOUND", "RUN_CONFLICT", "INTERNAL"),
    ]
