"""Directories full of made-up files: sources that use a name, and logs with errors in them."""

import hashlib
import random
from collections.abc import Callable
from pathlib import Path

OLD, NEW = "fetch_rows", "load_records"
FILES_A_LOG_FOLDER = 8
SERVICES = ("api", "billing", "search", "mail", "auth", "export")
FAULTS = (
    "timeout after {} ms calling ledger",
    "connection {} reset by peer",
    "row {} violates unique constraint",
    "template {} has no field customer",
    "quota of tenant {} exceeded",
    "checksum of part {} differs",
)
CHECK = f"""\
import compileall, pathlib, re, sys
root = pathlib.Path("src")
left = [p for p in root.rglob("*.py") if re.search(r"\\b{OLD}\\b", p.read_text())]
kept = sum(p.read_text().count("{OLD}_v2") for p in root.rglob("*.py"))
built = compileall.compile_dir(root, quiet=1, ddir="src")
print(f"left={{len(left)}} kept={{kept}} built={{bool(built)}}")
sys.exit(0 if built and not left else 1)
"""


def sources(root: Path, files: int) -> None:
    """Make sources of about 4 KB that use the old name, and a check that they still compile."""
    made = random.Random(3)
    root.mkdir(parents=True)
    (root / "check.py").write_text(CHECK, encoding="utf-8")
    for number in range(files):
        path = root / "src" / f"part_{number % 6}" / f"module_{number:03}.py"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(_module(number, made), encoding="utf-8")


def _module(number: int, made: random.Random) -> str:
    parts = [f'"""Module {number}."""\n\nfrom store import {OLD}, {OLD}_v2\n']
    for place in range(14):
        used = OLD if place % 5 == 1 else f"{OLD}_v2" if place % 5 == 3 else f"plain_{place}"
        limit = made.randrange(1000)
        parts.append(
            f"\ndef step_{place}(table, *, limit={limit}):\n"
            f'    """Take at most {limit} of a table, in the order of step {place}."""\n'
            f"    found = {used}(table, limit=limit, step={place}) if table else []\n"
            f"    return [row for row in found if row.step == {place}][:limit]\n"
        )
    return "\n".join(parts)


def tree_digest(root: Path) -> str:
    """Return a digest of the names and contents of all sources."""
    whole = hashlib.sha256()
    for path in sorted(root.rglob("*.py")):
        whole.update(str(path.relative_to(root)).encode() + b"\0" + path.read_bytes() + b"\0")
    return whole.hexdigest()


def logs(root: Path, megabytes: int) -> None:
    """Make logs of that size in all; about one line in 300 is an error."""
    made = random.Random(5)
    root.mkdir(parents=True)
    size = megabytes * 1_000_000 // FILES_A_LOG_FOLDER
    clock = 0
    for number in range(FILES_A_LOG_FOLDER):
        with (root / f"app-{number}.log").open("w", encoding="utf-8", newline="\n") as file:
            while file.tell() < size:
                clock = _burst(file.write, clock, made)


def _burst(write: Callable[[str], object], clock: int, made: random.Random) -> int:
    lines: list[str] = []
    fault = made.randrange(300)
    for place in range(300):
        clock += made.randrange(1, 40)
        service, request = made.choice(SERVICES), f"{made.getrandbits(40):010x}"
        stamp = f"2026-03-{1 + clock // 86_400_000:02}T{clock // 3_600_000 % 24:02}:"
        stamp += f"{clock // 60_000 % 60:02}:{clock // 1000 % 60:02}.{clock % 1000:03}Z"
        if place == fault:
            text = FAULTS[min(made.randrange(6), made.randrange(6))].format(made.randrange(9999))
            lines.append(f"{stamp} INFO {SERVICES[0]} req={request} accepted a request\n")
            lines.append(f"{stamp} ERROR {service} req={request} {text}\n")
        else:
            text = f"handled in {made.randrange(900)} ms, {made.randrange(9000)} bytes sent"
            level = "WARN" if made.random() < 0.02 else "INFO"
            lines.append(f"{stamp} {level} {service} req={request} {text}\n")
    write("".join(lines))
    return clock
