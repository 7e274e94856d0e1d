"""What a script is told of a tool that failed in a way that it should not; the log has the rest."""

import logging
import os
import re

from codespace.codemode.tool import ToolError

_NOT_AWAITED = re.compile(r"can't be (used in 'await' expression|awaited)$")

log = logging.getLogger(__name__)


def internal(tool: str, error: BaseException) -> ToolError:
    """Log `error`, and return one that repeats nothing of it but its type."""
    reference = os.urandom(6).hex()
    if _is_not_async(error):
        what = "gave something that cannot be awaited: its function must be async"
    else:
        what = f"failed in a way that it should not ({type(error).__name__})"
    log.error("tool failed tool=%s reference=%s", tool, reference, exc_info=error)
    return ToolError(
        "INTERNAL",
        f"The tool {tool} {what}; the log has the reference {reference}.",
    )


def _is_not_async(error: BaseException) -> bool:
    # A tool that awaits something wrong itself has a frame of its own in the trace.
    trace = error.__traceback__
    in_the_tool = trace is not None and trace.tb_next is not None
    return not in_the_tool and _NOT_AWAITED.search(str(error)) is not None
