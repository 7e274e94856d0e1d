"""From the text of a patch to its numbered lines: trimming, CRs, the wrapper and the two marks.

What the lines between the marks mean is left to `grammar`.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from codespace.domain.errors import CodeSpaceError, ErrorCode
from codespace.patching.whitespace import WHITE_SPACE, trim

BEGIN = "*** Begin Patch"
END = "*** End Patch"

_HEREDOCS = ("<<EOF", "<<'EOF'", '<<"EOF"')
_WRAPPED_MIN_LINES = 4


@dataclass(frozen=True, slots=True)
class Envelope:
    """The lines between the two marks; `first` is the number of the first one, as sent."""

    lines: Sequence[str]
    first: int


def opened(text: str) -> Envelope:
    """Return the lines between `*** Begin Patch` and `*** End Patch`.

    Raises:
        CodeSpaceError: INVALID_PATCH when a mark is missing or something stands outside of them.
    """
    body = text.lstrip(WHITE_SPACE)
    first = 1 + text.count("\n", 0, len(text) - len(body))
    lines = [line.removesuffix("\r") for line in trim(body).split("\n")]
    if not _bounded(lines) and _wrapped(lines):
        lines = lines[1:-1]
        first += 1
    _require_marks(lines, first)
    # A second CR may be left, where CRLF was turned into CRCRLF on the way.
    return Envelope([line.removesuffix("\r") for line in lines[1:-1]], first + 1)


def _bounded(lines: Sequence[str]) -> bool:
    return trim(lines[0]) == BEGIN and trim(lines[-1]) == END


def _wrapped(lines: Sequence[str]) -> bool:
    return len(lines) >= _WRAPPED_MIN_LINES and lines[0] in _HEREDOCS and lines[-1].endswith("EOF")


def _require_marks(lines: Sequence[str], first: int) -> None:
    if trim(lines[0]) != BEGIN:
        raise _outside(first, f"begin with the line {BEGIN!r}, with no text or fence before it")
    if trim(lines[-1]) != END:
        last = first + len(lines) - 1
        raise _outside(last, f"end with the line {END!r}, with no text or fence after it")


def _outside(line: int, rule: str) -> CodeSpaceError:
    return CodeSpaceError(
        ErrorCode.INVALID_PATCH, f"Line {line}: the patch must {rule}.", details={"line": line}
    )
