"""The runs that this gateway knows: each has an id, may have a key, and is kept for a while."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

import anyio

from codespace.codemode.outcome import CallCounts, CallState, Outcome, Progress, RunStatus
from codespace.codemode.run import Run
from codespace.domain.errors import CodeSpaceError, ErrorCode
from codespace.domain.ids import RunId, RunKey, WorkId, WorkspaceId

ENDED_KEPT = 200
ENDED_KEPT_MS = 60 * 60 * 1_000
KEPT_CHARS = 64 * 1024 * 1024
"""Of all ended runs together: the oldest go first."""

Scope = tuple[WorkspaceId, RunKey]

_FIELDS: Mapping[CallState, str] = {
    CallState.OK: "ok",
    CallState.FAILED: "failed",
    CallState.CANCELLED: "cancelled",
    CallState.UNKNOWN: "unknown",
}


@dataclass(slots=True)
class RunRecord:
    """One run, under way or ended.

    Attributes:
        fingerprint: of the request; the same key with another one is a conflict.
        outcome: what it came to; `None` while it is under way.
        ended: set with the outcome.
    """

    run_id: RunId
    workspace_id: WorkspaceId
    fingerprint: str
    started_ms: int
    scope: Scope | None = None
    work_id: WorkId | None = None
    run: Run | None = None
    outcome: Outcome | None = None
    ended_ms: int = 0
    chars: int = 0
    finished: int = 0
    cancelled: bool = False
    ended: anyio.Event = field(default_factory=anyio.Event)
    counts: CallCounts = field(default_factory=CallCounts)

    def tell(self, progress: Progress) -> None:
        """Take in how far the run is."""
        self.finished = progress.finished
        ended = _FIELDS.get(progress.record.state)
        counts = (
            self.counts
            if ended is None
            else self.counts._replace(**{ended: getattr(self.counts, ended) + 1})
        )
        self.counts = counts._replace(total=progress.total)

    def cancel(self) -> None:
        """End the run; nothing happens when it has ended."""
        self.cancelled = True
        if self.run is not None:
            self.run.cancel()

    def standing(self, now_ms: int) -> Outcome:
        """Return the outcome, or what is known while there is none."""
        if self.outcome is not None:
            return self.outcome
        return replace(
            Outcome(RunStatus.RUNNING) if self.run is None else self.run.so_far(),
            calls=self.counts,
            run_id=self.run_id,
            wall_ms=float(now_ms - self.started_ms),
        )


@dataclass(slots=True)
class ScriptRuns:
    """Finds runs by id and by key; forgets the oldest that have ended."""

    _runs: dict[RunId, RunRecord] = field(default_factory=dict[RunId, RunRecord])
    _keys: dict[Scope, RunId] = field(default_factory=dict[Scope, RunId])

    def __len__(self) -> int:
        return len(self._runs)

    @property
    def under_way(self) -> list[RunRecord]:
        """The runs that have not ended."""
        return [record for record in self._runs.values() if record.outcome is None]

    def get(self, run_id: RunId) -> RunRecord:
        """Return a run.

        Raises:
            CodeSpaceError: RUN_NOT_FOUND.
        """
        record = self._runs.get(run_id)
        if record is None:
            raise CodeSpaceError(
                ErrorCode.RUN_NOT_FOUND,
                f"No run is known as {str(run_id)[:100]!r}; runs are forgotten some time after"
                " their end, and with the gateway.",
            )
        return record

    def find(self, scope: Scope, fingerprint: str) -> RunRecord | None:
        """Return the run that an earlier request with this key began.

        Raises:
            CodeSpaceError: RUN_CONFLICT: that request was another one.
        """
        run_id = self._keys.get(scope)
        if run_id is None:
            return None
        record = self._runs[run_id]
        if record.fingerprint != fingerprint:
            raise CodeSpaceError(
                ErrorCode.RUN_CONFLICT,
                "This run_key was used with other code, args or limits; use a new key.",
                details={"run_id": run_id},
            )
        return record

    def add(self, record: RunRecord) -> None:
        """Remember a run that is about to begin."""
        self._runs[record.run_id] = record
        if record.scope is not None:
            self._keys[record.scope] = record.run_id

    def end(self, record: RunRecord, outcome: Outcome, *, chars: int, now_ms: int) -> None:
        """Keep what a run came to (about `chars` characters), and make room for it."""
        record.outcome, record.chars, record.ended_ms = outcome, chars, now_ms
        record.run = None
        record.ended.set()
        self._forget(now_ms)

    def _forget(self, now_ms: int) -> None:
        ended = sorted(
            (record for record in self._runs.values() if record.outcome is not None),
            key=lambda record: record.ended_ms,
            reverse=True,
        )
        chars = 0
        for place, record in enumerate(ended):
            chars += record.chars
            old = now_ms - record.ended_ms > ENDED_KEPT_MS
            # The newest stays in any case: somebody waits for it.
            if place and (place >= ENDED_KEPT or chars > KEPT_CHARS or old):
                del self._runs[record.run_id]
                if record.scope is not None:
                    del self._keys[record.scope]
