"""Does a script pay? Five tasks, each by single tool calls and as one script, in one table.

python bench/economy/run.py            everything, in about a minute
python bench/economy/run.py --quick    small worlds, one repetition: a look, not a figure
python bench/economy/run.py --json     the same as JSON

Both forms work with the same tools on equal worlds, and their results must agree. No model takes
part: an agent that calls tools one by one is played by a program that makes the calls which the
task needs and reads every answer.
"""

import argparse
import json
import shutil
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import median

import anyio

sys.path.append(str(Path(__file__).resolve().parent.parent))  # the modules that benchmarks share

from bill import CALLS_A_TURN, CHARS_A_TOKEN, Agent, Bill
from own_tools import OWN
from places import gateway
from workloads import FOREIGN, QUICK, Sizes, Workload

WORKLOADS: Sequence[Workload] = (FOREIGN[0], FOREIGN[1], *OWN, FOREIGN[2])
ROUNDS = 3


@dataclass(frozen=True, slots=True)
class Row:
    """One task: what each form cost."""

    name: str
    calls: Bill
    script: Bill
    agree: bool


def main(arguments: list[str]) -> int:
    """Measure and print; return 1 if two forms do not agree."""
    options = parse(arguments)
    scratch = Path(tempfile.mkdtemp(prefix="codespace-economy-", dir=options.scratch))
    try:
        rows, sizes = anyio.run(measured, scratch, options.quick)
    finally:
        shutil.rmtree(scratch, ignore_errors=True)
    if options.json:
        print(json.dumps([{**asdict(row)} for row in rows], indent=2))
    else:
        print(table(rows, sizes))
    return 0 if all(row.agree for row in rows) else 1


def parse(arguments: list[str]) -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--scratch", type=Path, help="where the worlds are made")
    return parser.parse_args(arguments)


async def measured(scratch: Path, quick: bool) -> tuple[list[Row], tuple[int, int]]:  # noqa: FBT001 -- anyio passes no keywords
    """Do every task in both forms; also weigh the definitions of the gateway's tools."""
    sizes, rounds = (QUICK, 1) if quick else (Sizes(), ROUNDS)
    rows: list[Row] = []
    for number, workload in enumerate(WORKLOADS):
        taken: list[tuple[Bill, Bill, bool]] = []
        for turn in range(rounds):
            folder = scratch / f"{number}-{turn}"
            taken.append(await both(workload, folder, sizes))
            shutil.rmtree(folder)
        calls, script, _ = taken[-1]
        calls.seconds = median(each.seconds for each, _, _ in taken)
        script.seconds = median(each.seconds for _, each, _ in taken)
        rows.append(Row(workload.name(sizes), calls, script, all(each[2] for each in taken)))
    (scratch / "empty").mkdir()
    async with gateway(scratch / "empty") as place:
        definitions = await place.definitions()
    return rows, definitions


async def both(workload: Workload, folder: Path, sizes: Sizes) -> tuple[Bill, Bill, bool]:
    """Do a task in both forms, each in a world of its own, and see that the results agree."""
    results: list[object] = []
    bills: list[Bill] = []
    for form in ("calls", "script"):
        home = folder / form
        home.mkdir(parents=True)
        async with workload.opened(home, sizes) as place:
            if form == "calls":
                agent = Agent(place.call)
                result, bill = await workload.alone(agent), agent.bill
            else:
                result, bill = await place.script(workload.script, {})
            state = None if workload.state is None else await workload.state(place, home)
        results.append(json.loads(json.dumps([result, state])))
        bills.append(bill)
    agree = results[0] == results[1]
    if not agree:
        print(f"economy: the forms differ: {json.dumps(results)[:3000]}", file=sys.stderr)
    return bills[0], bills[1], agree


def table(rows: Sequence[Row], definitions: tuple[int, int]) -> str:
    """Return the rows as Markdown, with what they do not show."""
    lines = [
        "| task | form | bytes read | tokens read | tokens written | calls | turns | time |",
        "| --- | --- | ---: | ---: | ---: | ---: | ---: | ---: |",
    ]
    for row in rows:
        for form, bill in (("calls", row.calls), ("script", row.script)):
            cells = (
                row.name if form == "calls" else "",
                form,
                f"{bill.read_bytes:,}",
                f"{bill.tokens:,}",
                f"{bill.written_tokens:,}",
                f"{bill.calls:,}",
                f"{bill.turns:,}",
                f"{bill.seconds:.2f} s",
            )
            lines.append(f"| {' | '.join(cells)} |")
    lines += [
        "",
        note(*definitions),
    ]
    lines += [f"the forms of {row.name!r} DISAGREE" for row in rows if not row.agree]
    return "\n".join(lines)


def note(alone: int, rest: int) -> str:
    """Return what the columns mean, and what every context has once."""
    return (
        f"tokens: characters / {CHARS_A_TOKEN}; calls in one turn: at most {CALLS_A_TURN}; once in"
        f" every context: the definition of codemode, {alone:,} characters, beside {rest:,} of all"
        " other tools"
    )


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
