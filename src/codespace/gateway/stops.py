"""`stop`: the user wants a work to hold still: its runs and the workspace's live process end."""

from collections.abc import Callable, Coroutine
from contextlib import suppress
from dataclasses import dataclass

import anyio

from codespace.domain.errors import CodeSpaceError
from codespace.domain.ids import ProcessId, WorkId, WorkspaceId
from codespace.domain.work import Intent
from codespace.gateway.processes import Processes
from codespace.gateway.works import Works

SAID = "The user stopped this work: do nothing more before you have read what they say next."
END_SECONDS = 5.0
"""Beyond its grace period, a process has this long to be gone."""
PAUSE_SECONDS = 0.02


@dataclass(frozen=True, slots=True)
class Stopped:
    """`killed`: a process was live, and has ended. `notice`: what the agent will read."""

    killed: bool
    notice: Intent


@dataclass(frozen=True, slots=True)
class Stops:
    """Stops works. `cancel_runs` ends the scripts that run for one."""

    works: Works
    processes: Processes
    cancel_runs: Callable[[WorkId], Coroutine[None, None, None]]

    async def stop(self, work_id: WorkId, reason: str | None = None) -> Stopped:
        """End what runs, and put a notice before all else that the agent can claim.

        What waits in the queue stays there, also what an ended script had claimed.

        Raises:
            CodeSpaceError: WORK_NOT_FOUND, or WORK_CLOSED; then nothing was ended.
        """
        notice = await self.works.add_notice(work_id, reason or SAID)
        killed = False

        async def kill() -> None:
            nonlocal killed
            killed = await self._end_process(notice.workspace_id)

        async with anyio.create_task_group() as tasks:
            # Both at once: a script that went on would start its next command.
            tasks.start_soon(self.cancel_runs, work_id)
            tasks.start_soon(kill)
        return Stopped(killed, notice)

    async def _end_process(self, workspace_id: WorkspaceId) -> bool:
        seen = False
        grace = self.processes.limits.terminate_grace_ms / 1000
        with anyio.move_on_after(grace + END_SECONDS):
            while (process_id := await self._live(workspace_id)) is not None:
                seen = True
                await self._end(process_id)
                await anyio.sleep(PAUSE_SECONDS)
            return seen
        return False

    async def _live(self, workspace_id: WorkspaceId) -> ProcessId | None:
        holder = await self.processes.leases.holder(workspace_id)
        if holder is None or holder.kind != "process":
            return None
        return ProcessId(holder.id)

    async def _end(self, process_id: ProcessId) -> None:
        # One that is only just being started is not known yet: it is looked for again.
        with suppress(CodeSpaceError):
            async with self.processes.asking(process_id) as runner:
                await runner.terminate(process_id)
                await runner.status(process_id, wait_ms=self.processes.limits.wait_max_ms)
