"""The blocking part of a patch: parse, compare versions, plan, record, write, record.

Runs in a worker thread, with the workspace's lease held by the caller.
"""

from collections.abc import Callable, Mapping
from contextlib import ExitStack
from dataclasses import dataclass, field, replace

from codespace.domain.errors import CodeSpaceError, ErrorCode
from codespace.domain.ids import OperationKey
from codespace.domain.limits import Limits
from codespace.domain.operation import Operation
from codespace.domain.patch import PatchPlan, PatchStatus
from codespace.domain.workspace import Workspace
from codespace.patching.grammar import Patch, cleaned, parse, touched
from codespace.patching.planning import plan
from codespace.store.errors import StoreError
from codespace.store.operations import Operations
from codespace.workspace.directory import RootDirectory, open_root
from codespace.workspace.draft import Draft, draft
from codespace.workspace.survey import Survey
from codespace.workspace.syscalls import Syscalls
from codespace.workspace.temporaries import Temporaries
from codespace.workspace.transaction import Transaction

_NEVER_RECORDED = (ErrorCode.LIMIT_EXCEEDED, ErrorCode.INVALID_ARGUMENT, ErrorCode.INTERNAL)


@dataclass(frozen=True, slots=True)
class PatchRequest:
    """What a client asks for. Keys of `expected_versions` are its own paths."""

    patch: str
    expected_versions: Mapping[str, str] = field(default_factory=dict[str, str])
    operation_key: OperationKey | None = None
    check_only: bool = False


@dataclass(frozen=True, slots=True)
class Writer:
    """Executes requests, one after the other in a workspace."""

    operations: Operations
    limits: Limits
    now_ms: Callable[[], int]
    durable: bool = True
    calls: Syscalls = field(default_factory=Syscalls)

    def execute(self, workspace: Workspace, request: PatchRequest, minted: Operation) -> Operation:
        """Take a patch to its end and return the record, also of a refusal or a failure.

        Raises:
            CodeSpaceError: what is never recorded: LIMIT_EXCEEDED, INVALID_ARGUMENT; and
                FILE_OPERATION_FAILED when the ledger itself failed.
        """
        operation = minted
        with ExitStack() as stack:
            try:
                patch = self._parsed(request)
                operation = replace(operation, files=touched(patch))
                root = stack.enter_context(open_root(workspace.root))
                planned, ready = self._checked(root, request, patch)
            except CodeSpaceError as error:
                if error.code in _NEVER_RECORDED:
                    raise
                return self._record(operation, PatchStatus.REJECTED, error)
            operation = replace(operation, changes=planned.changes)
            if request.check_only:
                return self._record(operation, PatchStatus.CHECKED)
            if not ready.files:
                return self._record(operation, PatchStatus.APPLIED)
            return self._write(root, operation, ready)

    def _parsed(self, request: PatchRequest) -> Patch:
        patch = cleaned(parse(request.patch))
        if len(touched(patch)) > self.limits.patch_max_files:
            raise CodeSpaceError(
                ErrorCode.LIMIT_EXCEEDED,
                f"A patch names at most {self.limits.patch_max_files} files; split it.",
                details={"limit": "patch_max_files", "maximum": self.limits.patch_max_files},
            )
        return patch

    def _checked(
        self, root: RootDirectory, request: PatchRequest, patch: Patch
    ) -> tuple[PatchPlan, Draft]:
        survey = Survey(root, self.limits)
        survey.require(request.expected_versions)
        survey.look(touched(patch))
        planned = plan(patch, survey.entries)
        return planned, draft(survey, planned)

    def _record(
        self, operation: Operation, status: PatchStatus, error: CodeSpaceError | None = None
    ) -> Operation:
        ended = operation.finish(status, self.now_ms(), error=error)
        try:
            self.operations.record(ended)
        except StoreError as failed:
            raise ledger_failed(failed) from failed
        return ended

    def _write(self, root: RootDirectory, operation: Operation, ready: Draft) -> Operation:
        try:
            self.operations.begin(operation, ready.images, ready.directories)
        except StoreError as error:
            raise ledger_failed(error) from error
        temporaries = Temporaries(root, operation.operation_id, self.calls)
        ending = Transaction(temporaries, ready, durable=self.durable).run()
        ended = operation.finish(ending.status, self.now_ms(), error=ending.error)
        try:
            self.operations.finish(ended)
        except StoreError as error:
            raise _end_not_recorded(error).of_operation(operation.operation_id) from error
        return ended


def ledger_failed(error: StoreError) -> CodeSpaceError:
    """Return what a client is told when the ledger cannot be used and nothing was written."""
    return CodeSpaceError(
        ErrorCode.FILE_OPERATION_FAILED,
        "The gateway's ledger cannot be used, so no file was changed; tell the operator.",
        details={"errno": _errno(error)},
    )


def _end_not_recorded(error: StoreError) -> CodeSpaceError:
    return CodeSpaceError(
        ErrorCode.FILE_OPERATION_FAILED,
        "The patch ended, but the gateway's ledger could not take its end; read the files, and ask"
        " operation_status again after the gateway's next start.",
        details={"status": PatchStatus.UNKNOWN.value, "errno": _errno(error)},
    )


def _errno(error: StoreError) -> str:
    return "ENOSPC" if error.full else "EIO"
