"""A gateway's confirmations over a real store and directory, with commands that only count."""

import asyncio
from collections.abc import Callable, Generator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path

import pytest

from codespace.domain.approval import Resolver
from codespace.domain.errors import CodeSpaceError, ErrorCode
from codespace.domain.ids import ApprovalId
from codespace.domain.limits import Limits
from codespace.domain.tool import Call, Effect, Json, Params, Result, define
from codespace.domain.workspace import Approvals as Wanted
from codespace.domain.workspace import Profile
from codespace.gateway.approvals import Approvals, OperatorAccess
from codespace.gateway.dispatch import Dispatcher, Outcome
from codespace.gateway.toolbox import Toolbox
from codespace.gateway.tools.approvals import ApprovalTools
from codespace.gateway.tools.patch import PatchTools
from codespace.store.approvals import Holds
from doubles.failing_syscalls import Faults
from doubles.patch_world import DEMO, NOW_MS, PatchWorld, patch_world


class CommandParams(Params):
    """A shell text."""

    workspace_id: str
    command: str
    timeout_ms: int | None = None


class CommandResult(Result):
    """How often it ran so far."""

    runs: int


class GateParams(Params):
    """Arguments of a tool that changes nothing."""

    workspace_id: str


@dataclass(slots=True)
class HeldWorld:
    """The parts, and short names for what tests do with them.

    `ran` has the commands that were run, each with its `effect`; `failure` is what the next one
    raises; while `slow` is not set, commands that were begun wait for it.
    """

    patches: PatchWorld
    holds: Holds
    ran: list[str] = field(default_factory=list[str])
    failure: Exception | None = None
    effect: Callable[[str], None] = field(default=lambda _: None)
    slow: asyncio.Event = field(default_factory=asyncio.Event)
    minted: int = 0
    approvals: Approvals = field(init=False)
    dispatcher: Dispatcher = field(init=False)

    def __post_init__(self) -> None:
        self.slow.set()
        self.start()

    def start(
        self,
        *,
        profile: Profile = Profile.WORKSPACE_WRITE,
        wanted: Wanted = Wanted.CONFIRM,
        granted_by: Resolver = Resolver.CALLER,
        token: bool = False,
        gone: bool = False,
        root: str | None = None,
        limits: Limits | None = None,
    ) -> None:
        """Begin anew on the same store, as a gateway that was started again does."""
        workspace = replace(
            self.patches.workspace,
            profile=profile,
            approvals=wanted,
            approvals_granted_by=granted_by,
        )
        if root is not None:
            workspace = replace(workspace, root=replace(workspace.root, path=root))
        workspaces = {} if gone else {DEMO: workspace}
        self.approvals = Approvals(
            self.holds,
            lambda: self.dispatcher,
            workspaces,
            self.patches.leases,
            limits or Limits(),
            now_ms=lambda: NOW_MS,
            mint=self._mint,
            operator=OperatorAccess(known=token),
        )
        tools = [
            *PatchTools(self.patches.patches).tools(),
            define(
                "bash",
                Effect.EXECUTE,
                CommandParams,
                CommandResult,
                self._command,
                title="bash",
                mutates=lambda _: True,
            ),
            define("look", Effect.READ, GateParams, CommandResult, self._look, title="look"),
            *ApprovalTools(self.approvals).tools(),
        ]
        self.dispatcher = Dispatcher(Toolbox(tools), workspaces, hold=self.approvals.required)

    async def call(self, tool: str, /, **arguments: object) -> Outcome:
        return await self.dispatcher.call(tool, arguments)

    async def result(self, tool: str, /, **arguments: object) -> Json:
        """Call a tool that must answer with a result."""
        outcome = await self.call(tool, **arguments)
        assert not outcome.is_error, outcome.body
        return outcome.body

    async def refused(self, code: ErrorCode, tool: str, /, **arguments: object) -> Json:
        """Call a tool that must answer with this error."""
        outcome = await self.call(tool, **arguments)
        assert outcome.is_error, outcome.body
        assert outcome.body["code"] == code, outcome.body
        return outcome.body

    async def held(self, tool: str = "bash", /, **arguments: object) -> ApprovalId:
        """Make a call that must be held."""
        given = {"workspace_id": "demo", **({"command": "make"} if tool == "bash" else {})}
        body = await self.refused(ErrorCode.APPROVAL_REQUIRED, tool, **(given | arguments))
        return ApprovalId(str(body["approval_id"]))

    async def granted(self, tool: str = "bash", /, **arguments: object) -> ApprovalId:
        """Make a call that must be held, and grant it."""
        approval_id = await self.held(tool, **arguments)
        await self.approvals.resolve(approval_id, "grant", by=Resolver.CALLER)
        return approval_id

    async def not_resumed(self, code: ErrorCode, approval_id: ApprovalId) -> CodeSpaceError:
        """Resume a hold that must be refused."""
        with pytest.raises(CodeSpaceError) as caught:
            await self.approvals.resume(approval_id)
        assert caught.value.code is code
        return caught.value

    def state(self, approval_id: ApprovalId) -> str:
        """Return the state that the store has."""
        found = self.holds.find(approval_id)
        assert found is not None
        return found.state.value

    async def _command(self, params: CommandParams, call: Call) -> CommandResult:
        """Run a command."""
        self.ran.append(params.command)
        self.effect(params.command)
        await self.slow.wait()
        if self.failure is not None:
            raise self.failure
        return CommandResult(runs=len(self.ran))

    async def _look(self, params: GateParams, call: Call) -> CommandResult:
        """Look."""
        return CommandResult(runs=len(self.ran))

    def _mint(self, prefix: str) -> str:
        self.minted += 1
        return f"{prefix}{self.minted}"


@contextmanager
def held_world(
    root: Path, database: str | None = None, *, faults: Faults | None = None, first: int = 1
) -> Generator[HeldWorld]:
    """Make a world around `root`; ids are `appr-1`, `appr-2` and so on, from `first`."""
    with patch_world(root, database=database, faults=faults, first=first) as patches:
        yield HeldWorld(patches, Holds(patches.operations.store), minted=first - 1)
