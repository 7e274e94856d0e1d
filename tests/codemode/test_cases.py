"""Every case of tests/cases/codemode, as its README says: a script, its tools, its outcome."""

import json
from pathlib import Path
from typing import cast

import pytest

from codespace.codemode import Sandbox
from codespace.domain.run_limits import LimitOptions
from doubles.case_rules import faults
from doubles.case_tools import tools_of
from doubles.loop_lag import watched

CASES = sorted((Path(__file__).parent.parent / "cases" / "codemode").glob("*.json"))
SLOW_MACHINE = 3.0
"""Times are generous; this much more, since other tests run beside these."""


def _read(path: Path) -> dict[str, object]:
    return cast("dict[str, object]", json.loads(path.read_text(encoding="utf-8")))


def test_there_are_cases() -> None:
    assert len(CASES) >= 80
    assert all(_read(path)["name"] == path.stem for path in CASES)


@pytest.mark.anyio
@pytest.mark.parametrize("path", CASES, ids=lambda path: cast("Path", path).stem)
async def test_a_case_has_its_outcome(path: Path) -> None:
    case = _read(path)
    limits = cast("LimitOptions", case.get("limits", {}))
    async with Sandbox(tools_of(case), **limits) as sandbox:
        for run in [case, *cast("list[dict[str, object]]", case.get("then", []))]:
            code = str(run["code"])
            if "code_pad_chars" in run:
                code += "\n//" + "x" * cast("int", run["code_pad_chars"])
            timeout_ms = cast("int | None", run.get("timeout_ms"))
            async with watched() as lag:
                outcome = await sandbox.run(
                    code,
                    args=run.get("args", {}),
                    timeout=None if timeout_ms is None else timeout_ms / 1000,
                )
            # What a client gets has passed through JSON.
            told = cast("dict[str, object]", json.loads(json.dumps(outcome.to_json())))
            assert faults(run["expect"], told, lag_ms=lag.worst_ms, scale=SLOW_MACHINE) == [], code[
                :500
            ]
