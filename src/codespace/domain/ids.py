"""One type for each identifier of the contract (section 1). Minting is the shell's.

Knowing an identifier grants nothing: every call is judged by its workspace's policy.
"""

from typing import NewType

WorkspaceId = NewType("WorkspaceId", str)
"""The operator's own name for a registered directory. Not a credential."""

OperationId = NewType("OperationId", str)
"""A recorded patch request, `op-…`. Not a transport request id. Survives a restart."""

OperationKey = NewType("OperationKey", str)
"""The client's idempotency key of a patch, scoped to its workspace. Survives a restart."""

ProcessId = NewType("ProcessId", str)
"""A managed process, `proc-…`. Not a pid. Never survives a restart of the runner."""

RunId = NewType("RunId", str)
"""A run of a script, `run-…`."""

RunKey = NewType("RunKey", str)
"""The client's idempotency key of a run, scoped to its workspace."""

ApprovalId = NewType("ApprovalId", str)
"""A held call, `appr-…`. Survives a restart."""

WorkId = NewType("WorkId", str)
"""One logical job of an agent, `work-…`. Survives a restart."""

IntentId = NewType("IntentId", str)
"""One instruction of the user, `int-…`. Survives a restart."""

OPERATION_PREFIX = "op-"
PROCESS_PREFIX = "proc-"
RUN_PREFIX = "run-"
APPROVAL_PREFIX = "appr-"
WORK_PREFIX = "work-"
INTENT_PREFIX = "int-"
