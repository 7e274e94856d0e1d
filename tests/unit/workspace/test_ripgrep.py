import os
import sys
import sysconfig
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from codespace.domain.errors import CodeSpaceError, ErrorCode
from codespace.workspace import ripgrep
from codespace.workspace.deadline import Deadline
from codespace.workspace.directory import RootDirectory, open_root, register
from codespace.workspace.ripgrep import ripgrep_path, stream


@pytest.fixture
def top(tmp_path: Path) -> Path:
    return tmp_path


@pytest.fixture
def directory(top: Path) -> Iterator[RootDirectory]:
    with open_root(register(str(top))) as directory:
        yield directory


class EnoughError(Exception):
    pass


def later() -> Deadline:
    return Deadline.after(30_000)


def run(directory: RootDirectory, *arguments: str) -> bytes:
    return b"".join(stream(arguments, directory=directory.fd, deadline=later()))


def children() -> set[str]:
    task = f"/proc/self/task/{os.getpid()}/children"
    return set(Path(task).read_text().split())


def descriptors() -> int:
    return sum(1 for _ in Path("/proc/self/fd").iterdir())


def test_the_program_is_that_of_the_package() -> None:
    path = ripgrep_path()
    assert path is not None
    assert Path(path).parent == Path(sysconfig.get_path("scripts"))


def test_output_comes_from_the_open_directory(directory: RootDirectory, top: Path) -> None:
    (top / "file").write_text("text")
    assert run(directory, "--files", ".") == b"./file\n"


def test_a_directory_that_was_moved_is_still_the_one_searched(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    (tmp_path / "a" / "file").write_text("text")
    with open_root(register(str(tmp_path / "a"))) as directory:
        (tmp_path / "a").rename(tmp_path / "b")
        (tmp_path / "a").mkdir()
        (tmp_path / "a" / "another").write_text("text")
        assert run(directory, "--files", ".") == b"./file\n"


def test_no_configuration_of_the_machine_matters(
    directory: RootDirectory, top: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (top / "config").write_text("--glob=!file\n")
    (top / "file").write_text("text")
    monkeypatch.setenv("RIPGREP_CONFIG_PATH", str(top / "config"))
    assert sorted(run(directory, "--files", ".").split()) == [b"./config", b"./file"]


def test_nothing_found_is_no_failure(directory: RootDirectory) -> None:
    assert run(directory, "--files", ".") == b""
    assert run(directory, "--regexp=x", ".") == b""


def test_a_bad_pattern_is_refused_in_one_line(directory: RootDirectory) -> None:
    with pytest.raises(CodeSpaceError) as caught:
        run(directory, "--regexp=a(", ".")
    assert caught.value.code is ErrorCode.INVALID_ARGUMENT
    assert caught.value.message == "The pattern cannot be searched for: unclosed group."


def test_a_search_past_its_deadline_is_ended_and_reaped(directory: RootDirectory) -> None:
    reader, writer = os.pipe()  # a search that cannot end: nobody ever writes
    before = children(), descriptors()
    with pytest.raises(CodeSpaceError) as caught:
        list(
            stream(
                ("--regexp=x", "--", f"/proc/self/fd/{reader}"),
                directory=directory.fd,
                keep=(reader, writer),
                deadline=Deadline.after(200),
            )
        )
    assert caught.value.code is ErrorCode.TIMEOUT
    assert caught.value.details == {"limit": 200}
    assert (children(), descriptors()) == before
    os.close(reader)
    os.close(writer)


def test_a_search_that_nobody_waits_for_is_ended_and_reaped(directory: RootDirectory) -> None:
    reader, writer = os.pipe()
    before = children(), descriptors()
    abandoned = threading.Event()
    deadline = Deadline.after(30_000, abandoned=abandoned)
    with pytest.raises(CodeSpaceError, match="cancelled") as caught:
        list(
            stream(
                ("--regexp=x", "--", f"/proc/self/fd/{reader}"),
                directory=directory.fd,
                keep=(reader, writer),
                deadline=deadline,
                on_quiet=abandoned.set,
            )
        )
    assert caught.value.code is ErrorCode.TIMEOUT
    assert (children(), descriptors()) == before
    os.close(reader)
    os.close(writer)


def test_a_search_that_is_quiet_is_asked_about_again_and_again_and_may_be_ended(
    directory: RootDirectory,
) -> None:
    reader, writer = os.pipe()
    before = children(), descriptors()
    asked: list[None] = []

    def twice() -> None:
        asked.append(None)
        if len(asked) == 2:
            raise EnoughError

    with pytest.raises(EnoughError):
        list(
            stream(
                ("--regexp=x", "--", f"/proc/self/fd/{reader}"),
                directory=directory.fd,
                keep=(reader, writer),
                deadline=later(),
                on_quiet=twice,
            )
        )
    assert (children(), descriptors()) == before
    os.close(reader)
    os.close(writer)


def test_a_search_that_nobody_reads_on_is_ended_and_reaped(
    directory: RootDirectory, top: Path
) -> None:
    (top / "file").write_text("text\n" * 2_000_000)
    before = children(), descriptors()
    chunks = stream(("--regexp=text", "."), directory=directory.fd, deadline=later())
    assert next(chunks)
    assert len(children()) == len(before[0]) + 1
    chunks.close()
    assert (children(), descriptors()) == before


def test_a_program_that_cannot_start_or_dies_is_a_failed_operation(
    directory: RootDirectory, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    programs = {"missing": None, "broken": "#!/nowhere\n", "dying": "#!/bin/sh\nexit 127\n"}
    for name, text in programs.items():
        program = tmp_path / name
        if text is not None:
            program.write_text(text)
            program.chmod(0o755)
        monkeypatch.setattr(ripgrep, "ripgrep_path", lambda program=program: str(program))
        with pytest.raises(CodeSpaceError) as caught:
            run(directory, "--files", ".")
        assert caught.value.code is ErrorCode.FILE_OPERATION_FAILED
        assert str(tmp_path) not in str(caught.value.body())


def test_without_the_package_the_program_of_path_is_taken_or_none(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, directory: RootDirectory
) -> None:
    nowhere = str(tmp_path / "nowhere")
    monkeypatch.setattr(sys, "executable", f"{nowhere}/python")

    def scripts(name: str) -> str:
        return f"{nowhere}/{name}"

    monkeypatch.setattr(sysconfig, "get_path", scripts)
    packaged = ripgrep_path()
    assert packaged is not None
    assert Path(packaged).samefile(Path(sys.prefix) / "bin" / "rg")
    monkeypatch.setattr(sys, "path", [])
    program = tmp_path / "rg"
    program.write_text("")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    assert ripgrep_path() == str(program)
    monkeypatch.setenv("PATH", nowhere)
    assert ripgrep_path() is None
    with pytest.raises(CodeSpaceError, match="install the Python package"):
        run(directory, "--files", ".")
