"""Finding files by name, and lines by content.

`globs` says which paths are meant, `listing` which files there are, `sweep` looks for few matches
and `_matches` for many, `ripgrep` runs the engine and `hits` reads its answers.
"""

import os
import re
import threading
from collections.abc import Iterable, Sequence
from contextlib import ExitStack, closing
from dataclasses import dataclass

from codespace.domain.errors import CodeSpaceError, ErrorCode
from codespace.domain.limits import Limits
from codespace.domain.sizes import MIB
from codespace.domain.workspace import Root
from codespace.workspace.deadline import Deadline
from codespace.workspace.directory import RootDirectory, open_root
from codespace.workspace.globs import Glob, compile_glob
from codespace.workspace.hits import Match, read_hits
from codespace.workspace.listing import list_files, opened, present
from codespace.workspace.ripgrep import stream
from codespace.workspace.sweep import Query, sweep

EVERYTHING = "**/*"
_FIRST_BATCH = 8
_BATCH_MAX = 256
_SPARE_FILES = 1_000
_LARGE_BYTES = 4 * MIB
_RETURN = re.compile(r"(?<!\\)(?:\\\\)*\\(?:r|[xuU](?:0*[dD](?![0-9A-Fa-f])|\{0*[dD]\}))|\r")
"""A carriage return that a regular expression asks for."""


@dataclass(frozen=True, slots=True)
class FoundPaths:
    """The first paths in order of their code points; `truncated` when there are more.

    `skipped` counts files whose names are not UTF-8: no path can name them.
    """

    paths: tuple[str, ...]
    truncated: bool
    skipped: int = 0


@dataclass(frozen=True, slots=True)
class GrepResult:
    """The first matching lines by path and line; `truncated` when there are more.

    `skipped` counts matching files whose names are not UTF-8: no path can name them.
    """

    matches: tuple[Match, ...]
    truncated: bool
    skipped: int = 0


def find(
    root: Root,
    *,
    glob: str = EVERYTHING,
    include_ignored: bool = False,
    limit: int,
    limits: Limits,
    abandoned: threading.Event | None = None,
) -> FoundPaths:
    """Return the regular files whose whole relative path `glob` matches.

    `.git` is skipped at any depth. `.gitignore` files and `.git/info/exclude` below the root are
    honoured, whether it is a git repository or not; ignore rules of the machine are not.

    Raises:
        CodeSpaceError: INVALID_ARGUMENT or PATH_ESCAPE for a bad glob, LIMIT_EXCEEDED, TIMEOUT,
            FILE_OPERATION_FAILED.
    """
    _check_count("limit", limit, limits.find_max_paths)
    wanted = compile_glob(glob, max_chars=limits.pattern_max_chars)
    deadline = Deadline.after(limits.grep_timeout_ms, abandoned=abandoned)
    with open_root(root) as directory:
        listing = list_files(
            directory,
            ("--files",),
            glob=wanted,
            include_ignored=include_ignored,
            capacity=limit + 1,
            deadline=deadline,
        )
        paths = present(directory, listing.paths)
    return FoundPaths(tuple(paths[:limit]), listing.total > limit, listing.skipped)


def grep(  # noqa: PLR0913 -- they are the arguments of the tool
    root: Root,
    *,
    pattern: str,
    glob: str = EVERYTHING,
    case_sensitive: bool = True,
    fixed: bool = False,
    context: int = 0,
    limit: int,
    limits: Limits,
    abandoned: threading.Event | None = None,
) -> GrepResult:
    """Return the lines that `pattern` matches, in the text files that `find` would list.

    The pattern is a regular expression of ripgrep's engine, or plain text if `fixed`; it matches
    within one line, and a line counts once. `$` matches before LF and before CRLF. Binary files
    are skipped.

    Raises:
        CodeSpaceError: INVALID_ARGUMENT for a bad pattern or glob, PATH_ESCAPE, LIMIT_EXCEEDED,
            TIMEOUT, FILE_OPERATION_FAILED.
    """
    _check_count("limit", limit, limits.grep_max_matches)
    if context:
        _check_count("context", context, limits.grep_max_context)
    query = Query(
        _pattern(pattern, limits, case_sensitive=case_sensitive, fixed=fixed),
        context,
        limit,
        limits.grep_max_text_chars,
    )
    wanted = compile_glob(glob, max_chars=limits.pattern_max_chars)
    deadline = Deadline.after(limits.grep_timeout_ms, abandoned=abandoned)
    with open_root(root) as directory:
        swept = sweep(directory, query, glob=wanted, deadline=deadline)
        if swept is None:
            return _file_by_file(directory, query, wanted, deadline)
        matches = swept.matches
        if swept.doubtful:
            matches += _matches(directory, swept.doubtful, query, deadline)
            matches.sort(key=_place)
    truncated = swept.more or len(matches) > limit
    return GrepResult(tuple(matches[:limit]), truncated, swept.skipped)


def _file_by_file(
    directory: RootDirectory, query: Query, glob: Glob, deadline: Deadline
) -> GrepResult:
    """Ask for the names of the matching files first, and then search the first of them."""
    listing = list_files(
        directory,
        ("--files-with-matches", *query.pattern),
        glob=glob,
        capacity=query.limit + 1 + _SPARE_FILES,
        deadline=deadline,
    )
    matches = _matches(directory, listing.paths, query, deadline)
    truncated = len(matches) > query.limit or listing.total > len(listing.paths)
    return GrepResult(tuple(matches[: query.limit]), truncated, listing.skipped)


def _place(match: Match) -> tuple[str, int]:
    return match.path, match.line


def _matches(
    directory: RootDirectory, paths: Sequence[str], query: Query, deadline: Deadline
) -> list[Match]:
    """Search the files in order, until one match more than the limit is there."""
    matches: list[Match] = []
    done, batch = 0, _FIRST_BATCH
    while done < len(paths) and len(matches) <= query.limit:
        matches += _matches_in(directory, paths[done : done + batch], query, deadline)
        done += batch
        # As many files as the rest of the limit takes, by what the files so far have yielded.
        missing = query.limit + 1 - len(matches)
        batch = min(_BATCH_MAX, max(_FIRST_BATCH, missing * done // (len(matches) + 1)))
    return matches


def _matches_in(
    directory: RootDirectory, paths: Sequence[str], query: Query, deadline: Deadline
) -> list[Match]:
    # rg gets open descriptors, not names: what it searches are the files that were found without
    # following a link, whatever stands at their paths by now.
    with ExitStack() as stack:
        files: dict[int, str] = {}
        for path, descriptor in opened(directory, paths):
            stack.callback(os.close, descriptor)
            files[descriptor] = path
        if not files:
            return []
        arguments = [
            "--json",
            "--no-ignore",
            "--no-mmap",
            *(["--threads=1"] if _any_large(files) else []),
            f"--max-count={query.limit + 1}",
            f"--context={query.context}",
            *query.pattern,
            "--",
            *(f"/proc/self/fd/{descriptor}" for descriptor in files),
        ]
        chunks = stream(arguments, directory=directory.fd, keep=tuple(files), deadline=deadline)
        with closing(chunks):
            found = read_hits(chunks, files, context=query.context, max_chars=query.max_chars)
    return sorted(found, key=_place)


def _any_large(descriptors: Iterable[int]) -> bool:
    # With threads, rg holds all that it has to say of a file until the file's end, and of a line
    # of many matches that is fifty times the line.
    return any(os.fstat(descriptor).st_size > _LARGE_BYTES for descriptor in descriptors)


def _pattern(pattern: str, limits: Limits, *, case_sensitive: bool, fixed: bool) -> list[str]:
    if len(pattern) > limits.pattern_max_chars:
        raise CodeSpaceError(
            ErrorCode.LIMIT_EXCEEDED,
            f"A pattern holds at most {limits.pattern_max_chars} characters; give a shorter one.",
            details={"limit": limits.pattern_max_chars},
        )
    if not pattern:
        raise _bad_pattern("is empty and would match every line; use read to see a file")
    if "\n" in pattern or "\0" in pattern:
        raise _bad_pattern("holds a line break or NUL; search for one line's text at a time")
    if any("\ud800" <= character <= "\udfff" for character in pattern):
        raise _bad_pattern("is not valid Unicode")
    return [
        "--case-sensitive" if case_sensitive else "--ignore-case",
        *(["--fixed-strings"] if fixed else _line_ends(pattern)),
        f"--regexp={pattern}",
    ]


def _line_ends(pattern: str) -> list[str]:
    """Let `$` match before CRLF, too; rg refuses that to a pattern that asks for the CR itself."""
    return ["--crlf"] if "$" in pattern and not _RETURN.search(pattern) else []


def _bad_pattern(why: str) -> CodeSpaceError:
    return CodeSpaceError(
        ErrorCode.INVALID_ARGUMENT, f"The pattern {why}.", details={"path": "pattern"}
    )


def _check_count(name: str, count: int, most: int) -> None:
    if count < 1:
        raise CodeSpaceError(
            ErrorCode.INVALID_ARGUMENT, f"{name} must be positive.", details={"path": name}
        )
    if count > most:
        raise CodeSpaceError(
            ErrorCode.LIMIT_EXCEEDED,
            f"{name} is at most {most}; ask for less at a time.",
            details={"path": name, "limit": most},
        )
