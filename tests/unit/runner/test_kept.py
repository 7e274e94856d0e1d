"""Commands below a keeper that is hindered or killed: by whom, and what is told then."""

import sys
from pathlib import Path

import pytest

from codespace.domain.errors import CodeSpaceError
from codespace.runner import spawn
from codespace.runner.api import Containment
from programs.running import code_of, commands, descriptors, living, new_token, until

pytestmark = pytest.mark.anyio


async def test_a_command_that_stops_its_keeper_can_still_be_ended(tmp_path: Path):
    token = new_token()
    async with commands(Containment.KEEPER, tmp_path) as run:
        process_id = await run.start("sh", "-c", f"kill -STOP $PPID; echo up; sleep 3600.{token}")
        await run.read_until(process_id, "up")
        await run.runner.terminate(process_id)
        assert (await run.end(process_id)).termination == "terminated"
        assert not living(token)


async def test_a_command_that_kills_its_keeper_ends_and_the_outcome_is_unknown(tmp_path: Path):
    token = new_token()
    async with commands(Containment.KEEPER, tmp_path) as run:
        before = descriptors()
        process_id = await run.start(
            "sh", "-c", f"sleep 3600.{token} & kill -KILL $PPID; sleep 3600.{token}"
        )
        state = await run.end(process_id)
        await until(lambda: not living(token), "what is left of the command is gone")
        await run.read_all(process_id)
        assert descriptors() == before
    assert (state.termination, state.exit_code, state.signal) == ("unknown", None, None)


@pytest.mark.parametrize("signal", ["TERM", "INT", "HUP", "QUIT", "CHLD"])
async def test_other_signals_do_not_move_the_keeper(tmp_path: Path, signal: str):
    async with commands(Containment.KEEPER, tmp_path) as run:
        state = (await run.run("sh", "-c", f"kill -{signal} $PPID; exit 6")).state
    assert (state.termination, state.exit_code) == ("exited", 6)


async def test_a_keeper_that_does_not_come_up_is_a_failed_spawn(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(sys, "executable", "/bin/false")
    async with commands(Containment.KEEPER, tmp_path) as run:
        before = descriptors()
        with pytest.raises(CodeSpaceError) as caught:
            await run.start("true")
        assert descriptors() == before
    assert code_of(caught) == "PROCESS_SPAWN_FAILED"


async def test_a_keeper_that_is_not_there_is_a_failed_spawn(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(spawn.sys, "executable", str(tmp_path / "gone"))
    async with commands(Containment.KEEPER, tmp_path) as run:
        before = descriptors()
        with pytest.raises(CodeSpaceError) as caught:
            await run.start("true")
        assert descriptors() == before
    assert code_of(caught) == "PROCESS_SPAWN_FAILED"
    assert str(tmp_path) not in caught.value.message
