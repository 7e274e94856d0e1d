"""Starting fails cleanly: whatever the system refuses, no process and no descriptor is left."""

import os
import resource
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

import pytest

from codespace.domain.errors import CodeSpaceError
from codespace.runner import spawn
from codespace.runner.api import Containment
from programs.running import both_containments, code_of, commands, descriptors, living, new_token

pytestmark = pytest.mark.anyio


@contextmanager
def at_most_descriptors(more: int) -> Generator[None]:
    """Let this process open just so many more descriptors than it has."""
    highest = max(int(entry.name) for entry in Path("/proc/self/fd").iterdir())
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    filled = [os.dup(0)]
    while filled[-1] <= highest:
        filled.append(os.dup(0))
    resource.setrlimit(resource.RLIMIT_NOFILE, (filled[-1] + 1 + more, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
        for descriptor in filled:
            os.close(descriptor)


@both_containments
@pytest.mark.parametrize("tty", [False, True])
async def test_without_descriptors_nothing_starts_and_none_is_lost(
    tmp_path: Path, containment: Containment, *, tty: bool
):
    token = new_token()
    async with commands(containment, tmp_path) as run:
        await run.run("true", tty=tty)
        before = descriptors()
        started, codes = 0, set[str]()
        for more in range(24):
            try:
                with at_most_descriptors(more):
                    process_id = await run.start("sleep", f"3600.{token}", tty=tty)
            except CodeSpaceError as error:
                codes.add(error.code.value)
            else:
                started += 1
                await run.runner.terminate(process_id)
                await run.end(process_id)
                await run.read_all(process_id)
            assert not living(token)
            assert descriptors() == before
    assert codes == {"PROCESS_SPAWN_FAILED", "FILE_OPERATION_FAILED"}
    assert started


@both_containments
async def test_a_system_that_makes_no_process_is_a_failed_spawn(
    tmp_path: Path, containment: Containment, monkeypatch: pytest.MonkeyPatch
):
    def refuse(*_args: object, **_options: object) -> None:
        raise BlockingIOError(11, "Resource temporarily unavailable")

    async with commands(containment, tmp_path) as run:
        before = descriptors()
        monkeypatch.setattr(spawn.subprocess, "Popen", refuse)
        with pytest.raises(CodeSpaceError) as caught:
            await run.start("true")
        assert descriptors() == before
    assert code_of(caught) == "PROCESS_SPAWN_FAILED"
    assert "Resource temporarily unavailable" in caught.value.message


@both_containments
async def test_a_process_that_cannot_be_held_is_ended_again(
    tmp_path: Path, containment: Containment, monkeypatch: pytest.MonkeyPatch
):
    token = new_token()

    def refuse(_pid: int) -> int:
        raise OSError(24, "Too many open files")

    async with commands(containment, tmp_path) as run:
        before = descriptors()
        monkeypatch.setattr(os, "pidfd_open", refuse)
        with pytest.raises(CodeSpaceError) as caught:
            await run.start("sleep", f"3600.{token}")
        assert descriptors() == before
        assert not living(token)
    assert code_of(caught) == "PROCESS_SPAWN_FAILED"


@both_containments
async def test_programs_are_found_and_run_as_a_shell_would(
    tmp_path: Path, containment: Containment
):
    for name, text in (("script", 'echo "plain $1"\n'), ("missing", "#!/nowhere/interpreter\n")):
        (tmp_path / name).write_text(text, encoding="utf-8")
        (tmp_path / name).chmod(0o755)
    async with commands(containment, tmp_path) as run:
        for tty in (False, True):
            plain = await run.run("./script", "a b", tty=tty)
            assert (plain.text.strip(), plain.state.exit_code) == ("plain a b", 0)
            missing = await run.run("./missing", tty=tty)
            assert missing.state.exit_code in (126, 127)
            assert missing.text
        with pytest.raises(CodeSpaceError) as caught:
            await run.start("no-such-program")
    assert code_of(caught) == "PROCESS_SPAWN_FAILED"
