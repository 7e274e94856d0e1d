"""The one exception of the house and the closed list of its codes (contract, section 2)."""

from collections.abc import Mapping
from enum import StrEnum
from typing import cast


class ErrorCode(StrEnum):
    """Every code that a client can see. A test compares this list with the contract's table."""

    INVALID_ARGUMENT = "INVALID_ARGUMENT"
    UNAUTHORIZED = "UNAUTHORIZED"
    WORKSPACE_NOT_FOUND = "WORKSPACE_NOT_FOUND"
    WORKSPACE_BUSY = "WORKSPACE_BUSY"
    INVALID_PATCH = "INVALID_PATCH"
    PATH_ESCAPE = "PATH_ESCAPE"
    SYMLINK_REJECTED = "SYMLINK_REJECTED"
    SPECIAL_FILE_REJECTED = "SPECIAL_FILE_REJECTED"
    FILE_NOT_FOUND = "FILE_NOT_FOUND"
    PATH_NOT_DIRECTORY = "PATH_NOT_DIRECTORY"
    IS_A_DIRECTORY = "IS_A_DIRECTORY"
    FILE_OPERATION_FAILED = "FILE_OPERATION_FAILED"
    ADD_FILE_EXISTS = "ADD_FILE_EXISTS"
    MOVE_DESTINATION_EXISTS = "MOVE_DESTINATION_EXISTS"
    VERSION_CONFLICT = "VERSION_CONFLICT"
    OPERATION_KEY_CONFLICT = "OPERATION_KEY_CONFLICT"
    OPERATION_NOT_FOUND = "OPERATION_NOT_FOUND"
    INVALID_COMMAND = "INVALID_COMMAND"
    PROCESS_SPAWN_FAILED = "PROCESS_SPAWN_FAILED"
    PROCESS_NOT_FOUND = "PROCESS_NOT_FOUND"
    PROCESS_EXITED = "PROCESS_EXITED"
    NOT_A_TTY = "NOT_A_TTY"
    TIMEOUT = "TIMEOUT"
    LIMIT_EXCEEDED = "LIMIT_EXCEEDED"
    APPROVAL_REQUIRED = "APPROVAL_REQUIRED"
    APPROVAL_NOT_FOUND = "APPROVAL_NOT_FOUND"
    APPROVAL_CONFLICT = "APPROVAL_CONFLICT"
    APPROVAL_AMBIGUOUS = "APPROVAL_AMBIGUOUS"
    WORK_NOT_FOUND = "WORK_NOT_FOUND"
    WORK_CLOSED = "WORK_CLOSED"
    INTENT_NOT_FOUND = "INTENT_NOT_FOUND"
    INTENT_ALREADY_CLAIMED = "INTENT_ALREADY_CLAIMED"
    INTENT_NOT_EDITABLE = "INTENT_NOT_EDITABLE"
    INTENT_REVISION_CONFLICT = "INTENT_REVISION_CONFLICT"
    RUN_NOT_FOUND = "RUN_NOT_FOUND"
    RUN_CONFLICT = "RUN_CONFLICT"
    INTERNAL = "INTERNAL"


class CodeSpaceError(Exception):
    """A call was refused or failed, with a code that a caller can branch on.

    There are no subclasses. Expected outcomes (a non-zero exit, a cut output) are results, not
    errors.

    Attributes:
        code: what kind of refusal or failure.
        message: one plain sentence that says what to do next. It never holds a secret, an
            environment value or a path outside the workspace.
        details: JSON values that let a client mend its call.
        operation_id: the recorded operation, once one was minted.
        approval_id: the held call, with every APPROVAL_* code that has one.
    """

    def __init__(
        self,
        code: ErrorCode,
        message: str,
        *,
        details: Mapping[str, object] | None = None,
        operation_id: str | None = None,
        approval_id: str | None = None,
    ) -> None:
        super().__init__(f"{code}: {message}")
        self.code = code
        self.message = message
        self.details: dict[str, object] = dict(details or {})
        self.operation_id = operation_id
        self.approval_id = approval_id

    def body(self) -> dict[str, object]:
        """Return the error as the JSON object of the contract."""
        body: dict[str, object] = {"code": self.code.value, "message": self.message}
        if self.details:
            body["details"] = self.details
        if self.operation_id is not None:
            body["operation_id"] = self.operation_id
        if self.approval_id is not None:
            body["approval_id"] = self.approval_id
        return body

    def of_operation(self, operation_id: str) -> "CodeSpaceError":
        """Return the same error, tied to the operation that recorded it."""
        return CodeSpaceError(
            self.code,
            self.message,
            details=self.details,
            operation_id=operation_id,
            approval_id=self.approval_id,
        )


def from_body(body: Mapping[str, object]) -> CodeSpaceError:
    """Return the error that `body` was made from."""
    details, operation_id = body.get("details"), body.get("operation_id")
    approval_id = body.get("approval_id")
    return CodeSpaceError(
        ErrorCode(str(body["code"])),
        str(body["message"]),
        details=cast("Mapping[str, object] | None", details),
        operation_id=None if operation_id is None else str(operation_id),
        approval_id=None if approval_id is None else str(approval_id),
    )
