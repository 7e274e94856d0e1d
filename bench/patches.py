"""(b) `apply_patch` through the Python API, against a start of the reference engine's binary.

Ours has its ledger in a file, takes before-images, writes durably and reads back. The reference
only writes; but it is a program, so that each patch pays for its start.
"""

import os
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import uvloop
from figures import Plan, Row, Side, interleave, timed, timed_async
from gateways import gateway_on
from references import codex, environment

FOLDERS = 20
LINES = 60
TARGETS = {1: 1.0, 200: 2.0}


@dataclass(frozen=True, slots=True)
class Task:
    """Some files, and the patch that changes each of them."""

    files: dict[str, str]
    patch: str

    def lay_out(self, root: Path) -> None:
        """Write the files anew, and let the disk come to rest."""
        for name, text in self.files.items():
            path = root / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.unlink(missing_ok=True)
            path.write_text(text, encoding="utf-8")
        os.sync()

    def check(self, root: Path) -> None:
        """Raise unless the patch was applied to every file."""
        for name in self.files:
            if "changed by the patch" not in (root / name).read_text(encoding="utf-8"):
                raise RuntimeError(f"the patch did not change {name}")


def task(count: int) -> Task:
    """Return `count` files of about 2 KB with one changed line each."""
    files: dict[str, str] = {}
    sections: list[str] = []
    for number in range(count):
        name = f"package_{number % FOLDERS}/module_{number}.py"
        lines = [f"value_{number}_{line} = {line}  # unchanged" for line in range(LINES)]
        files[name] = "".join(f"{line}\n" for line in lines)
        middle = LINES // 2
        sections += [
            f"*** Update File: {name}",
            "@@",
            *(f" {line}" for line in lines[middle - 3 : middle]),
            f"-{lines[middle]}",
            f"+value_{number}_{middle} = 0  # changed by the patch",
            *(f" {line}" for line in lines[middle + 1 : middle + 4]),
        ]
    return Task(files, "\n".join(["*** Begin Patch", *sections, "*** End Patch"]))


def measure(plan: Plan) -> Iterator[Row]:
    """Measure a small and a large patch, each also without durability."""
    engine = plan.folder("engine") / "apply_patch"
    engine.symlink_to(codex(plan.codex))
    for count in (1, 200):
        rounds = plan.rounds(30 if count == 1 else 15, 5)
        folder = plan.folder(f"patch-{count}")
        taken = uvloop.run(compare(task(count), folder, engine, rounds))
        durable, fast, reference = (seconds * 1e3 for seconds in taken)
        what = f"apply_patch, {count} file{'s' * (count > 1)}"
        yield Row("b", what, "ms", durable, reference, TARGETS[count])
        yield Row("b", f"{what}, not durable", "ms", fast, reference)


async def compare(work: Task, folder: Path, engine: Path, rounds: int) -> list[float]:
    """Return the median seconds: durable, not durable, and the reference."""
    roots = [folder / name for name in ("durable", "fast", "reference")]
    for root in roots:
        root.mkdir()
    async with (
        gateway_on(roots[0], ledger=folder / "durable.db") as durable,
        gateway_on(roots[1], ledger=folder / "fast.db", durable=False) as fast,
    ):
        patch = {"workspace_id": "default", "patch": work.patch}
        return await interleave(
            rounds,
            prepared(work, roots[0], timed_async(lambda: durable.call("apply_patch", patch))),
            prepared(work, roots[1], timed_async(lambda: fast.call("apply_patch", patch))),
            prepared(work, roots[2], timed(lambda: run_engine(engine, work.patch, roots[2]))),
        )


def prepared(work: Task, root: Path, side: Side) -> Side:
    """Return a side that lays out fresh files, lets `side` patch them, and checks what it did."""

    async def whole() -> float:
        work.lay_out(root)
        seconds = await side()
        work.check(root)
        return seconds

    return whole


def run_engine(engine: Path, patch: str, root: Path) -> None:
    """Let the reference engine apply a patch."""
    subprocess.run(
        [str(engine), patch],
        cwd=root,
        check=True,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        env=environment(),
    )
