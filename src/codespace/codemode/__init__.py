"""Scripts in a sandbox that can do nothing but call the tools that they are given.

The public names of the package; everything else in it may change.
"""

from codespace.codemode.outcome import (
    CallCounts,
    CallRecord,
    CallState,
    ErrorKind,
    ImageItem,
    Outcome,
    Progress,
    RunError,
    RunProblem,
    RunStatus,
    TextItem,
    Truncation,
)
from codespace.codemode.run import Run
from codespace.codemode.sandbox import Sandbox
from codespace.codemode.store import MemoryStore, Store
from codespace.codemode.tool import Invocation, Tool, ToolError
from codespace.domain.effect import Effect
from codespace.domain.run_limits import RunLimits

__all__ = [
    "CallCounts",
    "CallRecord",
    "CallState",
    "Effect",
    "ErrorKind",
    "ImageItem",
    "Invocation",
    "MemoryStore",
    "Outcome",
    "Progress",
    "Run",
    "RunError",
    "RunLimits",
    "RunProblem",
    "RunStatus",
    "Sandbox",
    "Store",
    "TextItem",
    "Tool",
    "ToolError",
    "Truncation",
]
