"""The script of the walk: what it finds in the files that were made for it."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from codespace.bootstrap import Gateway, open_gateway
from codespace.cli.walk_script import (
    FILES,
    FINDINGS,
    REMEMBERED,
    SCRIPT,
    held,
    make_inventory,
    told,
)
from codespace.domain.tool import Json
from codespace.settings import load

pytestmark = pytest.mark.anyio


@pytest.fixture
async def gateway(tmp_path: Path) -> AsyncIterator[Gateway]:
    make_inventory(tmp_path)
    async with open_gateway(load(path=str(tmp_path), environ={"PATH": "/bin"})) as gateway:
        yield gateway


async def run(gateway: Gateway, code: str) -> Json:
    return await gateway.call("codemode", {"code": code})


async def test_the_script_finds_what_is_there_and_a_later_one_still_has_it(
    gateway: Gateway,
) -> None:
    found = await run(gateway, SCRIPT)
    assert held(found)
    assert (await run(gateway, REMEMBERED))["value"] == FINDINGS
    assert f"{FILES + 1} calls in " in told(found)


async def test_a_run_that_missed_a_file_or_failed_does_not_hold(
    gateway: Gateway, tmp_path: Path
) -> None:
    failed = await run(gateway, "return {owners: [], top: []}")
    assert not held(failed)
    next((tmp_path / "inventory").glob("*.py")).unlink()
    assert not held(await run(gateway, SCRIPT))
    assert not held(await run(gateway, f"throw new Error('no'); {SCRIPT}"))
