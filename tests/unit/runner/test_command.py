"""What is refused before anything exists: arguments, programs, and a root that is not the root."""

import dataclasses
import os
from pathlib import Path

import pytest

from codespace.domain.errors import CodeSpaceError
from codespace.domain.ids import ProcessId
from codespace.domain.limits import Limits
from codespace.domain.sizes import KIB
from codespace.domain.workspace import Root
from codespace.runner.api import StartRequest
from codespace.runner.command import check_arguments, open_root, resolve_program, root_refusal
from programs.running import code_of, descriptors, root_at

LIMITS = Limits()


@pytest.mark.parametrize(
    "argv", [(), ("",), ("", "x"), ("a\0b",), ("sh", "-c", "\0"), ("sh", "\ud800")]
)
def test_what_is_no_command_is_invalid(argv: tuple[str, ...]):
    with pytest.raises(CodeSpaceError) as caught:
        check_arguments(argv, LIMITS)
    assert code_of(caught) == "INVALID_COMMAND"


@pytest.mark.parametrize(
    ("argv", "limit"),
    [
        (("x",) * 4_097, "argv_max_count"),
        (("echo", "x" * 128 * KIB), "argument_max_bytes"),
        (("echo", "é" * 64 * KIB), "argument_max_bytes"),
        (("echo", *["x" * 100 * KIB] * 6), "argv_max_bytes"),
    ],
)
def test_what_the_kernel_would_not_take_is_over_a_limit(argv: tuple[str, ...], limit: str):
    with pytest.raises(CodeSpaceError) as caught:
        check_arguments(argv, LIMITS)
    assert code_of(caught) == "LIMIT_EXCEEDED"
    assert caught.value.details["limit"] == limit
    assert caught.value.details["maximum"] == getattr(LIMITS, limit)


def test_what_just_fits_is_accepted():
    check_arguments(("x",) * 4_096, LIMITS)
    check_arguments(("x" * (128 * KIB - 1),) * 4, LIMITS)
    check_arguments(("sh", "", "-", "--", "\n", "$(id)"), LIMITS)


def program(directory: Path, name: str, mode: int = 0o755) -> Path:
    path = directory / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("exit 0\n", encoding="utf-8")
    path.chmod(mode)
    return path


def resolved(directory: Path, name: str, search_path: str = "/usr/bin:/bin") -> str:
    request = StartRequest(
        ProcessId("proc-1"), root_at(directory), (name,), environment={"PATH": search_path}
    )
    descriptor = os.open(directory, os.O_PATH)
    try:
        return resolve_program(request, descriptor)
    finally:
        os.close(descriptor)


def test_a_plain_name_is_found_on_the_commands_path_in_its_order(tmp_path: Path):
    first, second = program(tmp_path, "one/tool"), program(tmp_path, "two/tool")
    assert resolved(tmp_path, "tool", f"{first.parent}:{second.parent}") == str(first)
    assert resolved(tmp_path, "tool", f"{second.parent}:{first.parent}") == str(second)


def test_a_name_with_a_slash_is_taken_from_the_root_and_is_never_an_option(tmp_path: Path):
    program(tmp_path, "run/tool")
    program(tmp_path, "-c/tool")
    assert resolved(tmp_path / "run", "./tool") == "./tool"
    assert resolved(tmp_path / "run", "../run/tool") == "../run/tool"
    assert resolved(tmp_path, "run/tool") == "./run/tool"
    assert resolved(tmp_path, "-c/tool") == "./-c/tool"
    assert resolved(tmp_path, f"{tmp_path}/run/tool") == f"{tmp_path}/run/tool"


@pytest.mark.parametrize("name", ["tool", "./missing", "missing", "sub", "./sub", "./plain", "/"])
def test_what_is_no_program_is_not_found(tmp_path: Path, name: str):
    program(tmp_path, "tool")
    program(tmp_path, "plain", mode=0o644)
    (tmp_path / "sub").mkdir()
    with pytest.raises(CodeSpaceError) as caught:
        resolved(tmp_path, name)
    assert code_of(caught) == "PROCESS_SPAWN_FAILED"
    assert caught.value.details["program"] == name


@pytest.mark.parametrize("search_path", ["", ":", ".", "./bin:", "bin"])
def test_a_relative_entry_of_the_path_finds_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, search_path: str
):
    program(tmp_path, "tool")
    program(tmp_path, "bin/tool")
    monkeypatch.chdir(tmp_path)
    with pytest.raises(CodeSpaceError) as caught:
        resolved(tmp_path, "tool", search_path)
    assert code_of(caught) == "PROCESS_SPAWN_FAILED"


def test_without_a_path_nothing_is_found(tmp_path: Path):
    request = StartRequest(ProcessId("proc-1"), root_at(tmp_path), ("sh",))
    with pytest.raises(CodeSpaceError) as caught:
        resolve_program(request, -1)
    assert code_of(caught) == "PROCESS_SPAWN_FAILED"


def test_the_registered_root_opens(tmp_path: Path):
    descriptor = open_root(root_at(tmp_path))
    assert os.fstat(descriptor).st_ino == tmp_path.stat().st_ino
    assert not os.get_inheritable(descriptor)
    os.close(descriptor)


@pytest.mark.parametrize("change", ["gone", "other", "file", "link", "device"])
def test_a_root_that_is_not_the_registered_one_is_refused(tmp_path: Path, change: str):
    path = tmp_path / "root"
    path.mkdir()
    root = root_at(path)
    if change == "device":
        root = dataclasses.replace(root, device=root.device + 1)
    else:
        path.rename(tmp_path / "old")
    if change == "other":
        path.mkdir()
    elif change == "file":
        path.touch()
    elif change == "link":
        (tmp_path / "elsewhere").mkdir()
        path.symlink_to(tmp_path / "elsewhere")
    before = descriptors()
    with pytest.raises(CodeSpaceError) as caught:
        open_root(root)
    assert code_of(caught) == "FILE_OPERATION_FAILED"
    assert caught.value.details["errno"] in ("ENOENT", "ESTALE", "ENOTDIR")
    assert str(tmp_path) not in str(caught.value.body())
    assert descriptors() == before


def test_a_root_moved_and_linked_back_is_still_the_same_directory(tmp_path: Path):
    path = tmp_path / "root"
    path.mkdir()
    root = root_at(path)
    path.rename(tmp_path / "moved")
    path.symlink_to(tmp_path / "moved")
    os.close(open_root(root))


def test_an_unknown_errno_is_still_told():
    assert root_refusal(None).details == {"errno": "EIO"}
    assert root_refusal(13).details == {"errno": "EACCES"}


def test_a_root_is_compared_by_identity_not_by_name(tmp_path: Path):
    status = tmp_path.stat()
    with pytest.raises(CodeSpaceError):
        open_root(Root(str(tmp_path), status.st_dev, status.st_ino + 1))
