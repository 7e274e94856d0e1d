"""(c) `find` and `grep` through the Python API, against ripgrep over the same tree."""

import random
import subprocess
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import uvloop
from figures import MIB, Plan, Row, interleave, timed, timed_async
from gateways import gateway_on
from references import beside_python

from codespace.bootstrap import Gateway

TARGET = 2.0
WORDS = ("alpha", "buffer", "column", "gamma", "handle", "index", "packet", "result", "thread")
NEEDLE = "needle_in_the_haystack"
COMMON = "checkpoint"
CONTENT_FILE_BYTES = 100_000


@dataclass(frozen=True, slots=True)
class Look:
    """A call of a tool, and what ripgrep is asked in its place."""

    what: str
    tool: str
    arguments: Mapping[str, object]
    references: Mapping[str, list[str]]
    """Options of ripgrep by what the table calls them."""
    targets: tuple[float | None, ...] = (TARGET, None)


def measure(plan: Plan) -> Iterator[Row]:
    """Measure names on a tree of many files, then contents on a tree of many bytes."""
    count, size = plan.rounds(100_000, 10_000), plan.rounds(200, 20)
    names, contents = plan.folder("names"), plan.folder("contents")
    lay_out_names(names, count)
    lay_out_contents(contents, size * MIB)
    rounds = plan.rounds(9, 3)
    yield from uvloop.run(compare(names, list(finds(count)), rounds))
    yield from uvloop.run(compare(contents, list(greps(size)), rounds))


def finds(count: int) -> Iterator[Look]:
    """Return the looks for names: all of them, and a few."""
    files = ["--files"]
    yield Look(
        f"find **/*, {count:,} files",
        "find",
        {"limit": 10_000},
        {"rg --files": files, "rg --files --sort path": [*files, "--sort", "path"]},
    )
    typed = [*files, "--type-add", "wanted:*_7.py", "--type", "wanted"]
    overruling = [*files, "--glob", "**/*_7.py"]
    yield Look(
        f"find **/*_7.py, {count:,} files",
        "find",
        {"glob": "**/*_7.py", "limit": 10_000},
        {"rg --files --type": typed, "rg --files --glob": overruling},
    )


def greps(size: int) -> Iterator[Look]:
    """Return the looks for contents: few matches, and more than an answer holds."""
    for what, pattern in (("rare word", NEEDLE), ("rare regex", r"needle_\w+_haystack")):
        yield Look(
            f"grep {what}, {size} MiB",
            "grep",
            {"pattern": pattern, "limit": 2_000},
            {"rg": [pattern], "rg --json": ["--json", pattern]},
            (TARGET, TARGET),
        )
    yield Look(
        f"grep common word, first 200, {size} MiB",
        "grep",
        {"pattern": COMMON},
        {"rg (all matches)": [COMMON], "rg --json (all)": ["--json", COMMON]},
        (TARGET, TARGET),
    )


async def compare(root: Path, looks: list[Look], rounds: int) -> list[Row]:
    """Take each look with the gateway and with ripgrep in turn."""
    rows: list[Row] = []
    async with gateway_on(root) as gateway:
        for look in looks:
            sides = [
                timed(lambda options=options: ripgrep(root, options))
                for options in look.references.values()
            ]
            ours, *references = await interleave(
                rounds, timed_async(lambda look=look: take(gateway, look)), *sides
            )
            rows += [
                Row("c", look.what, "ms", ours * 1e3, seconds * 1e3, target, note)
                for seconds, target, note in zip(
                    references, look.targets, look.references, strict=True
                )
            ]
    return rows


async def take(gateway: Gateway, look: Look) -> None:
    """Call the tool; an empty answer is a broken measurement."""
    body = await gateway.call(look.tool, {"workspace_id": "default", **look.arguments})
    if not (body.get("paths") or body.get("matches")):
        raise RuntimeError(f"{look.what} found nothing")


def ripgrep(root: Path, options: list[str]) -> None:
    """Run ripgrep and take its output, as anybody who starts it has to."""
    command = [beside_python("rg"), "--no-config", "--hidden", "--no-require-git", *options]
    done = subprocess.run(
        [*command, "--glob", "!.git", "./"],
        cwd=root,
        check=True,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
    )
    if not done.stdout:
        raise RuntimeError("ripgrep found nothing")


def lay_out_names(root: Path, count: int) -> None:
    """Make `count` small files in folders of a hundred, three levels deep."""
    (root / ".gitignore").write_text("*.o\nbuild/\n", encoding="utf-8")
    for folder in range(count // 100):
        path = root / f"part_{folder // 100}" / f"area_{folder // 10 % 10}" / f"unit_{folder}"
        path.mkdir(parents=True)
        for number in range(99):
            ending = ("py", "md", "json", "txt")[number % 4]
            (path / f"{WORDS[number % len(WORDS)]}_{number}.{ending}").touch()
        (path / "narrow_7.py").touch()


def lay_out_contents(root: Path, size: int) -> None:
    """Make text files of `size` bytes in all; every hundredth holds the rare word once."""
    chance = random.Random(7)
    blocks = [text_block(chance) for _ in range(64)]
    for number in range(size // CONTENT_FILE_BYTES):
        folder = root / f"part_{number % 40}"
        folder.mkdir(exist_ok=True)
        text = "".join(chance.choices(blocks, k=CONTENT_FILE_BYTES // len(blocks[0])))
        if number % 100 == 0:
            text += f"the {NEEDLE} of {number}\n"
        (folder / f"text_{number}.txt").write_text(text, encoding="utf-8")


def text_block(chance: random.Random) -> str:
    """Return about 4 KB of lines, one of which holds the common word."""
    lines = [" ".join(chance.choices(WORDS, k=10)) for _ in range(60)]
    lines[chance.randrange(60)] += f" {COMMON}"
    return "".join(f"{line}\n" for line in lines)
