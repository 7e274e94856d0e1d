import subprocess
from pathlib import Path

import pytest

from codespace.workspace.confinement import confined
from codespace.workspace.directory import open_root, register

CAT = "/bin/cat"


def readable(path: Path, directory: int) -> bool:
    """Tell whether a confined program can read `path`."""
    with Path("/dev/null").open("rb") as nothing:
        done = confined(
            lambda: subprocess.run(
                [CAT, str(path)], stdin=nothing, capture_output=True, check=False
            ),
            program=CAT,
            directory=directory,
        )
    return done.stdout == b"content"


@pytest.fixture
def top(tmp_path: Path) -> Path:
    top = tmp_path / "root"
    (top / "folder").mkdir(parents=True)
    for path in (top / "file", top / "folder" / "file", tmp_path / "outside"):
        path.write_text("content")
    (top / "link").symlink_to(tmp_path / "outside")
    return top


def test_a_confined_program_reads_below_the_directory(top: Path) -> None:
    with open_root(register(str(top))) as directory:
        assert readable(top / "file", directory.fd)
        assert readable(top / "folder" / "file", directory.fd)


def test_a_confined_program_reads_nothing_outside(top: Path) -> None:
    with open_root(register(str(top))) as directory:
        if readable(top.parent / "outside", directory.fd):
            pytest.skip("this kernel has no Landlock")
        assert not readable(top / "link", directory.fd)


def test_only_the_thread_that_started_it_is_confined(top: Path) -> None:
    with open_root(register(str(top))) as directory:
        readable(top / "file", directory.fd)
    assert (top.parent / "outside").read_text() == "content"
    (top.parent / "new").write_text("and writing works")


def test_what_fails_in_there_fails_here(top: Path) -> None:
    def fail() -> None:
        raise FileNotFoundError("nothing to start")

    with (
        open_root(register(str(top))) as directory,
        pytest.raises(FileNotFoundError, match="nothing to start"),
    ):
        confined(fail, program=CAT, directory=directory.fd)
