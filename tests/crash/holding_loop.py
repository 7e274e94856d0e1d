"""Holds, grants and resumes one call, and kills itself on the way. Run as a program.

It is imported once and forks for each line `KIND INSTANT ROOT DATABASE` on stdin. The child kills
itself at that instant, counted over every step in the store, every system call of the patch, and
both sides of the command's effect. It says `done` when it got to the end, and then `ended`.
"""

import asyncio
import os
import signal
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from codespace.domain.approval import Approval, HeldOutcome, Resolver, Step
from codespace.domain.errors import ErrorCode
from codespace.domain.ids import ApprovalId
from codespace.store.approvals import Holds, Moved
from doubles.failing_syscalls import Faults
from doubles.held_world import held_world
from doubles.patch_world import patch, update

BEFORE, AFTER = "number 0\n", "number 1\n"
MADE = "made.txt"
PATCHED = "patched.txt"
CALLS: dict[str, tuple[str, dict[str, object]]] = {
    "command": ("bash", {"workspace_id": "demo", "command": "make"}),
    "patch": (
        "apply_patch",
        {"workspace_id": "demo", "patch": patch(update(PATCHED, "number 0", "number 1"))},
    ),
    "keyed": (
        "apply_patch",
        {
            "workspace_id": "demo",
            "patch": patch(update(PATCHED, "number 0", "number 1")),
            "operation_key": "mine",
        },
    ),
}


@dataclass(frozen=True, slots=True)
class KilledHolds(Holds):
    """Passes an instant before and after each step."""

    instant: Callable[[], None]

    def hold(self, wanted: Approval, *, most: int) -> Approval | None:
        self.instant()
        kept = Holds.hold(self, wanted, most=most)
        self.instant()
        return kept

    def step(
        self,
        approval_id: ApprovalId,
        step: Step,
        at: int,
        *,
        by: Resolver | None = None,
        outcome: HeldOutcome | None = None,
    ) -> Moved | None:
        self.instant()
        moved = Holds.step(self, approval_id, step, at, by=by, outcome=outcome)
        self.instant()
        return moved


def made(root: Path) -> Callable[[str], None]:
    """Return what a command does: it leaves a line."""

    def leave(command: str) -> None:
        with (root / MADE).open("a", encoding="utf-8") as file:
            file.write(f"{command}\n")

    return leave


async def run(kind: str, deadly: int, root: Path, database: str) -> None:
    passed = 0

    def instant() -> None:
        nonlocal passed
        if passed == deadly:
            os.kill(os.getpid(), signal.SIGKILL)
        passed += 1

    leave = made(root)

    def effect(command: str) -> None:
        instant()
        leave(command)
        instant()

    with held_world(root, database, faults=Faults(before=lambda _: instant())) as world:
        world.holds = KilledHolds(world.holds.store, instant)
        world.effect = effect
        world.start()
        tool, arguments = CALLS[kind]
        body = await world.refused(ErrorCode.APPROVAL_REQUIRED, tool, **arguments)
        approval_id = body["approval_id"]
        await world.result("approval_resolve", approval_id=approval_id, decision="grant")
        await world.result("operation_resume", approval_id=approval_id)
    os.write(1, b"done\n")


def main() -> None:
    for line in sys.stdin:
        kind, deadly, root, database = line.split()
        child = os.fork()
        if child == 0:
            try:
                asyncio.run(run(kind, int(deadly), Path(root), database))
            except BaseException as error:  # noqa: BLE001 -- said, so that the test fails on it
                os.write(1, f"wrong {error!r}\n".encode())
            finally:
                os._exit(1)
        os.waitpid(child, 0)
        os.write(1, b"ended\n")


if __name__ == "__main__":
    main()
