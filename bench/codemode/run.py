"""Our engine of scripts beside others: equal scripts, one table.

python bench/codemode/run.py                     everything, in about five minutes
python bench/codemode/run.py --rounds 1          a look, not a figure
python bench/codemode/run.py --only ours,pi      some of the engines
python bench/codemode/run.py --json              the same as JSON

It needs node, npm and the network for its first run: the others are installed into a cache folder
outside of the tree. Linux only, for the memory is read from /proc.
"""

import argparse
import json
import os
import subprocess
import sys
import time
import venv
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median

sys.path.append(str(Path(__file__).resolve().parent.parent))  # the modules that benchmarks share

from references import CACHE, environment
from scripts import SCRIPTS

HERE = Path(__file__).resolve().parent
PEERS = CACHE / "codemode"
PI = "@earendil-works/pi-codemode@1.6.0"
PACKAGES = ("quickjs-rs==0.2.6", "pydantic-monty==1.4.0")
FIRST_RUNS = 5
LATEST_SECONDS = 300
BEST_PEER_MAX = 1.5
Values = Mapping[str, object]


@dataclass(frozen=True, slots=True)
class Measure:
    """A line of the table.

    Attributes:
        key: as the drivers print it.
        what: for people.
        against_pi: how many times better than Pi we want to be, where a target is set.
    """

    key: str
    what: str
    against_pi: float | None = None


MEASURES = (
    Measure("first_ms", "process start to first result, ms", 2),
    Measure("warm_ms", "new VM and `return 1+2`, ms", 50),
    Measure("seq_us", "sequential call, us", 2.5),
    Measure("conc_us", "concurrent call (of 1000), us", 3),
    Measure("real_us", "call with 0.2 KB in, 1.5 KB out, us"),
    Measure("mb_ms", "result of a 1 MB string, ms"),
    Measure("objs_ms", "result of 100,000 objects, filtered, ms"),
    Measure("loop_ms", "loop of 5,000,000, ms"),
    Measure("mix_ms", "group, sort, JSON of 20,000 objects, ms"),
    Measure("idle_mb", "memory of a suspended script (PSS), MiB", 20),
    Measure("lag_ms", "event loop's delay beside an endless loop, ms"),
)
SAID = ("spin_ms", "spin_err", "recursion", "deadlock")


def engines() -> dict[str, list[str]]:
    """Return the command of each driver."""
    python = str(PEERS / "venv" / "bin" / "python")
    return {
        "ours": [sys.executable, str(HERE / "ours.py")],
        "pi": ["node", str(HERE / "pi.mjs")],
        "quickjs-rs": [python, str(HERE / "quickjs_driver.py")],
        "monty": [python, str(HERE / "monty_driver.py"), "alone"],
        "monty-pool": [python, str(HERE / "monty_driver.py"), "pool"],
    }


def main(arguments: list[str]) -> int:
    """Measure, print, and return 1 if an engine could not run. A missed target is no failure."""
    options = parse(arguments)
    known = engines()
    chosen = {name: known[name] for name in options.only}
    install(chosen)
    load = os.getloadavg()[0]
    taken: dict[str, list[Values]] = {name: [] for name in chosen}
    for _ in range(options.rounds):
        for name, command in chosen.items():
            taken[name].append(driven(command))
    found = {name: middle(values) for name, values in taken.items()}
    if options.json:
        print(json.dumps(found, indent=2))
    else:
        print(f"load at the start {load:.1f}, at the end {os.getloadavg()[0]:.1f}\n")
        print(table(found), said(found), sep="\n\n")
    return 0 if all("warm_ms" in values for values in found.values()) else 1


def parse(arguments: list[str]) -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--only", type=names, default=list(engines()), help="for example ours,pi")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--json", action="store_true")
    return parser.parse_args(arguments)


def names(text: str) -> list[str]:
    """Read a list of engines.

    Raises:
        ValueError: one of them is not known.
    """
    chosen = text.split(",")
    if not set(chosen) <= set(engines()):
        raise ValueError
    return chosen


def install(chosen: Mapping[str, Sequence[str]]) -> None:
    """Put the others into the cache folder, where they are not there already."""
    PEERS.mkdir(parents=True, exist_ok=True)
    _once("npm", "pi" in chosen, PI, _npm)
    _once("pip", bool(set(chosen) - {"ours", "pi"}), " ".join(PACKAGES), _pip)


def _once(name: str, needed: bool, wanted: str, make: Callable[[], None]) -> None:  # noqa: FBT001 -- private
    stamp = PEERS / f".{name}"
    if needed and (not stamp.exists() or stamp.read_text(encoding="utf-8") != wanted):
        print(f"bench: installing {wanted} into {PEERS}", file=sys.stderr)
        make()
        stamp.write_text(wanted, encoding="utf-8")


def _npm() -> None:
    command = ["npm", "install", "--silent", "--no-audit", "--no-fund", "--prefix", str(PEERS), PI]
    subprocess.run(command, check=True, stdout=sys.stderr)


def _pip() -> None:
    venv.create(PEERS / "venv", with_pip=True, clear=True)
    python = PEERS / "venv" / "bin" / "python"
    subprocess.run([python, "-m", "pip", "-q", "install", *PACKAGES], check=True, stdout=sys.stderr)


def driven(command: Sequence[str]) -> Values:
    """Run a driver once, after some fresh processes that run one script each."""
    inherited = {**environment(), "SCRIPTS": json.dumps(SCRIPTS), "PEERS": str(PEERS)}
    found: dict[str, object] = {}
    try:
        found["first_ms"] = min(first(command, inherited) for _ in range(FIRST_RUNS)) * 1e3
        ended = subprocess.run(
            command,
            env=inherited,
            capture_output=True,
            text=True,
            timeout=LATEST_SECONDS,
            check=False,
        )
    except (subprocess.SubprocessError, OSError) as error:
        print(f"bench: {error}", file=sys.stderr)
        return found
    if ended.returncode:
        print(f"bench: {command}: {ended.stderr[-1000:]}", file=sys.stderr)
    for line in ended.stdout.splitlines():
        if line.startswith('["'):
            key, value = json.loads(line)
            found[key] = value
    return found


def first(command: Sequence[str], inherited: Mapping[str, str]) -> float:
    """Return the seconds of a fresh process that runs one script."""
    started = time.perf_counter()
    subprocess.run([*command, "first"], env=inherited, check=True, capture_output=True, timeout=60)
    return time.perf_counter() - started


def middle(rounds: Sequence[Values]) -> Values:
    """Return the medians of numbers, and the last of what is said."""
    found: dict[str, object] = {}
    for key in {key for values in rounds for key in values}:
        given = [values[key] for values in rounds if key in values]
        numbers = [value for value in given if isinstance(value, int | float)]
        found[key] = median(numbers) if numbers else given[-1]
    return found


def table(found: Mapping[str, Values]) -> str:
    """Return the measures as Markdown; ratios are of ours, where it was measured."""
    heads = ["measure", *found, "Pi / ours", "target", "ours / best", "at most 1.5"]
    lines = [f"| {' | '.join(heads)} |", f"| --- |{' ---: |' * (len(heads) - 1)}"]
    lines += [f"| {' | '.join(row(measure, found))} |" for measure in MEASURES]
    return "\n".join(lines)


def row(measure: Measure, found: Mapping[str, Values]) -> list[str]:
    """Return the cells of one measure."""
    values = {name: number(each.get(measure.key)) for name, each in found.items()}
    ours, pi = values.get("ours"), values.get("pi")
    peers = [value for name, value in values.items() if name != "ours" and value is not None]
    against_pi = pi / ours if ours and pi else None
    against_best = ours / min(peers) if ours and peers and min(peers) else None
    target = measure.against_pi
    return [
        measure.what,
        *(shown(value) for value in values.values()),
        f"{shown(against_pi)}x" if against_pi else "",
        verdict(target, against_pi is not None and target is not None and against_pi >= target),
        f"{against_best:.2f}" if against_best else "",
        ("ok" if against_best <= BEST_PEER_MAX else "over") if against_best else "",
    ]


def verdict(target: float | None, reached: bool) -> str:  # noqa: FBT001 -- it is what is said
    """Return the target, and whether it is reached."""
    return "" if target is None else f"{target:g}x {'ok' if reached else 'missed'}"


def number(value: object) -> float | None:
    """Return a measured number, if it is one."""
    return float(value) if isinstance(value, int | float) else None


def shown(value: float | None) -> str:
    """Return a number with three digits that count."""
    if value is None:
        return "-"
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"


def said(found: Mapping[str, Values]) -> str:
    """Return what engines say of scripts that go wrong."""
    lines = ["| engine | endless loop with a limit of 1 s | recursion | a promise nobody settles |"]
    lines.append("| --- | --- | --- | --- |")
    for name, values in found.items():
        took, *texts = (values.get(key, "-") for key in SAID)
        spin = f"after {shown(number(took))} ms: {texts[0]}"
        cells = [name, spin, *map(str, texts[1:])]
        lines.append(f"| {' | '.join(cell.replace('|', '/') for cell in cells)} |")
    return "\n".join(lines)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
