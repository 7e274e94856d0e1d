"""Launchers that fail, at each point of the way: nothing runs, nothing is left."""

import dataclasses
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path

import anyio
import pytest

from codespace.domain.errors import CodeSpaceError
from codespace.domain.limits import Limits
from codespace.runner import namespace
from codespace.runner.api import Containment, RunnerFacts
from codespace.runner.local import LocalRunner
from codespace.runner.sandbox import probe
from programs.running import (
    LIMITS,
    Commands,
    code_of,
    commands,
    descriptors,
    living,
    new_token,
    root_at,
)

pytestmark = pytest.mark.anyio

needs_namespace = pytest.mark.skipif(
    not probe().works, reason=f"no PID namespace here: {probe().reason}"
)


@asynccontextmanager
async def launched_by(
    script: str, directory: Path, limits: Limits = LIMITS
) -> AsyncGenerator[Commands]:
    """Yield commands that are launched by a shell script instead of bubblewrap."""
    launcher = directory / "launcher"
    launcher.write_text(f"#!/bin/bash\n{script}\n", encoding="utf-8")
    launcher.chmod(0o755)
    runner = LocalRunner(limits, RunnerFacts(Containment.PID_NAMESPACE), str(launcher))
    try:
        yield Commands(runner, root_at(directory))
    finally:
        await runner.close()


# What comes after `--info-fd` among the arguments is the descriptor that tells of PID 1.
INFO = 'while [ "$1" != --info-fd ]; do shift; done; info=$2'


@pytest.mark.parametrize(
    ("script", "advice"),
    [
        ("echo 'bwrap: setting up uid map: Permission denied' >&2; exit 1", "AppArmor"),
        ("echo 'bwrap: Failed to make / slave: Operation not permitted'; exit 1", "mounts"),
        ("exit 0", "by hand"),
        ("exit 1", "by hand"),
        ("kill -9 $$", "by hand"),
        ("head -c 1000000 /dev/zero; exit 1", "by hand"),
        ("exec >&- 2>&-; sleep 0.05; exit 1", "by hand"),
        ("printf '\\006'; exit 0", "by hand"),
        (f"{INFO}; echo '{{\"child-pid\": 999999999}}' >&$info; sleep 60", "by hand"),
        (f"{INFO}; echo 'no json' >&$info; exit 1", "by hand"),
    ],
)
async def test_a_launcher_that_fails_is_a_failed_spawn_with_advice(
    tmp_path: Path, script: str, advice: str
):
    async with launched_by(script, tmp_path) as run:
        before = descriptors()
        with pytest.raises(CodeSpaceError) as caught:
            await run.start("echo", "hello")
        assert descriptors() == before
    assert code_of(caught) == "PROCESS_SPAWN_FAILED"
    assert advice in caught.value.message
    assert str(tmp_path) not in caught.value.message


@pytest.mark.parametrize(
    "script",
    [
        "kill -STOP $$",
        "trap '' TERM; sleep 3600.TOKEN & wait",
        f"{INFO}; sleep 3600.TOKEN & echo '{{\"child-pid\": '$!'}}' >&$info; kill -STOP $$",
        "sleep 3600.TOKEN & printf '\\006'; wait",
    ],
    ids=["stopped", "silent", "no acknowledgement", "no word of PID 1"],
)
async def test_a_launcher_that_does_not_come_up_is_given_up_and_ended(tmp_path: Path, script: str):
    token = new_token()
    limits = dataclasses.replace(LIMITS, process_start_ms=300)
    async with launched_by(script.replace("TOKEN", token), tmp_path, limits) as run:
        before = descriptors()
        with pytest.raises(CodeSpaceError) as caught, anyio.fail_after(20):
            await run.start("true")
        assert code_of(caught) == "PROCESS_SPAWN_FAILED"
        assert "did not start within 0.3 seconds" in caught.value.message
        assert descriptors() == before
        assert not living(token)
        assert not living(str(tmp_path / "launcher"))


async def test_a_launcher_that_ends_after_its_acknowledgement_started_nothing(tmp_path: Path):
    marker = tmp_path / "ran"
    script = f"{INFO}; echo '{{\"child-pid\": '$$'}}' >&$info; printf '\\006'; exec sleep 0.05"
    async with launched_by(script, tmp_path) as run:
        with pytest.raises(CodeSpaceError) as caught:
            await run.start("touch", str(marker))
    assert code_of(caught) == "PROCESS_SPAWN_FAILED"
    assert not marker.exists()


async def test_news_of_pid_1_may_come_in_pieces(tmp_path: Path):
    token = new_token()
    script = (
        f"{INFO}; sleep 3600.{token} & printf '{{\"chi' >&$info; sleep 0.05;"
        " printf 'ld-pid\": '$! >&$info;"
        " sleep 0.05; printf '}' >&$info; exit 1"
    )
    async with launched_by(script, tmp_path) as run:
        with pytest.raises(CodeSpaceError) as caught:
            await run.start("true")
    assert code_of(caught) == "PROCESS_SPAWN_FAILED"
    assert not living(token), "the launcher ended, PID 1 did not"


@needs_namespace
async def test_without_the_kernels_word_the_launchers_code_has_to_do(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    def nothing(_pidfd: int) -> None:
        return None

    monkeypatch.setattr(namespace, "exact_status", nothing)
    async with commands(Containment.PID_NAMESPACE, tmp_path) as run:
        code = (await run.run("sh", "-c", "exit 3")).state
        signalled = (await run.run("sh", "-c", "kill -SEGV $$")).state
    assert (code.exit_code, code.signal) == (3, None)
    assert (signalled.exit_code, signalled.signal) == (None, 11)


@needs_namespace
async def test_a_directory_that_is_exchanged_during_the_launch_is_refused(tmp_path: Path):
    root, token = tmp_path / "root", new_token()
    root.mkdir()
    real = probe().path
    # The launcher goes where the root's path leads by then.
    script = f'mv "{root}" "{root}.old"; mkdir "{root}"; cd "{root}"; exec "{real}" "$@"'
    launcher = tmp_path / "launcher"
    launcher.write_text(f"#!/bin/bash\n{script}\n", encoding="utf-8")
    launcher.chmod(0o755)
    runner = LocalRunner(LIMITS, RunnerFacts(Containment.PID_NAMESPACE), str(launcher))
    run = Commands(runner, root_at(root))
    before = descriptors()
    with pytest.raises(CodeSpaceError) as caught:
        await run.start("sh", "-c", f"touch escaped; sleep 3600.{token}")
    assert code_of(caught) == "FILE_OPERATION_FAILED"
    assert not living(token)
    assert not (root / "escaped").exists()
    assert descriptors() == before
    await runner.close()


@needs_namespace
async def test_the_commands_own_pid_namespace_is_not_the_gateways(tmp_path: Path):
    async with commands(Containment.PID_NAMESPACE, tmp_path) as run:
        done = await run.run("sh", "-c", "readlink /proc/self/ns/pid; echo $$")
    namespace_of_command, pid = done.text.split()
    assert namespace_of_command != str(Path("/proc/self/ns/pid").readlink())
    assert int(pid) < 10
