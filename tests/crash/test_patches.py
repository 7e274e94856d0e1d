"""kill -9 at any instant, then a restart: never half a patch, and the ledger knows which half."""

import os
import random
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO

import pytest

from codespace.domain.operation import Operation
from codespace.domain.patch import PatchStatus
from codespace.domain.workspace import Workspace
from codespace.gateway.recovery import recover
from codespace.store.engine import Store
from codespace.store.operations import Operations
from codespace.workspace.directory import register
from crash.patching_loop import DEMO, directories_of, files_of, key_of, version_on_disk
from doubles.trees import snapshot

pytestmark = [pytest.mark.slow, pytest.mark.timeout(300)]

LOOP = Path(__file__).with_name("patching_loop.py")
TESTS = Path(__file__).parents[1]
KILLS = 200


@dataclass(slots=True)
class Rig:
    """The workspace, its ledger, and the program that is killed."""

    root: Path
    database: str
    program: subprocess.Popen[bytes]
    outcomes: Counter[str] = field(default_factory=Counter[str])
    version: int = 0

    def start(self, turn: str) -> int:
        """Begin a turn; return the child's pid."""
        self._stdin.write(f"{turn}\n".encode())
        self._stdin.flush()
        said, pid = self.line().split()
        assert said == "child"
        return int(pid)

    def line(self) -> str:
        line = self._stdout.readline().decode()
        assert line, "the program is gone"
        assert not line.startswith("wrong"), line
        return line.strip()

    def begun_last(self) -> int | None:
        """Return the version of the last patch that the killed child had begun."""
        begun: int | None = None
        while (line := self.line()) != "ended":
            said, version = line.split()
            begun = int(version) if said == "begun" else begun
        return begun

    def settle(self, begun: int | None, turn: str) -> None:
        """Restart after a kill, and check everything that can be known."""
        store = Store(self.database, durable=False, patience_seconds=30)
        operations = Operations(store)
        workspace = Workspace(DEMO, register(str(self.root)))
        settled = recover(operations, {DEMO: workspace}, now_ms=lambda: 0, durable=False)
        assert operations.unfinished() == ()
        version = version_on_disk(self.root)
        assert self.files() == files_of(version)
        assert self.directories() == directories_of(version)
        if begun is not None:
            found = operations.find_by_key(key_of(begun, turn))
            self.outcomes[check(begun, version, found[0] if found else None, settled)] += 1
        store.close()
        self.version = version

    def files(self) -> dict[str, bytes]:
        tree = snapshot(self.root)
        return {name: node[3] for name, node in tree.items() if node[0] != "directory"}

    def directories(self) -> set[str]:
        return {name for name, node in snapshot(self.root).items() if node[0] == "directory"}

    @property
    def _stdin(self) -> IO[bytes]:
        assert self.program.stdin is not None
        return self.program.stdin

    @property
    def _stdout(self) -> IO[bytes]:
        assert self.program.stdout is not None
        return self.program.stdout


def check(begun: int, version: int, found: Operation | None, settled: tuple[Operation, ...]) -> str:
    """Check the ledger against the disk; return what the kill came to."""
    recovered = found is not None and found in settled
    if found is None:
        assert version == begun - 1
        return "before the ledger"
    if found.status is PatchStatus.APPLIED:
        assert version == begun
    else:
        assert found.status is PatchStatus.FAILED_ROLLED_BACK
        assert version == begun - 1
    assert found.reason == ("recovered" if recovered else None)
    return f"{found.status}{' by recovery' if recovered else ''}"


@pytest.fixture
def rig(tmp_path: Path) -> Iterator[Rig]:
    root = tmp_path / "work"
    for name, data in files_of(0).items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_bytes(data)
    database = str(tmp_path / "ledger.db")
    with subprocess.Popen(
        [sys.executable, str(LOOP), str(root), database],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        env={**os.environ, "PYTHONPATH": str(TESTS)},
    ) as program:
        yield Rig(root, database, program)
        assert program.stdin is not None
        program.stdin.close()
        program.wait(timeout=30)


@pytest.mark.requirement("crash.never-half-applied")
def test_a_kill_at_any_instant_leaves_a_whole_patch_or_none(rig: Rig) -> None:
    choice = random.Random(20)
    took = 0.01
    for turn in range(KILLS):
        pid = rig.start(str(turn))
        begun_at = time.perf_counter()
        warm_up = 1 if turn % 5 == 0 else 0
        while not (line := rig.line()).startswith("begun") or warm_up > 0:
            if line.startswith("begun"):
                begun_at = time.perf_counter()
            else:
                warm_up -= 1
                took = 0.7 * took + 0.3 * (time.perf_counter() - begun_at)
        begun = int(line.split()[1])
        instant = time.perf_counter() + choice.uniform(0, 1.1 * took)
        while time.perf_counter() < instant:
            pass  # a sleep would be too coarse for what lasts a few milliseconds
        os.kill(pid, signal.SIGKILL)
        rig.settle(rig.begun_last() or begun, str(turn))
    assert sum(rig.outcomes.values()) == KILLS
    # The kills did fall into patches, not between them.
    assert rig.outcomes[f"{PatchStatus.FAILED_ROLLED_BACK} by recovery"] >= 10, rig.outcomes


@pytest.mark.requirement("crash.never-half-applied")
def test_a_kill_before_each_system_call_leaves_a_whole_patch_or_none(rig: Rig) -> None:
    for call in range(1000):
        rig.start(f"{call} {call}")
        begun: int | None = None
        while not (line := rig.line()).startswith(("done", "ended")):
            begun = int(line.split()[1])
        if line != "ended":
            break
        rig.settle(begun, str(call))
    else:
        pytest.fail("no patch came to its end")
    applied = f"{PatchStatus.APPLIED} by recovery"
    assert rig.outcomes[applied] >= 1, rig.outcomes
    assert rig.outcomes[f"{PatchStatus.FAILED_ROLLED_BACK} by recovery"] >= 20, rig.outcomes
