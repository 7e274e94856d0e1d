"""The benchmarks, as one table: what we cost beside what does the bare work.

python bench/run.py                  everything, in about five minutes
python bench/run.py --only a,d       some of the letters
python bench/run.py --quick          small trees, few repetitions: a look, not a figure
python bench/run.py --json           the same as JSON
"""

import argparse
import json
import logging
import platform
import shutil
import sys
import tempfile
import traceback
from collections.abc import Callable, Iterable, Iterator
from dataclasses import asdict
from os import sched_getaffinity
from pathlib import Path

import calls
import output
import patches
import runners
import searches
import starts
import startup
from figures import Plan, Row

LETTERS: dict[str, Callable[[Plan], Iterable[Row]]] = {
    "a": calls.measure,
    "b": patches.measure,
    "c": searches.measure,
    "d": starts.measure,
    "e": output.measure,
    "f": startup.measure,
    "g": runners.measure,
}
HEAD = ("what", "ours", "reference", "ratio", "target", "verdict", "reference is")
WIDTHS = (48, 12, 12, 7, 7, 8, 0)


def main(arguments: list[str]) -> int:
    """Measure, print, and return 1 if something could not run. A missed target is no failure."""
    options = parse(arguments)
    logging.disable(logging.WARNING)  # that a ledger is in memory is no news here
    scratch = Path(tempfile.mkdtemp(prefix="codespace-bench-", dir=options.scratch))
    plan = Plan(scratch, quick=options.quick, codex=options.codex)
    facts = machine(scratch)
    if not options.json:
        print(*(f"{name}: {fact}" for name, fact in facts.items()), sep="\n", end="\n\n")
        print(line(HEAD))
    failed: list[str] = []
    rows: list[Row] = []
    try:
        for row in measured(options.only, plan, failed):
            rows.append(row)
            if not options.json:
                print(line(cells(row)), flush=True)
    finally:
        shutil.rmtree(scratch, ignore_errors=True)
    if options.json:
        print(json.dumps({"machine": facts, "rows": [as_json(row) for row in rows]}, indent=2))
    if failed:
        print(f"bench: could not run: {', '.join(failed)}", file=sys.stderr)
    return 1 if failed else 0


def parse(arguments: list[str]) -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--only", type=letters, default=list(LETTERS), help="for example a,d")
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--codex", type=Path, help="the reference engine's binary")
    parser.add_argument("--scratch", type=Path, help="where the trees are made; the disk counts")
    return parser.parse_args(arguments)


def letters(text: str) -> list[str]:
    """Read a list of letters.

    Raises:
        ValueError: one of them is not a measurement.
    """
    chosen = text.split(",")
    if not set(chosen) <= set(LETTERS):
        raise ValueError
    return chosen


def measured(chosen: list[str], plan: Plan, failed: list[str]) -> Iterator[Row]:
    """Take the measurements one after another; one that fails does not stop the next."""
    for letter in chosen:
        try:
            yield from LETTERS[letter](plan)
        except Exception:  # noqa: BLE001 -- shown, and told by the exit code
            traceback.print_exc()
            failed.append(letter)


def machine(scratch: Path) -> dict[str, str]:
    """Say what the figures were taken on."""
    return {
        "cpu": f"{cpu_model()}, {len(sched_getaffinity(0))} cores",
        "kernel": f"{platform.system()} {platform.release()} {platform.machine()}",
        "python": f"{platform.python_implementation()} {platform.python_version()}",
        "filesystem": filesystem(scratch),
    }


def cpu_model() -> str:
    """Return the processor's name for itself."""
    for text in Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines():
        if text.startswith("model name"):
            return text.partition(":")[2].strip()
    return platform.machine()


def filesystem(path: Path) -> str:
    """Return the type of the filesystem that holds `path`."""
    mounts: dict[str, str] = {}
    for text in Path("/proc/self/mounts").read_text(encoding="utf-8").splitlines():
        _, place, kind, *_ = text.split()
        mounts[place] = kind
    return next(mounts[str(place)] for place in (path, *path.parents) if str(place) in mounts)


def cells(row: Row) -> tuple[str, ...]:
    """Return a row as the texts of its columns."""
    return (
        f"({row.letter}) {row.what}",
        amount(row.ours, row.unit),
        "" if row.reference is None else amount(row.reference, row.unit),
        "" if row.ratio is None else f"{row.ratio:.2f}",
        "" if row.target is None else f"{row.target:.2f}",
        row.verdict,
        row.note,
    )


def amount(value: float, unit: str) -> str:
    """Return a figure with three digits that count, and its unit."""
    digits = 0 if value >= 100 else 1 if value >= 10 else 2
    return f"{value:,.{digits}f} {unit}"


def line(texts: Iterable[str]) -> str:
    """Return the columns as one line; figures stand to the right."""
    first, *rest = zip(texts, WIDTHS, strict=True)
    shown = [f"{first[0]:<{first[1]}}"]
    shown += [f"{text:>{width}}" if width else f" {text}" for text, width in rest]
    return " ".join(shown).rstrip()


def as_json(row: Row) -> dict[str, object]:
    """Return a row with what follows from it."""
    return {**asdict(row), "ratio": row.ratio, "verdict": row.verdict}


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
