"""What a measurement is made of: interleaved repetitions, medians, and the rows of the table."""

import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Literal

Unit = Literal["ms", "MiB", "MB/s", "/s"]
RATES: tuple[Unit, ...] = ("MB/s", "/s")
MIB = 1024 * 1024
Side = Callable[[], Awaitable[float]]
"""One of the things compared: runs once, and returns the seconds that count."""


@dataclass(frozen=True, slots=True)
class Plan:
    """How to measure.

    Attributes:
        scratch: an empty directory for whatever a measurement needs; removed at the end.
        quick: fewer repetitions and smaller trees: a look, not a figure to publish.
        codex: the reference engine's binary, where the operator named one.
    """

    scratch: Path
    quick: bool = False
    codex: Path | None = None

    def rounds(self, full: int, quick: int) -> int:
        """Choose a number by the kind of run."""
        return quick if self.quick else full

    def folder(self, name: str) -> Path:
        """Make a directory for one measurement."""
        path = self.scratch / name
        path.mkdir(parents=True)
        return path


@dataclass(frozen=True, slots=True)
class Row:
    """One line of the table. Without a target it only informs."""

    letter: str
    what: str
    unit: Unit
    ours: float
    reference: float | None
    target: float | None = None
    note: str = ""

    @property
    def ratio(self) -> float | None:
        """How many times the reference's cost ours is; below 1 we are cheaper."""
        if self.reference is None:
            return None
        if self.unit in RATES:
            return self.reference / self.ours
        return self.ours / self.reference

    @property
    def verdict(self) -> str:
        """Say whether the target is met, where there is one."""
        if self.target is None or self.ratio is None:
            return ""
        return "ok" if self.ratio <= self.target else "over"


def timed(work: Callable[[], object]) -> Side:
    """Return a side that runs `work`, which blocks, and tells the seconds it took."""

    async def side() -> float:
        started = time.perf_counter()
        work()
        return time.perf_counter() - started

    return side


def timed_async(work: Callable[[], Awaitable[object]]) -> Side:
    """Return a side that awaits `work` and tells the seconds it took."""

    async def side() -> float:
        started = time.perf_counter()
        await work()
        return time.perf_counter() - started

    return side


async def interleave(rounds: int, *sides: Side) -> list[float]:
    """Run all sides in turn, `rounds` times, and return the median seconds of each.

    Every other round goes backwards, so that no side always runs behind the same one. A first
    round warms up and does not count.
    """
    taken: list[list[float]] = [[] for _ in sides]
    numbered = list(enumerate(sides))
    for turn in range(-1, rounds):
        for index, side in numbered if turn % 2 else reversed(numbered):
            seconds = await side()
            if turn >= 0:
                taken[index].append(seconds)
    return [median(values) for values in taken]


def resident_mib(pid: int, field: str = "VmRSS") -> float:
    """Return a process's resident memory, or another size of its status, in MiB."""
    for line in Path(f"/proc/{pid}/status").read_text(encoding="ascii").splitlines():
        if line.startswith(f"{field}:"):
            return int(line.split()[1]) / 1024
    raise LookupError(f"the kernel tells no {field} of the process {pid}")
