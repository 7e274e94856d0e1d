"""`demo`: the whole way, with a real server in a process of its own."""

import logging
import re
from pathlib import Path

import pytest
from anyio import BrokenResourceError

from codespace.cli import demo
from codespace.cli.walk import StepError
from commands import Command


@pytest.mark.slow
@pytest.mark.timeout(180)
@pytest.mark.parametrize("flags", [[], ["--http", "--protocol", "2026-07-28"]])
def test_every_step_holds_and_nothing_is_left(command: Command, flags: list[str]) -> None:
    ran = command("demo", *flags)
    assert ran.code == 0
    assert "Every step held." in ran.out
    project = re.search(r"A small project is in (\S+);", ran.out)
    assert project is not None
    assert not Path(project[1]).parent.exists()


def test_a_step_that_does_not_hold_is_exit_code_1(
    command: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def broken(*given: object) -> None:
        raise StepError("read did not hold")

    monkeypatch.setattr(demo, "_over_stdio", broken)
    ran = command("demo")
    assert ran.code == 1
    assert "FAILED: read did not hold" in ran.out
    assert "Every step held." not in ran.out


def test_an_answer_that_nobody_waits_for_any_more_is_no_trace_on_stderr(
    command: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def left(*given: object) -> None:
        client = logging.getLogger("mcp.client.streamable_http")
        client.error("Error parsing SSE message", exc_info=BrokenResourceError())

    monkeypatch.setattr(demo, "_over_http", left)
    ran = command("demo", "--http")
    assert (ran.code, ran.err) == (0, "")
