"""The V4A grammar: the text of a patch becomes sections and chunks, or is refused with the line.

No file is looked at here; where the chunks go is left to `placing`.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial

from codespace.domain.errors import CodeSpaceError, ErrorCode
from codespace.domain.paths import shown_raw
from codespace.patching.envelope import END, opened
from codespace.patching.sections import (
    AddFile,
    Chunk,
    DeleteFile,
    Patch,
    Section,
    UpdateFile,
    cleaned,
    touched,
)
from codespace.patching.whitespace import rtrim, trim

__all__ = [
    "AddFile",
    "Chunk",
    "DeleteFile",
    "Patch",
    "Section",
    "UpdateFile",
    "cleaned",
    "parse",
    "touched",
]

_ADD = "*** Add File: "
_DELETE = "*** Delete File: "
_UPDATE = "*** Update File: "
_MOVE = "*** Move to: "
_ENVIRONMENT = "*** Environment ID:"
_END_OF_FILE = "*** End of File"
_CHUNK = "@@"


def parse(text: str) -> Patch:
    """Read a patch.

    Raises:
        CodeSpaceError: INVALID_PATCH; `details` has `line`, and `section`, `path` and `chunk`
            where they are known.
    """
    envelope = opened(text)
    machine = _Machine()
    for number, line in enumerate(envelope.lines, envelope.first):
        machine.read(number, line)
    return machine.end()


@dataclass(slots=True)
class _OpenChunk:
    header: str | None
    line: int
    old: list[str] = field(default_factory=list[str])
    new: list[str] = field(default_factory=list[str])
    context: list[tuple[int, int]] = field(default_factory=list[tuple[int, int]])
    eof: bool = False

    @property
    def is_empty(self) -> bool:
        return not self.old and not self.new

    def take(self, line: str) -> None:
        """Add a line that begins with a blank, a minus or a plus."""
        kind, text = line[0], line[1:]
        if kind == " ":
            self.context.append((len(self.old), len(self.new)))
        if kind != "+":
            self.old.append(text)
        if kind != "-":
            self.new.append(text)

    def closed(self) -> Chunk:
        return Chunk(
            header=self.header,
            old=tuple(self.old),
            new=tuple(self.new),
            context=tuple(self.context),
            eof=self.eof,
            line=self.line,
        )


@dataclass(slots=True)
class _OpenSection:
    """The section that is being read; which fields count depends on `header`."""

    header: str
    path: str
    line: int
    content: list[str] = field(default_factory=list[str])
    move_to: str | None = None
    chunks: list[_OpenChunk] = field(default_factory=list[_OpenChunk])

    def take(self, line: str, number: int) -> None:
        """Add a line to the last chunk; the first chunk needs no mark."""
        if not self.chunks:
            self.chunks.append(_OpenChunk(None, number))
        self.chunks[-1].take(line)

    def closed(self) -> Section:
        if self.header == _ADD:
            return AddFile(self.path, "".join(self.content))
        if self.header == _DELETE:
            return DeleteFile(self.path)
        return UpdateFile(self.path, self.move_to, tuple(chunk.closed() for chunk in self.chunks))


class _Machine:
    """Reads one line after the other. The state is the function that the next line goes to.

    start → (add | delete | update)* → ended. Whether a line is a header, content or an error
    depends on the state alone; nothing is looked up ahead or behind.
    """

    def __init__(self) -> None:
        self._sections: list[Section] = []
        self._open: _OpenSection | None = None
        self._state: Callable[[str], None] = self._in_start
        self._line = 0
        self._has_environment = False

    def read(self, number: int, line: str) -> None:
        self._line = number
        self._state(line)

    def end(self) -> Patch:
        self._close()
        return Patch(tuple(self._sections))

    def _in_start(self, line: str) -> None:
        mark = trim(line)
        if self._header_or_end(mark):
            return
        if not mark.startswith(_ENVIRONMENT):
            raise self._refused(
                f"a section must begin here; write '{_ADD}PATH', '{_UPDATE}PATH' or '{_DELETE}PATH'"
            )
        if mark == _ENVIRONMENT or self._has_environment:
            raise self._refused(f"'{_ENVIRONMENT}' stands at most once and needs a value")
        self._has_environment = True

    def _in_add(self, section: _OpenSection, line: str) -> None:
        if line.startswith("+"):
            section.content.append(line[1:] + "\n")
        elif not self._header_or_end(trim(line)):
            raise self._refused("every line of a new file begins with '+', an empty one too")

    def _in_delete(self, section: _OpenSection, line: str) -> None:
        if not self._header_or_end(trim(line)):
            raise self._refused(f"under '{section.header}PATH' nothing can stand; remove the line")

    def _in_update(self, section: _OpenSection, line: str) -> None:
        if section.chunks and section.chunks[-1].eof:
            self._after_end_of_file(section, rtrim(line))
        elif line == "" or line[0] in " -+":
            section.take(line or " ", self._line)
        else:
            self._update_mark(section, rtrim(line))

    def _after_end_of_file(self, section: _OpenSection, mark: str) -> None:
        if mark and not self._header_or_end(mark) and not self._chunk_mark(section, mark):
            raise self._refused(f"after '{_END_OF_FILE}' the next chunk begins with '{_CHUNK}'")

    def _update_mark(self, section: _OpenSection, mark: str) -> None:
        if self._header_or_end(mark) or self._chunk_mark(section, mark):
            return
        if mark == _END_OF_FILE:
            self._end_of_file(section)
        elif mark.startswith(_MOVE) and not section.chunks and section.move_to is None:
            section.move_to = mark.removeprefix(_MOVE)
        else:
            raise self._refused(_advice(mark))

    def _chunk_mark(self, section: _OpenSection, mark: str) -> bool:
        if mark != _CHUNK and not mark.startswith(f"{_CHUNK} "):
            return False
        self._require_lines(section)
        section.chunks.append(_OpenChunk(mark[len(_CHUNK) + 1 :] or None, self._line))
        return True

    def _end_of_file(self, section: _OpenSection) -> None:
        # Without any chunk the mark says nothing, and the reference engine passes over it.
        if section.chunks:
            self._require_lines(section)
            section.chunks[-1].eof = True

    def _in_ended(self, line: str) -> None:
        if trim(line):
            raise self._refused(f"nothing can stand after '{END}'; remove the line")

    def _header_or_end(self, mark: str) -> bool:
        if not mark.startswith("*** "):
            return False
        if mark == END:
            self._close()
            self._state = self._in_ended
            return True
        for header, state in (
            (_UPDATE, self._in_update),
            (_ADD, self._in_add),
            (_DELETE, self._in_delete),
        ):
            if mark.startswith(header):
                self._close()
                self._open = _OpenSection(header, mark.removeprefix(header), self._line)
                self._state = partial(state, self._open)
                return True
        return False

    def _close(self) -> None:
        section = self._open
        if section is None:
            return
        if section.header == _UPDATE:
            self._require_chunk(section)
            self._require_lines(section)
        self._sections.append(section.closed())
        self._open = None

    def _require_chunk(self, section: _OpenSection) -> None:
        if not section.chunks:
            self._line = section.line
            raise self._refused(f"this Update has no chunk; write '{_CHUNK}' and its lines below")

    def _require_lines(self, section: _OpenSection) -> None:
        if section.chunks and section.chunks[-1].is_empty:
            self._line = section.chunks[-1].line
            raise self._refused(
                f"no line stands under this '{_CHUNK}'; write exactly one '{_CHUNK}' above a chunk,"
                " and lines that begin with ' ', '-' or '+' below it"
            )

    def _refused(self, problem: str) -> CodeSpaceError:
        details: dict[str, object] = {"line": self._line}
        if self._open is not None:
            details["section"] = len(self._sections) + 1
            details["path"] = shown_raw(self._open.path)
            if self._open.chunks:
                details["chunk"] = len(self._open.chunks)
        return CodeSpaceError(
            ErrorCode.INVALID_PATCH, f"Line {self._line}: {problem}.", details=details
        )


def _advice(mark: str) -> str:
    if mark.startswith(_CHUNK):
        return f"write '{_CHUNK} TEXT' with a blank between, or '{_CHUNK}' alone"
    if mark.startswith(_MOVE.rstrip()):
        return f"'{_MOVE}PATH' stands once, directly under '{_UPDATE}PATH'"
    return "a line of a chunk begins with ' ' (context), '-' (removed) or '+' (added)"
