"""The part of the walk that one script does: read many files, keep all findings, return a few."""

import json
from pathlib import Path
from typing import cast

from codespace.domain.tool import Json

FILES = 200
TOP = 12
PLACES = 20
OWNERS = ("ada", "grace", "linus", "barbara", "ken")

SCRIPT = f"""\
const {{paths}} = await tools.find({{glob: "inventory/*.py"}});
let bytes = JSON.stringify(paths).length;
const byOwner = new Map();
await Promise.all(paths.map(async path => {{
  const file = await tools.read({{path}});
  bytes += JSON.stringify(file).length;
  file.content.split("\\n").forEach((line, index) => {{
    const found = /# NOTE\\((\\w+)\\): (.*)/.exec(line);
    if (!found) return;
    const findings = byOwner.get(found[1]) ?? [];
    byOwner.set(found[1], findings.concat({{path, line: index + 1, text: found[2]}}));
  }});
}}));
const findings = [...byOwner].flatMap(([owner, each]) => each.map(one => ({{owner, ...one}})));
store("findings", findings);
const owners = [...byOwner].map(([owner, each]) => ({{owner, open: each.length}}));
text(`${{findings.length}} findings of ${{owners.length}} owners in ${{paths.length}} files`);
const rank = (a, b) => b.text.length - a.text.length || (a.path < b.path ? -1 : 1);
const longest = findings.sort(rank);
return {{bytes, owners, top: longest.slice(0, {TOP})}};
"""

REMEMBERED = 'return load("findings").length;'


FINDINGS = sum((number + place) % 17 == 0 for number in range(FILES) for place in range(PLACES))


def make_inventory(root: Path) -> None:
    """Write the files that the script reads, with `FINDINGS` findings in them."""
    folder = root / "inventory"
    folder.mkdir()
    for number in range(FILES):
        lines = [f'"""Stock of shelf {number}."""', ""]
        for place in range(PLACES):
            lines.append(f"ITEM_{place} = {number * 100 + place}")
            if (number + place) % 17 == 0:
                owner = OWNERS[(number * 7 + place) % len(OWNERS)]
                lines.append(f"# NOTE({owner}): count item {place} of shelf {number} again")
        (folder / f"shelf_{number:03}.py").write_text("\n".join(lines) + "\n", encoding="utf-8")


def held(run: Json) -> bool:
    """Say whether a run of the script came to what the files hold."""
    value = cast("Json", run["value"] or {})
    owners = cast("list[Json]", value.get("owners", []))
    calls = cast("Json", run["calls"])
    return (
        run["status"] == "completed"
        and calls["ok"] == FILES + 1
        and sum(cast("int", owner["open"]) for owner in owners) == FINDINGS
        and len(cast("list[object]", value["top"])) == TOP
    )


def told(run: Json) -> str:
    """Return what a person should know of the run: calls made, bytes there, bytes back."""
    calls, value = cast("Json", run["calls"]), cast("Json", run["value"])
    back = len(json.dumps({"value": run["value"], "output": run["output"]}))
    return (
        f"{calls['total']} calls in {run['wall_ms']} ms; the tools returned"
        f" {value['bytes']:,} bytes, {back:,} came back"
    )
