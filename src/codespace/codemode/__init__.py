"""Scripts in a sandbox that can do nothing but call the tools that they are given.

The public names of the package; everything else in it may change.
"""

import logging

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

# Where an application configures no logging, its standard error is not ours to write to.
logging.getLogger(__name__).addHandler(logging.NullHandler())

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
