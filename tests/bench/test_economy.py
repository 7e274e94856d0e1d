"""The comparison of scripts with single calls, in small: both forms must come to one result."""

import json
import os
import subprocess
import sys
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import cast

import pytest

HOUSE = Path(__file__).resolve().parent.parent.parent
TASKS = 5

Row = Mapping[str, Mapping[str, int]]


@cache
def rows() -> list[Row]:
    """Return the rows of one small run of the benchmark."""
    ended = subprocess.run(
        [sys.executable, str(HOUSE / "bench" / "economy" / "run.py"), "--quick", "--json"],
        capture_output=True,
        text=True,
        timeout=280,
        check=False,
        env=dict(os.environ),
    )
    assert ended.returncode == 0, ended.stderr
    return cast("list[Row]", json.loads(ended.stdout))


@pytest.mark.slow
@pytest.mark.timeout(300)
def test_both_forms_of_every_task_come_to_one_result() -> None:
    assert [row["agree"] for row in rows()] == [True] * TASKS


@pytest.mark.slow
@pytest.mark.timeout(300)
def test_a_script_sends_less_to_the_model_in_one_turn() -> None:
    for row in rows():
        assert row["script"]["read_bytes"] * 5 < row["calls"]["read_bytes"]
        assert row["script"]["turns"] == 1 < row["calls"]["turns"]
