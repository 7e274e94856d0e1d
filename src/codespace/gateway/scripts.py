"""Scripts as the gateway runs them: a sandbox for each workspace, and runs that outlive calls."""

import hashlib
import json
import logging
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass
from functools import partial

import anyio
import anyio.abc
import anyio.to_thread

from codespace.codemode.discovery import Catalogue
from codespace.codemode.outcome import (
    ErrorKind,
    Outcome,
    Progress,
    RunError,
    RunStatus,
)
from codespace.codemode.sandbox import Sandbox
from codespace.codemode.source import SourceError, read_source
from codespace.codemode.store import Store
from codespace.domain.effect import Effect
from codespace.domain.errors import CodeSpaceError, ErrorCode
from codespace.domain.ids import RUN_PREFIX, RunId, RunKey, WorkId, WorkspaceId
from codespace.domain.run_limits import RunLimits
from codespace.domain.tool import Report, Tool
from codespace.domain.workspace import Root, Workspace
from codespace.gateway.script_calls import CallTool, HandBack, ScriptCalls, keep
from codespace.gateway.script_outcomes import fitting, size, without_nesting
from codespace.gateway.script_runs import RunRecord, ScriptRuns
from codespace.gateway.script_tools import brief, script_tool
from codespace.policy.permissions import permits
from codespace.workspace.outputs import OutputFile

log = logging.getLogger(__name__)

REPORT_SECONDS = 0.25
END_SECONDS = 5.0
QUEUED_FOR_EACH = 8
"""So many runs may wait for each that may run."""
Watch = Callable[[Progress], None]


@dataclass(frozen=True, slots=True)
class ScriptOrder:
    """What a client asks for. Times are milliseconds; `None` stands for the operator's limit.

    `whole_value`: whoever asks is no model and takes a value of any length and depth. `work_id`
    is of no account for which request it is.
    """

    code: str
    args: object = None
    run_key: RunKey | None = None
    timeout_ms: int | None = None
    max_output_chars: int | None = None
    whole_value: bool = False
    work_id: WorkId | None = None

    def fingerprint(self) -> str:
        """Return what tells this order from any other."""
        parts = [self.code, self.args, self.timeout_ms, self.max_output_chars]
        return hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()

    def shown_chars(self, most: int) -> int:
        """Return how many characters of a value are shown, at most `most`."""
        try:
            wished = read_source(self.code).max_output_chars
        except SourceError:
            wished = None  # such a script does not run
        return min(self.max_output_chars or most, wished or most, most)


@dataclass(frozen=True, slots=True)
class ScriptParts:
    """What scripts need of the rest of the gateway.

    Attributes:
        tools: what scripts may call.
        call: the one path of every call.
        store_of: what `store` and `load` of a workspace's scripts use.
        tasks: where runs live, so that no client's end is theirs.
        threads: limits the threads that write files.
        mint: makes an unguessable id from its prefix.
        now_ms: Unix time in milliseconds.
        hand_back: puts back what a script had claimed of the user's instructions.
    """

    tools: Iterable[Tool]
    call: CallTool
    store_of: Callable[[WorkspaceId], Store]
    tasks: anyio.abc.TaskGroup
    threads: anyio.CapacityLimiter
    mint: Callable[[str], str]
    now_ms: Callable[[], int]
    hand_back: HandBack = keep


class Scripts:
    """Runs scripts, and answers for them until they are forgotten."""

    def __init__(self, parts: ScriptParts, limits: RunLimits) -> None:
        self.limits = limits
        self._parts = parts
        self._runs = ScriptRuns()
        self._slots = anyio.CapacityLimiter(limits.runs)
        self._sandboxes: dict[WorkspaceId, Sandbox] = {}
        self._closed = False

    def start(
        self, workspace: Workspace, order: ScriptOrder, *, watch: Watch | None = None
    ) -> RunRecord:
        """Begin a run and return its record at once; or that of the same request made before.

        Raises:
            CodeSpaceError: RUN_CONFLICT, or LIMIT_EXCEEDED when too many wait already.
        """
        # It says whether a key was used for the same; without a key nobody asks.
        fingerprint = "" if order.run_key is None else order.fingerprint()
        scope = None if order.run_key is None else (workspace.workspace_id, order.run_key)
        known = None if scope is None else self._runs.find(scope, fingerprint)
        if known is not None:
            return known
        self._require_room()
        record = RunRecord(
            RunId(self._parts.mint(RUN_PREFIX)),
            workspace.workspace_id,
            fingerprint,
            self._parts.now_ms(),
            scope,
            order.work_id,
        )
        self._runs.add(record)
        self._parts.tasks.start_soon(self._live, record, workspace, order, watch)
        return record

    def get(self, run_id: RunId) -> RunRecord:
        """Return a run.

        Raises:
            CodeSpaceError: RUN_NOT_FOUND.
        """
        return self._runs.get(run_id)

    async def wait(self, record: RunRecord, wait_ms: int, report: Report | None = None) -> Outcome:
        """Wait for the end of a run, at most `wait_ms`; tell `report` of calls that finish."""
        told = 0
        with anyio.move_on_after(wait_ms / 1000):
            while not record.ended.is_set():
                with anyio.move_on_after(REPORT_SECONDS):
                    await record.ended.wait()
                if report is not None and record.finished > told:
                    told = record.finished
                    await report(told, record.counts.total)
        return record.standing(self._parts.now_ms())

    async def cancel(self, record: RunRecord) -> Outcome:
        """End a run, and return what it came to."""
        record.cancel()
        return await self.wait(record, int(END_SECONDS * 1000))

    async def cancel_of(self, work_id: WorkId) -> None:
        """End the runs of a work, and wait until they have ended."""
        mine = [record for record in self._runs.under_way if record.work_id == work_id]
        for record in mine:
            record.cancel()
        with anyio.move_on_after(END_SECONDS):
            for record in mine:
                await record.ended.wait()

    def declarations(self) -> str:
        """Return what scripts may call as TypeScript, for who writes them."""
        return Catalogue([brief(tool) for tool in self._parts.tools]).text()

    async def close(self) -> None:
        """Cancel what runs; take no more."""
        self._closed = True
        for record in self._runs.under_way:
            record.cancel()
        with anyio.move_on_after(END_SECONDS):
            for record in self._runs.under_way:
                await record.ended.wait()
        for sandbox in self._sandboxes.values():
            sandbox.close()

    def _require_room(self) -> None:
        most = self.limits.runs * (1 + QUEUED_FOR_EACH)
        if self._closed or len(self._runs.under_way) >= most:
            raise CodeSpaceError(
                ErrorCode.LIMIT_EXCEEDED,
                f"{most} scripts run or wait already; try again when some have ended.",
                details={"limit": "codemode_runs", "maximum": self.limits.runs},
            )

    async def _live(
        self, record: RunRecord, workspace: Workspace, order: ScriptOrder, watch: Watch | None
    ) -> None:
        outcome = Outcome(RunStatus.CANCELLED, run_id=record.run_id)
        try:
            async with self._slots:
                if not record.cancelled:
                    outcome = await self._execute(record, workspace, order, watch)
        except Exception:
            # It is the run's; here it would end the gateway.
            log.exception("run failed run=%s", record.run_id)
            error = RunError(ErrorKind.ENGINE, "EngineError", "The gateway failed; see its log.")
            outcome = Outcome(RunStatus.FAILED, error=error, run_id=record.run_id)
        finally:
            self._runs.end(record, outcome, chars=size(outcome), now_ms=self._parts.now_ms())

    async def _execute(
        self, record: RunRecord, workspace: Workspace, order: ScriptOrder, watch: Watch | None
    ) -> Outcome:
        sandbox = self._sandbox(workspace)
        calls = ScriptCalls(
            self._parts.call,
            record.run_id,
            workspace.workspace_id,
            self.limits.mutation_wait_ms,
            order.work_id,
        )
        run = await sandbox.prepare(
            order.code,
            args=order.args,
            timeout=None if order.timeout_ms is None else order.timeout_ms / 1000,
            max_output_chars=order.max_output_chars,
            dispatch=calls,
            progress=partial(_tell, record, watch),
            run_id=record.run_id,
        )
        record.run = run
        if record.cancelled:
            run.cancel()
        ended = await run.execute()
        if ended.status is not RunStatus.COMPLETED:
            # Nobody will read what a script had taken and did not come to tell.
            await calls.hand_back(self._parts.hand_back)
        outcome = without_nesting(ended)
        if order.whole_value:
            return outcome
        return await fitting(
            outcome, order.shown_chars(self.limits.output_chars), self._saver(workspace)
        )

    def _sandbox(self, workspace: Workspace) -> Sandbox:
        known = self._sandboxes.get(workspace.workspace_id)
        if known is None:
            name = workspace.workspace_id
            known = self._sandboxes[name] = Sandbox(
                [script_tool(tool, name) for tool in self._parts.tools],
                store=self._parts.store_of(name),
                save_output=self._saver(workspace),
                **self.limits.options(),
            )
        return known

    def _saver(self, workspace: Workspace) -> Callable[[str], Awaitable[str | None]] | None:
        # What its clients may not write to is not written to by the gateway either.
        if not permits(workspace, Effect.WRITE):
            return None

        async def save(text: str) -> str | None:
            name = f"{self._parts.mint('script-')}.txt"
            work = partial(_save, workspace.root, name, text, self.limits.result_bytes * 2)
            return await anyio.to_thread.run_sync(work, limiter=self._parts.threads)

        return save


def _save(root: Root, name: str, text: str, max_bytes: int) -> str | None:
    file = OutputFile(root, name, max_bytes)
    try:
        file.append(text)
    finally:
        file.close()
    return file.path


def _tell(record: RunRecord, watch: Watch | None, progress: Progress) -> None:
    record.tell(progress)
    if watch is not None:
        watch(progress)
