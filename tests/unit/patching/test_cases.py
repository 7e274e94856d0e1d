"""Every recorded case of the patch format that needs no disk."""

import base64
import json
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from pydantic import TypeAdapter

from codespace.domain.errors import CodeSpaceError
from codespace.domain.paths import ancestors
from codespace.patching.grammar import cleaned, parse
from codespace.patching.planning import DirectoryEntry, Entry, FileEntry, plan

CASES = Path(__file__).parents[2] / "cases" / "patch"


@dataclass(frozen=True, slots=True)
class Expected:
    """How a case ends; `files` are all regular files afterwards."""

    ok: bool
    code: str | None = None
    files: dict[str, str | None] = field(default_factory=dict[str, str | None])
    files_b64: dict[str, str] = field(default_factory=dict[str, str])


@dataclass(frozen=True, slots=True)
class Case:
    """A tree, a patch, and what becomes of them."""

    name: str
    patch: str
    expect: Expected
    files: dict[str, str] = field(default_factory=dict[str, str])
    files_b64: dict[str, str] = field(default_factory=dict[str, str])
    dirs: list[str] = field(default_factory=list[str])
    symlinks: dict[str, str] = field(default_factory=dict[str, str])
    fifos: list[str] = field(default_factory=list[str])


def _bytes(
    texts: dict[str, str] | dict[str, str | None], encoded: dict[str, str]
) -> dict[str, bytes]:
    plain = {path: text.encode() for path, text in texts.items() if text is not None}
    return plain | {path: base64.b64decode(text) for path, text in encoded.items()}


def _cases() -> list[Case]:
    adapter = TypeAdapter(Case)
    cases = [adapter.validate_json(path.read_bytes()) for path in sorted(CASES.glob("*.json"))]
    # Links and special files are a matter of the disk, not of the transformation.
    return [case for case in cases if not case.symlinks and not case.fifos]


def _disk(case: Case) -> dict[str, Entry]:
    files = _bytes(case.files, case.files_b64)
    names = [*files, *(f"{path}/" for path in case.dirs)]
    above: dict[str, Entry] = {a: DirectoryEntry() for name in names for a in ancestors(name)}
    return above | {path: FileEntry(data) for path, data in files.items()}


@pytest.mark.parametrize("case", _cases(), ids=lambda case: case.name)
def test_a_recorded_case_ends_as_recorded(case: Case):
    now = _bytes(case.files, case.files_b64)
    code = None
    try:
        for file in plan(cleaned(parse(case.patch)), _disk(case)).files:
            assert now.pop(file.path, None) == file.before
            if file.after is not None:
                now[file.path] = file.after
    except CodeSpaceError as error:
        code = error.code.value
        json.dumps(error.body())
    assert (code is None) == case.expect.ok
    assert code == case.expect.code
    assert now == _bytes(case.expect.files, case.expect.files_b64)
