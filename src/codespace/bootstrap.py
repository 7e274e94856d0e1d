"""The composition root: settings become a gateway, and the gateway comes to an orderly end."""

import logging
import secrets
import time
from collections.abc import AsyncGenerator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, replace
from functools import partial
from importlib.metadata import version

import anyio
import anyio.to_thread

from codespace.adapters.ungrouped import ungrouped
from codespace.domain.approval import Resolver
from codespace.domain.errors import CodeSpaceError, from_body
from codespace.domain.ids import ProcessId, WorkspaceId
from codespace.domain.limits import Limits
from codespace.domain.tool import Json
from codespace.domain.workspace import Workspace
from codespace.gateway.approvals import Approvals, OperatorAccess
from codespace.gateway.dispatch import Dispatcher, Outcome
from codespace.gateway.leases import Leases
from codespace.gateway.patches import Patches
from codespace.gateway.processes import Processes
from codespace.gateway.recovery import recover
from codespace.gateway.script_values import KeptValues, owner_of
from codespace.gateway.scripts import ScriptParts, Scripts
from codespace.gateway.shell import Shell
from codespace.gateway.stops import Stops
from codespace.gateway.toolbox import Toolbox
from codespace.gateway.tools.approvals import ApprovalTools
from codespace.gateway.tools.codemode import CodemodeTools
from codespace.gateway.tools.files import FileTools
from codespace.gateway.tools.patch import PatchTools
from codespace.gateway.tools.process import ProcessTools
from codespace.gateway.tools.shell import ShellTools
from codespace.gateway.tools.steering import SteeringTools
from codespace.gateway.tools.workspace import WorkspaceTools
from codespace.gateway.works import Works
from codespace.runner.api import Runner, RunnerLostError
from codespace.runner.local import LocalRunner
from codespace.runner.uds import UdsRunner
from codespace.settings import Loaded, Settings, SettingsError
from codespace.store.approvals import Holds
from codespace.store.engine import Store
from codespace.store.operations import Operations
from codespace.store.values import ScriptValues
from codespace.store.works import Most, WorkRecords
from codespace.workspace.directory import register

log = logging.getLogger(__name__)

VERSION = version("codespace")
FILE_THREADS = 8
OUTPUT_THREADS = 4

FOR_SCRIPTS = ("steer_status", "steer_claim_next", "steer_complete")
"""A work is opened and closed by whoever runs scripts for it."""

MEMORY_WARNING = "no operations_db is set: the ledger is in memory, and nothing survives a restart"

NOBODY_GRANTS = (
    "approvals_granted_by is operator, and nobody can grant: that takes HTTP with a token"
)


@dataclass(frozen=True, slots=True)
class Gateway:
    """A running gateway: every call goes through `dispatcher`, from whichever side it comes."""

    dispatcher: Dispatcher
    workspaces: Mapping[WorkspaceId, Workspace]
    runner: Runner
    limits: Limits
    scripts: Scripts
    approvals: Approvals
    works: Works
    stops: Stops

    @property
    def toolbox(self) -> Toolbox:
        """The tools, in the order in which clients see them."""
        return self.dispatcher.toolbox

    async def call(self, name: str, arguments: Json) -> Json:
        """Call a tool and return its result.

        Raises:
            CodeSpaceError: the call was refused or failed.
            UnknownToolError: no tool has that name.
        """
        outcome = await self.dispatcher.call(name, arguments)
        if outcome.is_error:
            raise from_body(outcome.body)
        return outcome.body


@asynccontextmanager
async def open_gateway(
    loaded: Loaded, *, transports: tuple[str, ...] = (), durable: bool = True
) -> AsyncGenerator[Gateway]:
    """Run a gateway for as long as the block runs; settle first what a crash left unfinished.

    Args:
        loaded: the settings.
        transports: what `workspace_info` says of how clients reach it.
        durable: whether an applied patch survives a power cut; for benchmarks.

    Raises:
        SettingsError: a root is not a directory, or the worker process does not come up.
        StoreError: the ledger's file cannot be used.
    """
    limits, run_limits = _limits(loaded.settings), loaded.settings.codemode
    workspaces = _register(loaded.settings)
    if transports and loaded.settings.operations_db is None:
        log.warning(MEMORY_WARNING)
    if transports and _nobody_grants(loaded.settings, workspaces, transports):
        log.warning(NOBODY_GRANTS)
    async with AsyncExitStack() as ending:
        store = Store(loaded.settings.operations_db, durable=durable)
        ending.callback(store.close)
        operations = Operations(store)
        await anyio.to_thread.run_sync(
            partial(recover, operations, workspaces, now_ms=_now_ms, durable=durable)
        )
        runner = await _open_runner(loaded, limits)
        ending.push_async_callback(runner.close)
        leases = Leases(partial(_is_live, runner))
        patches = Patches(operations, leases, limits, now_ms=_now_ms, mint=_mint, durable=durable)
        works = _works(store, limits)
        await works.load()
        async with ungrouped(anyio.create_task_group()) as tasks:
            files = anyio.CapacityLimiter(FILE_THREADS)
            outputs = anyio.CapacityLimiter(OUTPUT_THREADS)
            approvals = Approvals(
                Holds(store),
                lambda: dispatcher,
                workspaces,
                leases,
                limits,
                now_ms=_now_ms,
                mint=_mint,
                operator=OperatorAccess(known=loaded.settings.http_token is not None),
            )
            processes = Processes(runner, leases, limits, loaded.environment, _mint)
            own = Toolbox(
                [
                    *WorkspaceTools(
                        VERSION,
                        transports,
                        workspaces,
                        runner.facts,
                        limits,
                        lambda: dispatcher.toolbox.names,
                        run_limits,
                    ).tools(),
                    *FileTools(limits, files).tools(),
                    *PatchTools(patches).tools(),
                    *ProcessTools(processes, limits).tools(),
                    *ShellTools(Shell(processes, limits, outputs, tasks)).tools(),
                ]
            )

            steering = SteeringTools(works).tools()

            async def call_of_a_script(name: str, arguments: Json, *, owned: bool) -> Outcome:
                return await dispatcher.call(name, arguments, owned=owned)

            scripts = Scripts(
                ScriptParts(
                    tools=[*own, *(tool for tool in steering if tool.name in FOR_SCRIPTS)],
                    call=call_of_a_script,
                    store_of=partial(_values, ScriptValues(store)),
                    tasks=tasks,
                    threads=files,
                    mint=_mint,
                    now_ms=_now_ms,
                    hand_back=works.hand_back,
                ),
                run_limits,
            )
            toolbox = Toolbox(
                [
                    *own,
                    *ApprovalTools(approvals).tools(),
                    *CodemodeTools(scripts, workspaces).tools(),
                    *steering,
                ]
            )
            dispatcher = Dispatcher(toolbox, workspaces, works, approvals.required)
            stops = Stops(works, processes, scripts.cancel_of)
            try:
                yield Gateway(
                    dispatcher, workspaces, runner, limits, scripts, approvals, works, stops
                )
            finally:
                with anyio.CancelScope(shield=True):
                    await scripts.close()
                    await runner.close()
                    await approvals.drain()
                    await patches.drain()
                tasks.cancel_scope.cancel()


async def _open_runner(loaded: Loaded, limits: Limits) -> Runner:
    if loaded.settings.runner == "uds":
        # The path is all that a worker gets of the environment: bubblewrap is looked for there.
        try:
            return await UdsRunner.open(limits=limits, search_path=loaded.environment.path)
        except CodeSpaceError as error:
            raise SettingsError(f"runner: {error.message}") from None
    return await LocalRunner.open(limits=limits)


def _works(store: Store, limits: Limits) -> Works:
    most = Most(limits.works_open_max, limits.intents_max)
    return Works(WorkRecords(store, most), _now_ms, _mint, limits.works_listed_max)


def _values(values: ScriptValues, workspace_id: WorkspaceId) -> KeptValues:
    return KeptValues(values, owner_of(workspace_id))


def _nobody_grants(
    settings: Settings, workspaces: Mapping[WorkspaceId, Workspace], transports: tuple[str, ...]
) -> bool:
    reserved = any(
        workspace.approvals_granted_by is Resolver.OPERATOR for workspace in workspaces.values()
    )
    return reserved and (settings.http_token is None or "http" not in transports)


def _limits(settings: Settings) -> Limits:
    return replace(
        Limits(),
        max_processes=settings.max_processes,
        process_timeout_ms=int(settings.process_timeout_secs * 1000),
    )


def _register(settings: Settings) -> dict[WorkspaceId, Workspace]:
    workspaces: dict[WorkspaceId, Workspace] = {}
    for name, workspace in settings.workspaces.items():
        try:
            root = register(workspace.root)
        except ValueError as error:
            raise SettingsError(f"workspaces.{name}.root: {error}") from None
        workspaces[WorkspaceId(name)] = Workspace(
            workspace_id=WorkspaceId(name),
            root=root,
            profile=workspace.profile,
            network=workspace.network,
            approvals=workspace.approvals,
            approvals_granted_by=workspace.approvals_granted_by or settings.approvals_granted_by,
            environment=workspace.environment,
        )
    return workspaces


async def _is_live(runner: Runner, process_id: ProcessId) -> bool:
    try:
        return (await runner.status(process_id)).running
    except CodeSpaceError:
        return False  # a handle that is not known any more has no process
    except RunnerLostError:
        return True  # nobody knows that it ended; the next runner will not know it at all


def _mint(prefix: str) -> str:
    return prefix + secrets.token_urlsafe(16)


def _now_ms() -> int:
    return time.time_ns() // 1_000_000
