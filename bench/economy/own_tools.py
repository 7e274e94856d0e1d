"""The workloads over CodeSpace's own tools: a rename with checks, and a look at large logs."""

import re
from collections import Counter
from collections.abc import AsyncGenerator, Iterable, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import cast

from bill import CALLS_A_TURN, Agent, Json
from places import Place, gateway
from workloads import Sizes, Workload, rows
from worlds import NEW, OLD, logs, sources, tree_digest

MATCHES_MAX = 2_000
PIECE = 65_536
PIECES = 4
TOP = 3


@asynccontextmanager
async def some_sources(folder: Path, sizes: Sizes) -> AsyncGenerator[Place]:
    """Open a gateway over sources."""
    sources(folder / "tree", sizes.files)
    async with gateway(folder / "tree") as place:
        yield place


@asynccontextmanager
async def some_logs(folder: Path, sizes: Sizes) -> AsyncGenerator[Place]:
    """Open a gateway over logs."""
    logs(folder / "logs", sizes.megabytes)
    async with gateway(folder / "logs") as place:
        yield place


RENAME = r"""
const word = /\bfetch_rows\b/g, search = {pattern: "\\bfetch_rows\\b", glob: "src/**", limit: 2000};
const {matches} = await tools.grep(search);
const paths = [...new Set(matches.map(match => match.path))];
const files = await Promise.all(paths.map(path => tools.read({path})));
let lines = 0;
const sections = files.map(({path, content}) => {
  const changed = content.split("\n").filter(line => line.search(word) >= 0);
  lines += changed.length;
  const chunks = changed.map(line => `@@\n-${line}\n+${line.replace(word, "load_records")}`);
  return `*** Update File: ${path}\n${chunks.join("\n")}`;
});
const applied = await tools.apply_patch({
  patch: `*** Begin Patch\n${sections.join("\n")}\n*** End Patch`,
  expected_versions: Object.fromEntries(files.map(file => [file.path, file.version])),
});
const left = await tools.grep(search);
const check = await tools.bash({command: "python3 check.py"});
return {files: applied.files.length, lines, left: left.matches.length,
        exit_code: check.exit_code, check: check.output.trim()};
"""


async def rename(agent: Agent) -> object:
    """Find the uses, read the files, patch ten of them at a time, look again, run the check."""
    search: Json = {"pattern": rf"\b{OLD}\b", "glob": "src/**", "limit": MATCHES_MAX}
    found = rows(await agent.one("grep", search), "matches")
    paths = list(dict.fromkeys(cast("str", match["path"]) for match in found))
    files = [each.body for each in await agent.several("read", [{"path": p} for p in paths])]
    changed, lines = 0, 0
    for at in range(0, len(files), CALLS_A_TURN):
        batch = files[at : at + CALLS_A_TURN]
        texts = [_changed_lines(cast("str", file["content"])) for file in batch]
        lines += sum(map(len, texts))
        applied = await agent.one("apply_patch", _patch(batch, texts))
        changed += len(cast("Sequence[str]", applied["files"]))
    left = rows(await agent.one("grep", search), "matches")
    check = await agent.one("bash", {"command": "python3 check.py"})
    return {
        "files": changed,
        "lines": lines,
        "left": len(left),
        "exit_code": check["exit_code"],
        "check": cast("str", check["output"]).strip(),
    }


def _changed_lines(content: str) -> list[str]:
    return [line for line in content.split("\n") if re.search(rf"\b{OLD}\b", line)]


def _patch(files: Iterable[Json], texts: Iterable[Sequence[str]]) -> Json:
    parts = ["*** Begin Patch"]
    for file, lines in zip(files, texts, strict=True):
        parts.append(f"*** Update File: {file['path']}")
        for line in lines:
            parts += ["@@", f"-{line}", "+" + re.sub(rf"\b{OLD}\b", NEW, line)]
    patch = "\n".join([*parts, "*** End Patch"])
    return {
        "patch": patch,
        "expected_versions": {cast("str", file["path"]): file["version"] for file in files},
    }


async def tree(_place: Place, folder: Path) -> object:
    """Return what the sources are now."""
    return tree_digest(folder / "tree" / "src")


LOGS = r"""
const {paths} = await tools.find({glob: "*.log"});
const found = await Promise.all(paths.map(
  path => tools.grep({pattern: " ERROR ", fixed: true, glob: path, limit: 2000})));
const shape = /^(\S+) ERROR (\S+) req=(\S+) (.*)$/;
const by_service = {}, faults = new Map();
let errors = 0;
for (const {text} of found.flatMap(each => each.matches)) {
  const [, at, service, request, message] = text.match(shape);
  errors++;
  by_service[service] = (by_service[service] ?? 0) + 1;
  const fault = message.replace(/\d+/g, "#");
  if (!faults.has(fault)) faults.set(fault, {fault, count: 0, first: at, request});
  faults.get(fault).count++;
}
const top = [...faults.values()].sort((a, b) => b.count - a.count).slice(0, 3);
const traces = await Promise.all(
  top.map(({request}) => tools.grep({pattern: `req=${request}`, fixed: true})));
const last = paths[paths.length - 1], piece = 65536;
const {size} = await tools.read({path: last, max_bytes: 1});
const tail = await Promise.all([4, 3, 2, 1].map(
  back => tools.read({path: last, offset: Math.max(0, size - back * piece), max_bytes: piece})));
return {
  errors, by_service,
  top: top.map(({fault, count, first}, place) =>
    ({fault, count, first, trace: traces[place].matches.map(match => match.text.split(" ")[2])})),
  warnings_at_the_end: tail.map(each => each.content).join("").split(" WARN ").length - 1,
};
"""


async def log_triage(agent: Agent) -> object:
    """Find the errors of each file, follow the first of the commonest, read the end in pieces."""
    listed = await agent.one("find", {"glob": "*.log"})
    paths = cast("Sequence[str]", listed["paths"])
    search: Json = {"pattern": " ERROR ", "fixed": True, "limit": MATCHES_MAX}
    found = await agent.several("grep", [{**search, "glob": path} for path in paths])
    errors = [_error(match) for each in found for match in rows(each.body, "matches")]
    first: dict[str, tuple[str, str]] = {}
    for at, _service, request, fault in errors:
        first.setdefault(fault, (at, request))
    counts = Counter(fault for *_, fault in errors)
    top = counts.most_common(TOP)
    wanted = [{"pattern": f"req={first[fault][1]}", "fixed": True} for fault, _ in top]
    traces = await agent.several("grep", wanted)
    tail = await _tail(agent, paths[-1])
    return {
        "errors": len(errors),
        "by_service": Counter(service for _, service, *_ in errors),
        "top": [
            {
                "fault": fault,
                "count": count,
                "first": first[fault][0],
                "trace": [
                    cast("str", match["text"]).split(" ")[2]
                    for match in rows(trace.body, "matches")
                ],
            }
            for (fault, count), trace in zip(top, traces, strict=True)
        ],
        "warnings_at_the_end": tail.count(" WARN "),
    }


async def _tail(agent: Agent, path: str) -> str:
    size = cast("int", (await agent.one("read", {"path": path, "max_bytes": 1}))["size"])
    starts = [max(0, size - back * PIECE) for back in range(PIECES, 0, -1)]
    pieces: list[Json] = [{"path": path, "offset": start, "max_bytes": PIECE} for start in starts]
    return "".join(
        cast("str", each.body["content"]) for each in await agent.several("read", pieces)
    )


def _error(match: Json) -> tuple[str, str, str, str]:
    found = re.match(r"(\S+) ERROR (\S+) req=(\S+) (.*)$", cast("str", match["text"]))
    if found is None:
        raise RuntimeError(f"no line of a log: {match}")
    at, service, request, message = found.groups()
    return at, service, request, re.sub(r"\d+", "#", message)


OWN = (
    Workload(
        lambda sizes: f"a rename over {sizes.files} files with checks",
        some_sources,
        rename,
        RENAME,
        tree,
    ),
    Workload(lambda sizes: f"log triage over {sizes.megabytes} MB", some_logs, log_triage, LOGS),
)
