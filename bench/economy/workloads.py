"""The workloads that need tools of others: issues with a classifier, organisations, pages."""

from collections import Counter
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import cast

from bill import Agent, Json
from places import Place, organisations, tracker

SURE = 0.6


@dataclass(frozen=True, slots=True)
class Sizes:
    """How much of everything there is."""

    issues: int = 100
    organisations: int = 20
    files: int = 60
    megabytes: int = 50
    items: int = 1000


QUICK = Sizes(issues=12, organisations=6, files=8, megabytes=1, items=100)
Open = Callable[[Path, Sizes], AbstractAsyncContextManager[Place]]


@dataclass(frozen=True, slots=True)
class Workload:
    """One task in both forms.

    Attributes:
        name: of the row.
        opened: makes a fresh world in an empty folder.
        alone: the task by single calls; returns the result.
        script: the task as a script; returns the same result.
        state: what the world is like afterwards, where the task changes it.
    """

    name: Callable[[Sizes], str]
    opened: Open
    alone: Callable[[Agent], Awaitable[object]]
    script: str
    state: Callable[[Place, Path], Awaitable[object]] | None = None


@asynccontextmanager
async def issues_and_items(folder: Path, sizes: Sizes) -> AsyncGenerator[Place]:
    """Open the tracker."""
    async with tracker(folder, {"issues": sizes.issues, "items": sizes.items}) as place:
        yield place


@asynccontextmanager
async def some_organisations(folder: Path, sizes: Sizes) -> AsyncGenerator[Place]:
    """Open the HTTP interface."""
    async with organisations({"organisations": sizes.organisations}) as place:
        yield place


def rows(body: Json, key: str) -> Sequence[Json]:
    """Return a list of objects from an answer."""
    return cast("Sequence[Json]", body[key])


TRIAGE = """\
const issues = [];
for (let page = 1; ; page++) {
  const found = await tools.list_issues({page});
  issues.push(...found.issues);
  if (!found.more) break;
}
const judged = await Promise.all(issues.map(async ({number}) => {
  const {title, body} = await tools.get_issue({number});
  const {label, confidence} = await tools.classify({text: title + "\\n" + body});
  if (confidence >= 0.6) await tools.label_issue({number, label});
  return {number, label, confidence};
}));
const sure = judged.filter(each => each.confidence >= 0.6);
const counts = {};
for (const {label} of sure) counts[label] = (counts[label] ?? 0) + 1;
return {
  labelled: sure.length,
  counts,
  unsure: judged.filter(each => each.confidence < 0.6).map(each => each.number),
  security: sure.filter(each => each.label === "security").map(each => each.number),
};
"""


async def triage(agent: Agent) -> object:
    """Read each issue, have it judged, and label those that are sure."""
    numbers: list[int] = []
    page, more = 1, True
    while more:
        found = await agent.one("list_issues", {"page": page})
        numbers += [cast("int", issue["number"]) for issue in rows(found, "issues")]
        page, more = page + 1, bool(found["more"])
    issues = await agent.several("get_issue", [{"number": each} for each in numbers])
    texts = [{"text": f"{each.body['title']}\n{each.body['body']}"} for each in issues]
    judged = [each.body for each in await agent.several("classify", texts)]
    pairs = list(zip(numbers, judged, strict=True))
    sure = [
        (number, cast("str", each["label"]))
        for number, each in pairs
        if cast("float", each["confidence"]) >= SURE
    ]
    await agent.several("label_issue", [{"number": n, "label": label} for n, label in sure])
    labelled = {number for number, _ in sure}
    return {
        "labelled": len(sure),
        "counts": Counter(label for _, label in sure),
        "unsure": [number for number in numbers if number not in labelled],
        "security": [number for number, label in sure if label == "security"],
    }


async def labels(place: Place, _folder: Path) -> object:
    """Return the labels that issues have now."""
    return (await place.call("labels", {})).body


ORGANISATIONS = """\
const {organisations} = await tools.list_organisations();
const list = organisation => tools.list_projects({organisation});
const again = (error, organisation) => {
  if (error.code !== "UNAVAILABLE") throw error;
  return list(organisation);
};
const settled = await Promise.allSettled(
  organisations.map(name => list(name).catch(error => again(error, name))));
const failed = {}, active = {};
settled.forEach(({reason, value}, place) => {
  if (reason) failed[organisations[place]] = reason.code;
  else for (const project of value.projects)
    if (!project.archived) (active[project.platform] ??= []).push(project);
});
const busiest = Object.values(active).flat().sort((a, b) => b.events_a_day - a.events_a_day);
return {
  failed,
  active: Object.fromEntries(Object.entries(active).map(([name, list]) => [name, list.length])),
  busiest: busiest.slice(0, 10).map(project => project.slug),
};
"""


async def projects(agent: Agent) -> object:
    """List the projects of all organisations; try those again that were unavailable."""
    listed = await agent.one("list_organisations", {})
    names = cast("Sequence[str]", listed["organisations"])
    answers = dict(zip(names, await _projects_of(agent, names), strict=True))
    again = [name for name in names if answers[name].get("code") == "UNAVAILABLE"]
    answers.update(zip(again, await _projects_of(agent, again), strict=True))
    found = [
        project
        for name in names
        if "projects" in answers[name]
        for project in rows(answers[name], "projects")
        if not project["archived"]
    ]
    found.sort(key=lambda each: cast("int", each["events_a_day"]), reverse=True)
    return {
        "failed": {name: body["code"] for name, body in answers.items() if "code" in body},
        "active": Counter(cast("str", project["platform"]) for project in found),
        "busiest": [project["slug"] for project in found[:10]],
    }


async def _projects_of(agent: Agent, names: Sequence[str]) -> list[Mapping[str, object]]:
    answers = await agent.several("list_projects", [{"organisation": name} for name in names])
    return [answer.body for answer in answers]


PAGES = """\
const totals = {}, active = [];
let cursor = "", seen = 0;
do {
  const {items, next_cursor} = await tools.list_items(cursor ? {cursor} : {});
  seen += items.length;
  for (const item of items) {
    if (!item.active) continue;
    active.push(item);
    totals[item.region] = (totals[item.region] ?? 0) + item.amount;
  }
  cursor = next_cursor;
} while (cursor);
active.sort((a, b) => b.amount - a.amount || (a.id < b.id ? -1 : 1));
return {seen, totals, largest: active.slice(0, 5).map(item => item.id)};
"""


async def pages(agent: Agent) -> object:
    """Walk through all pages; each needs the cursor of the one before."""
    items: list[Json] = []
    cursor, more = "", True
    while more:
        found = await agent.one("list_items", {"cursor": cursor} if cursor else {})
        items += rows(found, "items")
        cursor = cast("str", found["next_cursor"])
        more = bool(cursor)
    active = [item for item in items if item["active"]]
    totals: Counter[str] = Counter()
    for item in active:
        totals[cast("str", item["region"])] += cast("int", item["amount"])
    active.sort(key=lambda item: (-cast("int", item["amount"]), cast("str", item["id"])))
    return {
        "seen": len(items),
        "totals": totals,
        "largest": [item["id"] for item in active[:5]],
    }


FOREIGN = (
    Workload(
        lambda sizes: f"triage of {sizes.issues} issues with a classifier",
        issues_and_items,
        triage,
        TRIAGE,
        labels,
    ),
    Workload(
        lambda sizes: f"projects of {sizes.organisations} organisations, some fail",
        some_organisations,
        projects,
        ORGANISATIONS,
    ),
    Workload(lambda sizes: f"paging through {sizes.items} items", issues_and_items, pages, PAGES),
)
