"""`read`, `find` and `grep`: looking at a workspace's files. They need no lease."""

import json
import threading
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Annotated, Literal, TypeVar

import anyio
import anyio.to_thread
from pydantic import Field

from codespace.domain.errors import CodeSpaceError
from codespace.domain.limits import Limits
from codespace.domain.sizes import JSON_INTEGER_MAX
from codespace.domain.tool import Call, Effect, Params, Result, Tool, define
from codespace.domain.workspace import Root
from codespace.workspace import files, search
from codespace.workspace.at_hand import SMALL_BYTES, AtHand
from codespace.workspace.near_files import with_near_files

LIMITS = Limits()
"""The limits that the schemas name."""

JSON_GROWTH = 6
"""JSON writes a control character as six bytes; a client's transport takes about 1 MiB in all."""


class ReadParams(Params):
    """Arguments of `read`."""

    workspace_id: str
    """The workspace, as `workspace_info` lists it."""
    path: Annotated[str, Field(min_length=1)]
    """The file, relative to the workspace's root, with `/` between names."""
    offset: Annotated[int, Field(ge=0, le=JSON_INTEGER_MAX)] = 0
    """The first byte to return."""
    max_bytes: Annotated[int, Field(ge=1, le=LIMITS.read_max_bytes)] | None = None
    """At most this many bytes of the file. Left out: 512 KiB, less where JSON would swell it."""


class ReadResult(Result):
    """A file's content, or a piece of it."""

    path: str
    content: str
    """The text, or base64 when these bytes are not UTF-8."""
    encoding: Literal["utf-8", "base64"]
    version: str
    """SHA-256 of the whole file, in lowercase hex, also when `content` is a piece."""
    size: int
    """Bytes of the whole file."""
    truncated: bool
    """More of the file follows; ask again with `offset` = `next_offset`."""
    next_offset: int | None = None


class FindParams(Params):
    """Arguments of `find`."""

    workspace_id: str
    """The workspace, as `workspace_info` lists it."""
    glob: Annotated[str, Field(min_length=1, max_length=LIMITS.pattern_max_chars)] = "**/*"
    """Matched against whole relative paths: `*.py` is the root only, `**/*.py` all."""
    include_ignored: bool = False
    """Also list what `.gitignore` files exclude."""
    limit: Annotated[int, Field(ge=1, le=LIMITS.find_max_paths)] = LIMITS.find_default_paths
    """At most this many paths."""


class FindResult(Result):
    """Sorted paths of regular files."""

    paths: list[str]
    truncated: bool
    """More files match; narrow the glob or raise the limit."""
    skipped: int | None = None
    """Files left out because their names are not UTF-8."""


class GrepParams(Params):
    """Arguments of `grep`."""

    workspace_id: str
    """The workspace, as `workspace_info` lists it."""
    pattern: Annotated[str, Field(min_length=1, max_length=LIMITS.pattern_max_chars)]
    """A regular expression in ripgrep's syntax, or plain text with `fixed`."""
    glob: Annotated[str, Field(min_length=1, max_length=LIMITS.pattern_max_chars)] = "**/*"
    """Only files whose whole relative path matches, as in `find`."""
    case_sensitive: bool = True
    """Tell upper case from lower case."""
    fixed: bool = False
    """Take the pattern as plain text."""
    context: Annotated[int, Field(ge=0, le=LIMITS.grep_max_context)] = 0
    """Lines to show before and after each match."""
    limit: Annotated[int, Field(ge=1, le=LIMITS.grep_max_matches)] = LIMITS.grep_default_matches
    """At most this many matching lines."""


class GrepMatch(Result):
    """One matching line."""

    path: str
    line: int
    """From 1."""
    column: int
    """Of the first match in the line, in characters, from 1."""
    text: str
    before: list[str] | None = None
    after: list[str] | None = None


class GrepResult(Result):
    """Matching lines, by path and line."""

    matches: list[GrepMatch]
    truncated: bool
    """More lines match; narrow the pattern or the glob, or raise the limit."""
    skipped: int | None = None
    """Matching files left out because their names are not UTF-8."""


END_SECONDS = 1.0
"""How long a call that was cancelled waits for its thread."""
LOOK_SECONDS = 0.01

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class FileTools:
    """Runs each look in a worker thread, at most as many at once as `limiter` admits.

    Only a read that cannot wait for anything runs at once.
    """

    limits: Limits
    limiter: anyio.CapacityLimiter
    at_hand: AtHand = field(default_factory=AtHand)

    def tools(self) -> list[Tool]:
        """Return the family."""
        return [
            define(
                "read",
                Effect.READ,
                ReadParams,
                ReadResult,
                self.read,
                title="Read a file",
                search_words="open show view load file",
                idempotent=True,
                of_work=True,
            ),
            define(
                "find",
                Effect.READ,
                FindParams,
                FindResult,
                self.find,
                title="Find files by name",
                search_words="list folder directory",
                idempotent=True,
                of_work=True,
            ),
            define(
                "grep",
                Effect.READ,
                GrepParams,
                GrepResult,
                self.grep,
                title="Search file contents",
                search_words="search text",
                idempotent=True,
                of_work=True,
            ),
        ]

    async def read(self, params: ReadParams, call: Call) -> ReadResult:
        """Read a file, or a piece of it, with the version that protects a later patch.

        Give `version` to apply_patch in `expected_versions` so that a change made in between is
        refused instead of overwritten. Text comes as UTF-8, anything else as base64. A long file
        comes in pieces: go on with `offset` = `next_offset`.
        """
        root = call.permitted.root
        found = self._read_at_once(root, params)
        if found is None:
            found = await self._in_thread(
                lambda abandoned: self._read_or_say(root, params, abandoned)
            )
        return ReadResult(
            path=found.path,
            content=found.content,
            encoding=found.encoding,
            version=found.version,
            size=found.size,
            truncated=found.truncated,
            next_offset=found.next_offset,
        )

    async def find(self, params: FindParams, call: Call) -> FindResult:
        """List files whose whole relative path matches a glob. It looks at names, not contents.

        `*`, `?`, `[a-z]`, `{a,b}` and `**` work; dot files count; `.git` is skipped and
        `.gitignore` honoured. Symlinks are neither listed nor followed.
        """
        root = call.permitted.root
        found = await self._in_thread(
            lambda abandoned: search.find(
                root,
                glob=params.glob,
                include_ignored=params.include_ignored,
                limit=params.limit,
                limits=self.limits,
                abandoned=abandoned,
            )
        )
        kept = self._within_budget(found.paths, lambda path: len(json.dumps(path)) + 2)
        return FindResult(
            paths=kept,
            truncated=found.truncated or len(kept) < len(found.paths),
            skipped=found.skipped or None,
        )

    async def grep(self, params: GrepParams, call: Call) -> GrepResult:
        """Search file contents line by line with a regular expression (ripgrep's engine).

        Binary files, `.git` and what `.gitignore` excludes are skipped. Long lines are cut. Use
        `glob` to narrow the files and `context` to see the lines around a match.
        """
        root = call.permitted.root
        found = await self._in_thread(
            lambda abandoned: search.grep(
                root,
                pattern=params.pattern,
                glob=params.glob,
                case_sensitive=params.case_sensitive,
                fixed=params.fixed,
                context=params.context,
                limit=params.limit,
                limits=self.limits,
                abandoned=abandoned,
            )
        )
        matches = [
            GrepMatch(
                path=match.path,
                line=match.line,
                column=match.column,
                text=match.text,
                before=list(match.before or ()) if params.context else None,
                after=list(match.after or ()) if params.context else None,
            )
            for match in found.matches
        ]
        kept = self._within_budget(matches, lambda match: len(match.model_dump_json().encode()) + 1)
        return GrepResult(
            matches=kept,
            truncated=found.truncated or len(kept) < len(matches),
            skipped=found.skipped or None,
        )

    def _read_at_once(self, root: Root, params: ReadParams) -> files.FileContent | None:
        if not self.at_hand.holds(root, params.path):
            return None
        try:
            return self._read(root, params, largest=SMALL_BYTES)
        except files.LargerThanExpectedError:
            return None  # it was exchanged for a large one, which must not stop the event loop

    def _read_or_say(
        self, root: Root, params: ReadParams, abandoned: threading.Event
    ) -> files.FileContent:
        try:
            return self._read(root, params, abandoned=abandoned)
        except CodeSpaceError as error:
            raise with_near_files(error, root, params.path) from error

    def _read(
        self,
        root: Root,
        params: ReadParams,
        *,
        largest: int | None = None,
        abandoned: threading.Event | None = None,
    ) -> files.FileContent:
        self.at_hand.learn(root)
        max_bytes = params.max_bytes or self.limits.read_default_bytes
        budget = self.limits.result_max_bytes
        while True:
            found = files.read(
                root,
                params.path,
                offset=params.offset,
                max_bytes=max_bytes,
                limits=self.limits,
                largest=largest,
                abandoned=abandoned,
            )
            if params.max_bytes is not None or len(found.content) * JSON_GROWTH <= budget:
                return found
            swollen = len(json.dumps(found.content, ensure_ascii=False).encode())
            if swollen <= budget:
                return found
            max_bytes = min(max_bytes // 2, max_bytes * budget // swollen)

    def _within_budget(self, items: Iterable[T], size: Callable[[T], int]) -> list[T]:
        kept: list[T] = []
        left = self.limits.result_max_bytes
        for item in items:
            left -= size(item)
            if left < 0:
                break
            kept.append(item)
        return kept

    async def _in_thread(self, work: Callable[[threading.Event], T]) -> T:
        """Run `work` in a thread; it soon ends when its event is set."""
        abandoned, begun, ended = threading.Event(), threading.Event(), threading.Event()

        def run() -> T:
            begun.set()
            try:
                return work(abandoned)
            finally:
                ended.set()

        try:
            return await anyio.to_thread.run_sync(run, abandon_on_cancel=True, limiter=self.limiter)
        except anyio.get_cancelled_exc_class():
            abandoned.set()
            # A gateway that ends is not to leave a search behind. What hangs, on a dead network
            # mount, say, is let go all the same.
            with anyio.CancelScope(shield=True), anyio.move_on_after(END_SECONDS):
                while begun.is_set() and not ended.is_set():  # noqa: ASYNC110 -- a thread sets them
                    await anyio.sleep(LOOK_SECONDS)
            raise
