"""Logging: one formatter, on stderr only, that repeats no client's data.

Messages of exceptions and of other libraries can hold file contents, arguments or tokens. Of these
only the kind and the place are written.
"""

import logging
import sys
import traceback
from types import TracebackType
from typing import TextIO, cast

from anyio import BrokenResourceError, ClosedResourceError

_GONE = (BrokenResourceError, ClosedResourceError)
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


def is_about_the_living(record: logging.LogRecord) -> bool:
    """Say whether a record is of use: not the SDK's error that a session had ended already.

    A client that ends its session while messages of it are on their way is in its right, and an
    operator can do nothing about it.
    """
    error = record.exc_info[1] if record.exc_info else None
    return not (record.name.startswith("mcp.") and error is not None and _is_gone(error))


def _is_gone(error: BaseException) -> bool:
    if isinstance(error, BaseExceptionGroup):
        inner = cast("BaseExceptionGroup[BaseException]", error).exceptions
        return all(map(_is_gone, inner))
    # The type's name, since the package that it is of is the adapters' affair.
    return isinstance(error, _GONE) or type(error).__name__ == "ClientDisconnect"


def configure(level: str = "WARNING", stream: TextIO | None = None) -> None:
    """Send all logging to stderr (or `stream`). Called once, by the command line."""
    handler = logging.StreamHandler(stream or sys.stderr)
    handler.setFormatter(SafeFormatter())
    handler.addFilter(is_about_the_living)
    root = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel(logging.WARNING)
    logging.getLogger("codespace").setLevel(level)
    logging.getLogger("mcp").setLevel(logging.ERROR)
