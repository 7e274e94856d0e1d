"""What a script is told of a tool that failed in a way that it should not; the log has the rest."""

import logging
import os

from codespace.codemode.tool import ToolError

log = logging.getLogger(__name__)


def internal(tool: str, error: Exception) -> ToolError:
    """Log `error`, and return one that repeats nothing of it but its type."""
    reference = os.urandom(6).hex()
    log.error("tool failed tool=%s reference=%s", tool, reference, exc_info=error)
    return ToolError(
        "INTERNAL",
        f"The tool {tool} failed in a way that it should not ({type(error).__name__});"
        f" the log has the reference {reference}.",
    )
