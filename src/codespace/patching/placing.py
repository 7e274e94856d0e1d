"""The chunks of one Update become edits of the file's lines, or are refused with the nearest place.

Nothing is changed here; `lines` makes the edits.
"""

from collections.abc import Iterator, Sequence

from codespace.domain.errors import CodeSpaceError, ErrorCode
from codespace.patching.lines import Edit
from codespace.patching.matching import Finder
from codespace.patching.nearest import Nearest, nearest
from codespace.patching.refusal import Spot, cut
from codespace.patching.sections import Chunk


def placed(chunks: Sequence[Chunk], texts: list[str], spot: Spot) -> list[Edit]:
    """Return the edits that the chunks make, in the order of the patch.

    Every search looks at the file as it was, from behind what the chunk before took.

    Raises:
        CodeSpaceError: INVALID_PATCH when a header or the old lines are not found; `details` has
            `nearest`, and `elsewhere` when they stand where they cannot be used.
    """
    finder = Finder(texts, _sought(chunks))
    edits: list[Edit] = []
    cursor = 0
    for number, chunk in enumerate(chunks, 1):
        here = Spot(spot.section, spot.path, number, chunk.line)
        if chunk.header is not None:
            cursor = _header_line(finder, chunk.header, cursor, here) + 1
        if not chunk.old:
            # A pure addition goes to the end of the file, its header notwithstanding.
            edits.append(Edit(len(texts), len(texts), chunk.new))
            continue
        hit, old, new = _old_lines(finder, chunk, cursor, here)
        edits += _edits(chunk.context, hit, old, new)
        cursor = hit + len(old)
    return edits


def _sought(chunks: Sequence[Chunk]) -> Iterator[str]:
    for chunk in chunks:
        if chunk.header is not None:
            yield chunk.header
        yield from chunk.old


def _header_line(finder: Finder, header: str, cursor: int, spot: Spot) -> int:
    hit = finder.seek([header], cursor)
    if hit is None:
        raise _not_found(finder, [header], cursor, spot, what="its '@@' header")
    return hit


def _old_lines(
    finder: Finder, chunk: Chunk, cursor: int, spot: Spot
) -> tuple[int, Sequence[str], Sequence[str]]:
    """Return where the old lines stand, and the old and new lines that count."""
    old, new = chunk.old, chunk.new
    hit = finder.seek(old, cursor, eof=chunk.eof)
    if hit is None and old[-1] == "":
        # One empty line between chunks is forgiven: it was meant to set them apart.
        old = old[:-1]
        new = new[:-1] if new and new[-1] == "" else new
        hit = finder.seek(old, cursor, eof=chunk.eof)
    if hit is None:
        raise _not_found(finder, old, cursor, spot, eof=chunk.eof)
    return hit, old, new


def _edits(
    context: Sequence[tuple[int, int]], hit: int, old: Sequence[str], new: Sequence[str]
) -> Iterator[Edit]:
    """Yield what lies between the context lines, which stay as they are in the file."""
    old_done = new_done = 0
    for old_index, new_index in context:
        if old_index >= len(old) or new_index >= len(new):
            break
        if old_done != old_index or new_done != new_index:
            yield Edit(hit + old_done, hit + old_index, new[new_done:new_index])
        old_done, new_done = old_index + 1, new_index + 1
    if old_done != len(old) or new_done != len(new):
        yield Edit(hit + old_done, hit + len(old), new[new_done:])


def _not_found(
    finder: Finder,
    pattern: Sequence[str],
    cursor: int,
    spot: Spot,
    *,
    what: str = "its old lines",
    eof: bool = False,
) -> CodeSpaceError:
    near = nearest(finder, pattern, cursor, eof=eof)
    details: dict[str, object] = {"nearest": near.details}
    elsewhere = finder.seek(pattern, 0)
    if elsewhere is None:
        problem = f"no match for {what} {_scope(cursor, eof=eof)}; {_difference(near)}"
        problem += "; read the file again"
    else:
        details["elsewhere"] = elsewhere + 1
        problem = f"the match for {what} is line {elsewhere + 1}, {_reach(cursor, elsewhere)}"
    return spot.refused(ErrorCode.INVALID_PATCH, problem, details=details)


def _scope(cursor: int, *, eof: bool) -> str:
    if eof:
        return "at the end of the file"
    return f"in the file from line {cursor + 1} on" if cursor else "in the file"


def _reach(cursor: int, elsewhere: int) -> str:
    if elsewhere >= cursor:
        return "but '*** End of File' ties the chunk to the last lines; remove that mark"
    return (
        f"above line {cursor + 1} where the search begins; write the chunks in the order of the"
        " file, and repeat no line that the '@@' header or the chunk before took"
    )


def _difference(near: Nearest) -> str:
    place = f"the nearest place is line {near.place + 1}"
    expected = _shown(near.expected)
    if near.found is None:
        return f"{place}, where the file ends before {expected}"
    at = f"where line {near.place + near.agreeing + 1}" if near.agreeing else "which"
    return f"{place}, {at} is {_shown(near.found)} but {expected} in the patch"


def _shown(text: str) -> str:
    return repr(cut(text)) if text else "an empty line"
