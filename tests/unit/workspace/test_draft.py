import os
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from tempfile import gettempdir

import pytest

from codespace.domain.errors import CodeSpaceError, ErrorCode
from codespace.domain.limits import Limits
from codespace.domain.operation import FileImage, version_of
from codespace.domain.patch import ABSENT
from codespace.patching.grammar import cleaned, parse, touched
from codespace.patching.planning import plan
from codespace.workspace.directory import open_root, register
from codespace.workspace.draft import Draft, draft
from codespace.workspace.survey import Survey
from doubles.access_lists import SOMEBODY_WRITES, give
from doubles.patch_world import add, delete, patch, update


def drafted(root: Path, text: str, limits: Limits | None = None) -> Draft:
    with open_root(register(str(root))) as opened:
        parsed = cleaned(parse(text))
        survey = Survey(opened, limits or Limits())
        survey.look(touched(parsed))
        return draft(survey, plan(parsed, survey.entries))


def test_images_hold_what_is_needed_to_go_back(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_bytes(b"old\n")
    (tmp_path / "a.txt").chmod(0o640)
    (tmp_path / "b.txt").write_bytes(b"b\n")
    ready = drafted(tmp_path, patch(update("a.txt", "old", "new"), delete("b.txt"), add("c", "x")))
    status = (tmp_path / "a.txt").stat()
    assert ready.images[0] == FileImage(
        "a.txt",
        b"old\n",
        version_of(b"old\n"),
        version_of(b"new\n"),
        0o640,
        status.st_uid,
        status.st_gid,
    )
    assert ready.images[1].planned_version == ABSENT
    assert ready.images[2] == FileImage("c", None, ABSENT, version_of(b"x\n"))


def test_an_image_has_the_mode_that_is_safe_without_the_access_list(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_bytes(b"old\n")
    give(tmp_path / "a.txt", SOMEBODY_WRITES)
    ready = drafted(tmp_path, patch(update("a.txt", "old", "new")))
    assert ready.images[0].mode == 0o640


def test_missing_directories_are_listed_outermost_first(tmp_path: Path) -> None:
    (tmp_path / "here").mkdir()
    text = patch(add("z/y/1", "x"), add("here/new/2", "x"), add("z/y/3", "x"), add("top", "x"))
    assert drafted(tmp_path, text).directories == ("here/new", "z", "z/y")


def test_a_deleted_file_whose_name_becomes_a_directory_is_made_one(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(b"file\n")
    assert drafted(tmp_path, patch(delete("a"), add("a/b", "x"))).directories == ("a",)


def test_a_patch_that_would_write_too_much_is_refused(tmp_path: Path) -> None:
    limits = replace(Limits(), patch_file_max_bytes=5)
    with pytest.raises(CodeSpaceError) as caught:
        drafted(tmp_path, patch(add("a", "123456")), limits)
    assert caught.value.code is ErrorCode.LIMIT_EXCEEDED


def test_a_directory_without_write_permission_is_refused_before_anything(
    tmp_path: Path, as_nobody: Callable[[Callable[[], None]], str]
) -> None:
    (tmp_path / "closed").mkdir(0o555)
    tmp_path.chmod(0o755)

    def attempt() -> None:
        drafted(tmp_path, patch(add("closed/new/a", "x")))

    assert as_nobody(attempt) == "FILE_OPERATION_FAILED EACCES closed/new"


@pytest.fixture
def as_nobody(tmp_path: Path) -> Callable[[Callable[[], None]], str]:
    """Run something as a user without privileges, and return the error it raised."""

    def run(attempt: Callable[[], None]) -> str:
        for above in (tmp_path, *tmp_path.parents):
            if os.getuid() == 0 and above.parent.is_relative_to(gettempdir()):
                above.chmod(0o755)
        reader, writer = os.pipe()
        child = os.fork()
        if child == 0:
            said = "nothing was raised"
            try:
                if os.getuid() == 0:
                    os.setgid(65534)
                    os.setuid(65534)
                attempt()
            except CodeSpaceError as error:
                said = f"{error.code} {error.details.get('errno')} {error.details.get('path')}"
            except BaseException as error:  # noqa: BLE001 -- the parent asserts on it
                said = repr(error)
            finally:
                os.write(writer, said.encode())
                os._exit(0)
        os.close(writer)
        os.waitpid(child, 0)
        with os.fdopen(reader, "rb") as said:
            return said.read().decode()

    return run


def test_many_files_together_are_refused_by_their_sum(tmp_path: Path) -> None:
    limits = replace(Limits(), patch_total_max_bytes=7)
    drafted(tmp_path, patch(add("a", "12"), add("b", "123")), limits)
    with pytest.raises(CodeSpaceError) as caught:
        drafted(tmp_path, patch(add("a", "123"), add("b", "123")), limits)
    assert caught.value.details["limit"] == "patch_total_max_bytes"
