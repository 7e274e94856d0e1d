"""`bash`: a shell text, run to its end in one call."""

from dataclasses import dataclass
from typing import Annotated, Literal

from pydantic import Field

from codespace.domain.sizes import JSON_INTEGER_MAX
from codespace.domain.tool import Call, Effect, Params, Result, Tool, define
from codespace.gateway.processes import check_argv
from codespace.gateway.shell import SHELL, Shell


class BashParams(Params):
    """Arguments of `bash`."""

    workspace_id: str
    """The workspace, as `workspace_info` lists it."""
    command: str
    """The text that bash runs, in the workspace's root."""
    timeout_ms: Annotated[int, Field(ge=1, le=JSON_INTEGER_MAX)] | None = None
    """Ends it after this time; the operator's time limit applies in any case."""


class BashResult(Result):
    """How the command ended. A non-zero exit is a result, not an error."""

    output: str
    """stdout and stderr together: at most the last 2000 lines or 50 KiB."""
    truncated: bool
    """The beginning was cut; `full_output_path` has it."""
    full_output_path: str | None = None
    """A file in the workspace with the output from its first byte; it can be read with `read`."""
    exit_code: int | None = None
    """Only after a normal exit."""
    signal: int | None = None
    termination: Literal["exited", "timeout", "terminated", "unknown"]
    wall_time_seconds: float
    process_id: str


@dataclass(frozen=True, slots=True)
class ShellTools:
    """Runs shell texts."""

    shell: Shell

    def tools(self) -> list[Tool]:
        """Return the family."""
        return [
            define(
                "bash",
                Effect.EXECUTE,
                BashParams,
                BashResult,
                self.bash,
                title="Run a shell command",
                search_words="run command execute test build install program script terminal",
                takes_lease=True,
                mutates=lambda _: True,
                known=self.refused_anyway,
                of_work=True,
            )
        ]

    async def bash(self, params: BashParams, call: Call) -> BashResult:
        """Run a shell command to its end and return its output and exit code.

        stdin is empty. What it starts in the background ends with it. For servers, terminals and
        anything that needs input or runs long, use exec_command.
        """
        outcome = await self.shell.run(
            call.permitted, params.command, timeout_ms=params.timeout_ms, owned=call.owned
        )
        return BashResult(
            output=outcome.output,
            truncated=outcome.truncated,
            full_output_path=outcome.full_output_path,
            exit_code=outcome.state.exit_code,
            signal=outcome.state.signal,
            termination=outcome.state.termination or "unknown",
            wall_time_seconds=round(outcome.wall_time_seconds, 3),
            process_id=outcome.process_id,
        )

    async def refused_anyway(self, params: BashParams, call: Call) -> None:
        """Refuse what no kernel could run, so that nobody is asked to confirm it."""
        check_argv((*SHELL, params.command), self.shell.limits)
