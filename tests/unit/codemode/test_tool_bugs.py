import logging
from collections.abc import Awaitable, Callable
from operator import itemgetter
from typing import cast

import pytest

from codespace.codemode import Sandbox, Tool
from codespace.codemode.tool_bugs import internal


def test_the_log_has_what_the_script_is_not_told(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.ERROR):
        error = internal("find", RuntimeError("password=hunter2"))

    assert error.code == "INTERNAL"
    assert "hunter2" not in error.message
    assert "RuntimeError" in error.message
    assert "hunter2" in caplog.text
    assert error.message.rpartition(" ")[2].rstrip(".") in caplog.text


@pytest.mark.anyio
async def test_a_function_that_turns_out_not_to_be_async_is_told_so_at_its_call() -> None:
    # What is written in C cannot be looked into before.
    made = cast("Callable[..., Tool]", Tool)("quick", itemgetter("a"))
    async with Sandbox([made]) as sandbox:
        error = (await sandbox.run("await tools.quick({a: 1})")).error
    assert error is not None
    assert (
        "quick gave something that cannot be awaited: its function must be async" in error.message
    )


@pytest.mark.anyio
async def test_a_tool_that_awaits_the_wrong_thing_is_no_function_that_is_not_async() -> None:
    async def wrong(arguments: object) -> object:
        return await cast("Awaitable[object]", arguments)

    async with Sandbox([Tool("wrong", wrong)]) as sandbox:
        error = (await sandbox.run("await tools.wrong()")).error
    assert error is not None
    assert "wrong failed in a way that it should not (TypeError)" in error.message
