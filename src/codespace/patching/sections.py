"""A parsed patch as values, and the paths that it names. How a text becomes one: `grammar`."""

from collections.abc import Iterator
from dataclasses import dataclass, replace

from codespace.domain.errors import CodeSpaceError
from codespace.domain.paths import clean


@dataclass(frozen=True, slots=True)
class Chunk:
    """One place of an Update.

    Attributes:
        header: the text behind `@@`: a line that stands above the place.
        old: context and removed texts, as they must stand in the file.
        new: context and added texts, as they stand afterwards.
        context: for every context line its index in `old` and in `new`.
        eof: the old lines must be the last ones of the file.
        line: where the chunk begins in the text of the patch, from 1.
    """

    header: str | None
    old: tuple[str, ...]
    new: tuple[str, ...]
    context: tuple[tuple[int, int], ...] = ()
    eof: bool = False
    line: int = 0


@dataclass(frozen=True, slots=True)
class AddFile:
    """A new file with this content."""

    path: str
    content: str


@dataclass(frozen=True, slots=True)
class DeleteFile:
    """A file that goes."""

    path: str


@dataclass(frozen=True, slots=True)
class UpdateFile:
    """A file whose lines change, and that moves when `move_to` is given."""

    path: str
    move_to: str | None
    chunks: tuple[Chunk, ...]


Section = AddFile | DeleteFile | UpdateFile


@dataclass(frozen=True, slots=True)
class Patch:
    """The sections in the order of the text. May be empty, which `planning` refuses."""

    sections: tuple[Section, ...]


def cleaned(patch: Patch) -> Patch:
    """Return the patch with every path in its clean form, relative to the root.

    Raises:
        CodeSpaceError: PATH_ESCAPE or FILE_OPERATION_FAILED, for the first bad path in the order
            of the text; `details` has `section`.
    """
    return Patch(
        tuple(_cleaned(section, number) for number, section in enumerate(patch.sections, 1))
    )


def touched(patch: Patch) -> tuple[str, ...]:
    """Return every path that the patch mentions, once, in the order of first mention."""
    return tuple(dict.fromkeys(_mentions(patch)))


def _cleaned(section: Section, number: int) -> Section:
    try:
        path = clean(section.path)
        if isinstance(section, UpdateFile) and section.move_to is not None:
            return replace(section, path=path, move_to=clean(section.move_to))
    except CodeSpaceError as error:
        details = {**error.details, "section": number}
        raise CodeSpaceError(error.code, error.message, details=details) from error
    return section if path == section.path else replace(section, path=path)


def _mentions(patch: Patch) -> Iterator[str]:
    for section in patch.sections:
        yield section.path
        if isinstance(section, UpdateFile) and section.move_to is not None:
            yield section.move_to
