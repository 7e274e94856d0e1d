"""The walk through the acceptance sequence, against a gateway in this process."""

from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from mcp import Client

from codespace.adapters import mcp_server
from codespace.adapters.client import Answer, Connection
from codespace.adapters.in_flight import InFlight
from codespace.adapters.ungrouped import ungrouped
from codespace.bootstrap import Gateway, open_gateway
from codespace.cli.walk import StepError, Walk, make_project
from codespace.domain.tool import Json
from codespace.settings import load

pytestmark = pytest.mark.anyio


@dataclass(frozen=True, slots=True)
class Lying(Connection):
    """A connection that answers some tools with an arranged body instead of asking."""

    lies: Mapping[str, Json] = field(default_factory=dict[str, Json])

    async def call(self, tool: str, arguments: Json | None = None) -> Answer:
        """Answer as arranged, or ask."""
        if tool in self.lies:
            return Answer(self.lies[tool], is_error=False)
        return await Connection(self.client).call(tool, arguments)


def walk(gateway: Gateway, report: list[str], lies: Mapping[str, Json] | None = None) -> Walk:
    server = mcp_server.build(
        gateway.dispatcher, version="1", limits=gateway.limits, in_flight=InFlight()
    )

    @asynccontextmanager
    async def connect() -> AsyncGenerator[Connection]:
        async with ungrouped(Client(server, mode="legacy", cache=None)) as client:
            yield Lying(client, lies or {})

    return Walk(connect, report.append)


@asynccontextmanager
async def gateway_over(root: Path) -> AsyncGenerator[Gateway]:
    async with open_gateway(load(path=str(root), environ={"PATH": "/usr/bin:/bin"})) as gateway:
        yield gateway


async def test_every_step_holds_on_the_small_project(tmp_path: Path) -> None:
    make_project(tmp_path)
    report: list[str] = []
    async with gateway_over(tmp_path) as gateway:
        await walk(gateway, report).run()
    assert [line.split()[0] for line in report] == [
        *(
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
        )
    ]
    assert "Hello, {name}!" in (tmp_path / "greet.py").read_text(encoding="utf-8")
    assert (tmp_path / "notes/lost.md").exists()


async def test_a_step_that_does_not_hold_is_named_with_what_came_back(tmp_path: Path) -> None:
    async with gateway_over(tmp_path) as gateway:
        with pytest.raises(StepError, match=r"read did not hold.*FILE_NOT_FOUND"):
            await walk(gateway, []).run()


@pytest.mark.parametrize(
    ("tool", "body", "step"),
    [
        ("read", {"content": "other", "version": "1", "size": 5}, "read"),
        ("apply_patch", {"status": "applied", "files": []}, "preview"),
        ("bash", {"exit_code": 0, "output": ""}, "a failing command"),
        ("operation_status", {"operation_id": "op-other", "status": "applied"}, "recover"),
    ],
)
async def test_an_answer_that_is_not_true_is_noticed(
    tmp_path: Path, tool: str, body: Json, step: str
) -> None:
    make_project(tmp_path)
    async with gateway_over(tmp_path) as gateway:
        with pytest.raises(StepError, match=f"^{step} did not hold"):
            await walk(gateway, [], {tool: body}).run()
