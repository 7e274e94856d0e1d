"""The acceptance sequence, walked over every transport and protocol revision."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import cast

import pytest

from codespace.adapters.client import Connection, Era, connect_http, connect_stdio
from codespace.cli.walk import Walk, make_project
from contract.conftest import CELLS
from contract.houses import House, Transport
from contract.servers import command, environment, run

STEPS = [
    "read",
    "preview",
    "apply",
    "read",
    "run",
    "fail",
    "log",
    "script",
    "remember",
    "cancel",
    "lose",
    "recover",
]


@pytest.mark.anyio
@pytest.mark.requirement("acceptance.walk", "ids.lost-answers-are-not-failures")
@pytest.mark.parametrize(
    ("transport", "era", "runner"),
    [
        *((*cell, "in-process") for cell in CELLS),
        ("http", "2026-07-28", "uds"),
        ("stdio", "2025-11-25", "uds"),
    ],
)
@pytest.mark.requirement("runner.same-contract")
async def test_the_acceptance_sequence_holds(
    request: pytest.FixtureRequest,
    root: Path,
    config: Path,
    tmp_path: Path,
    transport: Transport,
    era: Era,
    runner: str,
) -> None:
    ledger = str(tmp_path / "l.db")
    line = command("serve", "--config", str(config), "--operations-db", ledger, "--runner", runner)
    house = cast("House", request.getfixturevalue("uds_house" if runner == "uds" else "house"))
    workspace_id, where = house.take() if transport == "http" else ("default", root)
    make_project(where)

    @asynccontextmanager
    async def connect() -> AsyncGenerator[Connection]:
        way = (
            connect_http(house.url, era=era)
            if transport == "http"
            else connect_stdio(line, era=era, environment=environment())
        )
        async with way as connection:
            yield connection

    told: list[str] = []
    await Walk(connect, told.append, workspace_id).run()
    assert [step.split()[0] for step in told] == STEPS
    assert (
        (where / "greet.py")
        .read_text(encoding="utf-8")
        .startswith("def greet(name):\n    return f")
    )
    assert (where / "notes" / "lost.md").is_file()


@pytest.mark.slow
@pytest.mark.requirement("acceptance.demo")
@pytest.mark.parametrize("flags", [(), ("--http", "--protocol", "2026-07-28")])
def test_the_demo_walks_it_for_people(flags: tuple[str, ...]) -> None:
    done = run("demo", *flags)
    assert done.returncode == 0, done.stderr
    assert "Every step held." in done.stdout
    assert "Traceback" not in done.stderr
