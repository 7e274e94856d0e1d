"""A refusal of a section: the one form of its message and details."""

from dataclasses import dataclass

from codespace.domain.errors import CodeSpaceError, ErrorCode
from codespace.domain.paths import shown, shown_raw

_TEXT_MAX_CHARS = 200


@dataclass(frozen=True, slots=True)
class Spot:
    """The place in a patch that is being worked on.

    `section` and `chunk` count from 1; `line` is where the chunk begins in the patch.
    """

    section: int
    path: str
    chunk: int | None = None
    line: int | None = None

    def refused(
        self, code: ErrorCode, problem: str, *, details: dict[str, object] | None = None
    ) -> CodeSpaceError:
        """Return the error of this place; `problem` ends the sentence that names the place."""
        where = f"Section {self.section} ({shown(self.path)})"
        named: dict[str, object] = {"path": shown_raw(self.path), "section": self.section}
        if self.chunk is not None:
            where = f"{where}, chunk {self.chunk}"
            named |= {"chunk": self.chunk, "line": self.line}
        return CodeSpaceError(code, f"{where}: {problem}.", details=named | (details or {}))


def cut(text: str) -> str:
    """Return a line of a file or a patch as `details` may repeat it."""
    return text if len(text) <= _TEXT_MAX_CHARS else f"{text[:_TEXT_MAX_CHARS]}…"
