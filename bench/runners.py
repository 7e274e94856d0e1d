"""(g) The worker process against the runner in the gateway: what one process further away costs."""

from collections.abc import Iterator
from contextlib import AsyncExitStack
from pathlib import Path

import uvloop
from figures import Plan, Row, interleave, timed_async
from gateways import gateway_on
from starts import through_runner, through_tools

from codespace.bootstrap import Gateway

EXEC_TARGET = 1.5
PATCH_TARGET = 1.3
LINES = 60
REFERENCE = "runner: in-process"


def measure(plan: Plan) -> Iterator[Row]:
    """Measure a command and a patch, with both runners in one process."""
    yield from uvloop.run(compare(plan.folder("runners"), plan))


async def compare(root: Path, plan: Plan) -> list[Row]:
    """Return the rows; what differs is nothing but the setting."""
    async with AsyncExitStack() as stack:
        sides = [
            await stack.enter_async_context(
                gateway_on(_project(root / kind), ledger=root / f"{kind}.db", runner=kind)
            )
            for kind in ("uds", "in-process")
        ]
        tools = await interleave(
            plan.rounds(200, 30),
            *(timed_async(lambda one=one: through_tools(one)) for one in sides),
        )
        alone = await interleave(
            plan.rounds(200, 30),
            *(timed_async(lambda one=one: through_runner(one)) for one in sides),
        )
        patches = await interleave(
            plan.rounds(100, 20), *(timed_async(Patching(one).once) for one in sides)
        )
    return [
        _row("true, tools: start to eof", tools, EXEC_TARGET),
        _row("true, runner: start to eof", alone, EXEC_TARGET),
        _row("apply_patch, 1 file", patches, PATCH_TARGET),
    ]


class Patching:
    """Changes one line of a file back and forth."""

    def __init__(self, gateway: Gateway) -> None:
        self._gateway = gateway
        self._words = ("one", "two")

    async def once(self) -> None:
        """Apply one patch."""
        old, new = self._words
        self._words = (new, old)
        body = f"*** Update File: a.txt\n@@\n-{old}\n+{new}\n"
        patch = f"*** Begin Patch\n{body}*** End Patch"
        answer = await self._gateway.call(
            "apply_patch", {"workspace_id": "default", "patch": patch}
        )
        if answer.get("status") != "applied":
            raise RuntimeError(f"the patch was not applied: {answer}")


def _project(root: Path) -> Path:
    root.mkdir()
    (root / "a.txt").write_text("one\n" + "a line\n" * LINES, encoding="utf-8")
    return root


def _row(what: str, seconds: list[float], target: float) -> Row:
    ours, reference = (1e3 * value for value in seconds)
    return Row("g", f"{what}, uds", "ms", ours, reference, target, REFERENCE)
