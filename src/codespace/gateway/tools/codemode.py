"""`codemode`: one script in place of many calls; and its runs, which outlive the call."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Literal

from pydantic import Field, field_validator
from pydantic_core import PydanticCustomError

from codespace.codemode.json_values import DEPTH_MAX, has_only_numbers_of_json, is_too_deep
from codespace.codemode.outcome import Outcome
from codespace.codemode.reading import blocks
from codespace.domain.effect import Effect
from codespace.domain.errors import CodeSpaceError, ErrorCode
from codespace.domain.ids import RunId, RunKey, WorkspaceId
from codespace.domain.sizes import JSON_INTEGER_MAX
from codespace.domain.tool import Call, Params, Result, Tool, define
from codespace.domain.workspace import Workspace
from codespace.gateway.scripts import ScriptOrder, Scripts

WAIT_DEFAULT_MS = 45_000
WAIT_MAX_MS = 300_000

DESCRIPTION = """\
Run one JavaScript program that calls many tools; get back only what it returns.

Use it when you would call tools in a loop, pass results from one to another, or read more than you
need to see: the program filters and joins, and only its value and what it printed reach you.
`code` is the body of an async function: `return`, top-level `await`, `Promise.all`. Tools are
`await tools.name({…})`; `workspace_id` may be left out. A refused call rejects with a ToolError
(`code`, `message`, `details`). `text(value)` and `console.log` print; `args` is the input;
`store(key, value)` and `load(key)` keep JSON between runs; `searchTools(text)` finds tools. No
network, files, timers or imports but through tools. Plain JavaScript, no TypeScript. With
`work_id`, results have `coordination.pending_user_items`.

Example: const {paths, truncated} = await tools.find({glob: "**/*.py", limit: 10000});
if (truncated) console.warn("not all files");
const files = await Promise.all(paths.map(path => tools.read({path})));
return files.filter(f => f.content.includes("NOTE")).map(f => f.path);

"""


AnyJson = Annotated[
    object,
    Field(
        json_schema_extra={
            "anyOf": [
                {"type": kind}
                for kind in ("object", "array", "string", "number", "boolean", "null")
            ]
        }
    ),
]
"""Said in full: some clients take a schema that says nothing for a mistake."""


class CodemodeParams(Params):
    """Arguments of `codemode`."""

    code: str
    """The program: the body of an async function, or a whole `async () => {…}`."""
    workspace_id: str | None = None
    """Stands where a call in the program names none; the only registered one when left out."""
    args: AnyJson = None
    """A JSON value that the program sees as the frozen global `args`."""
    run_key: Annotated[str, Field(min_length=1, max_length=200)] | None = None
    """Makes the request idempotent: the same key and request give the same run."""
    timeout_ms: Annotated[int, Field(ge=1, le=JSON_INTEGER_MAX)] | None = None
    """Ends the run after this time; the operator's limit applies in any case."""
    wait_ms: Annotated[int, Field(ge=0, le=WAIT_MAX_MS)] = WAIT_DEFAULT_MS
    """A run that takes longer goes on; the answer has its `run_id` for `codemode_status`."""
    max_output_chars: Annotated[int, Field(ge=1, le=JSON_INTEGER_MAX)] | None = None
    """Longer output is cut in the middle; the operator's limit applies in any case."""

    @field_validator("args")
    @classmethod
    def _is_json(cls, args: object) -> object:
        if is_too_deep(args):
            raise PydanticCustomError(
                "depth", "JSON may have {most} levels here", {"most": DEPTH_MAX}
            )
        if not has_only_numbers_of_json(args):
            raise PydanticCustomError("number", "JSON has no NaN and no Infinity")
        return args


class RunParams(Params):
    """Arguments of `codemode_cancel`."""

    run_id: str
    """The run, as `codemode` answered it."""


class StatusParams(RunParams):
    """Arguments of `codemode_status`."""

    wait_ms: Annotated[int, Field(ge=0, le=WAIT_MAX_MS)] = 0
    """Waits so long for the end of the run."""


class CallsResult(Result):
    """How the calls of a run ended so far."""

    total: int
    ok: int
    failed: int
    cancelled: int
    unknown: int


class ProblemResult(Result):
    """Something that is not plain success, also when the program went on."""

    call_no: int | None
    tool: str | None
    code: str
    message: str
    handled: bool | None
    """Whether the program caught it; null where there was nothing to catch."""
    line: int | None
    """Where the program wrote the call."""


class RunErrorResult(Result):
    """Why a run failed."""

    kind: Literal["script", "timeout", "limit", "deadlock", "engine"]
    name: str
    message: str
    line: int | None
    column: int | None
    stack: str | None


class CutResult(Result):
    """What was cut from the value."""

    chars: int
    kept_chars: int
    path: str | None
    """A file in the workspace with the whole of it."""


class TruncatedResult(Result):
    """What was cut from the output; from the value where only that was cut."""

    chars: int
    kept_chars: int
    path: str | None
    """A file in the workspace with the whole of it."""
    value: CutResult | None
    """What was cut from the value, also beside the output."""


class RunResult(Result):
    """A run: where it stands, what came of it, and everything that is not plain success."""

    run_id: str
    status: Literal["running", "waiting", "interrupted", "completed", "failed", "cancelled"]
    """In this version no run is `waiting` (for a person) or `interrupted` (by a restart)."""
    value: AnyJson
    """What the program returned."""
    returned: bool
    """Whether it returned anything."""
    output: list[dict[str, object]]
    """What it printed: text and image blocks."""
    calls: CallsResult
    problems: list[ProblemResult]
    waiting: dict[str, object] | None
    error: RunErrorResult | None
    truncated: TruncatedResult | None
    store: list[str]
    """The keys that the run wrote or deleted."""
    wall_ms: float
    engine_ms: float


@dataclass(frozen=True, slots=True)
class CodemodeTools:
    """Scripts and their runs."""

    scripts: Scripts
    workspaces: Mapping[WorkspaceId, Workspace]

    def tools(self) -> list[Tool]:
        """Return the family."""
        return [
            define(
                "codemode",
                Effect.SCRIPT,
                CodemodeParams,
                RunResult,
                self.codemode,
                title="Run a program that calls tools",
                description=DESCRIPTION + self.scripts.declarations(),
                nulls=True,
                show=blocks,
                of_work=True,
            ),
            define(
                "codemode_status",
                Effect.INSPECT,
                StatusParams,
                RunResult,
                self.codemode_status,
                title="Look at a run",
                idempotent=True,
                nulls=True,
                show=blocks,
            ),
            define(
                "codemode_cancel",
                Effect.SCRIPT,
                RunParams,
                RunResult,
                self.codemode_cancel,
                title="Cancel a run",
                idempotent=True,
                nulls=True,
                show=blocks,
            ),
        ]

    async def codemode(self, params: CodemodeParams, call: Call) -> RunResult:
        """Run one program that calls many tools."""
        record = self.scripts.start(
            self._workspace(call),
            ScriptOrder(
                params.code,
                params.args,
                None if params.run_key is None else RunKey(params.run_key),
                params.timeout_ms,
                params.max_output_chars,
                work_id=call.work_id,
            ),
        )
        return _result(await self.scripts.wait(record, params.wait_ms, call.report))

    async def codemode_status(self, params: StatusParams, call: Call) -> RunResult:
        """Say where a run stands, and what came of it; wait for its end if asked to."""
        record = self.scripts.get(RunId(params.run_id))
        return _result(await self.scripts.wait(record, params.wait_ms, call.report))

    async def codemode_cancel(self, params: RunParams, call: Call) -> RunResult:
        """End a run and the calls that it waits for. What its calls have done is not undone."""
        return _result(await self.scripts.cancel(self.scripts.get(RunId(params.run_id))))

    def _workspace(self, call: Call) -> Workspace:
        if call.workspace is not None:
            return call.workspace
        if len(self.workspaces) == 1:
            return next(iter(self.workspaces.values()))
        raise CodeSpaceError(
            ErrorCode.INVALID_ARGUMENT,
            f"codemode: workspace_id: name one of: {', '.join(sorted(self.workspaces))}.",
            details={"path": "workspace_id"},
        )


def _result(outcome: Outcome) -> RunResult:
    return RunResult.model_validate(outcome.to_json())
