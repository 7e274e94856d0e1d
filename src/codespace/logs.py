"""Logging: one formatter, on stderr only, that repeats no client's data.

Messages of exceptions and of other libraries can hold file contents, arguments or tokens. Of these
only the kind and the place are written.
"""

import logging
import sys
import traceback
from types import TracebackType
from typing import TextIO

_OWN = ("codespace.", "uvicorn.error.")


class SafeFormatter(logging.Formatter):
    """Formats one record a line; exceptions as their type and frames, never their text."""

    def __init__(self) -> None:
        super().__init__("%(asctime)s %(levelname)s %(name)s %(message)s")

    def format(self, record: logging.LogRecord) -> str:
        """Return the line, with the text of foreign records left out."""
        record = logging.makeLogRecord(record.__dict__)
        record.exc_text = None  # another formatter may have left the exception's text there
        if not f"{record.name}.".startswith(_OWN):
            record.msg, record.args = f"at {record.module}:{record.lineno} (text withheld)", ()
        return super().format(record)

    def formatException(  # noqa: N802 -- the name is logging's
        self,
        ei: tuple[type[BaseException], BaseException, TracebackType | None]
        | tuple[None, None, None],
    ) -> str:
        """Return the frames and the exception's type."""
        kind, _, where = ei
        frames = "".join(traceback.format_tb(where)).rstrip()
        return f"{frames}\n{'' if kind is None else kind.__qualname__}"


def configure(level: str = "WARNING", stream: TextIO | None = None) -> None:
    """Send all logging to stderr (or `stream`). Called once, by the command line."""
    handler = logging.StreamHandler(stream or sys.stderr)
    handler.setFormatter(SafeFormatter())
    root = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel(logging.WARNING)
    logging.getLogger("codespace").setLevel(level)
    logging.getLogger("mcp").setLevel(logging.ERROR)
