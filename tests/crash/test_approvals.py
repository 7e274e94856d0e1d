"""kill -9 between any two steps of hold, grant and resume: one truth, and nothing done twice."""

import os
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import IO, cast

import pytest

from codespace.domain.errors import ErrorCode
from codespace.domain.ids import ApprovalId
from codespace.domain.patch import PatchStatus
from contract.answers import Reply
from contract.raw import raw_stdio
from contract.servers import until, write_config
from crash.holding_loop import AFTER, BEFORE, CALLS, MADE, PATCHED, made
from doubles.held_world import HeldWorld, held_world

pytestmark = [pytest.mark.anyio, pytest.mark.timeout(120)]

LOOP = Path(__file__).with_name("holding_loop.py")
TESTS = Path(__file__).parents[1]
INSTANTS_MAX = 200


@dataclass(frozen=True, slots=True)
class Program:
    """The program that is killed."""

    process: "subprocess.Popen[bytes]"

    def dies(self, kind: str, instant: int, root: Path, database: Path) -> bool:
        """Let it run a call; say whether it was killed on the way."""
        stdin, stdout = (
            cast("IO[bytes]", pipe) for pipe in (self.process.stdin, self.process.stdout)
        )
        stdin.write(f"{kind} {instant} {root} {database}\n".encode())
        stdin.flush()
        said = stdout.readline().decode()
        if said == "ended\n":
            return True
        assert said == "done\n", said
        assert stdout.readline() == b"ended\n"
        return False


@pytest.fixture
def program() -> Iterator[Program]:
    with subprocess.Popen(
        [sys.executable, str(LOOP)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        env={**os.environ, "PYTHONPATH": os.pathsep.join([str(TESTS), *filter(None, sys.path)])},
    ) as process:
        yield Program(process)
        assert process.stdin is not None
        process.stdin.close()
        process.wait(timeout=30)


def lines(root: Path) -> int:
    """Return how often the command was run."""
    file = root / MADE
    return len(file.read_text(encoding="utf-8").splitlines()) if file.exists() else 0


async def gone_on(world: HeldWorld, kind: str) -> tuple[str, Reply]:
    """Go on as a client does that lost its answer; return the state found, and the end."""
    tool, arguments = CALLS[kind]
    again = await world.call(tool, **arguments)
    if again.body.get("code") != ErrorCode.APPROVAL_REQUIRED:
        return await replayed(world, Reply(again.body))
    approval_id = ApprovalId(str(again.body["approval_id"]))
    found = world.state(approval_id)
    if found == "pending":
        await world.result("approval_resolve", approval_id=approval_id, decision="grant")
    ends = [await world.call("operation_resume", approval_id=approval_id) for _ in range(2)]
    assert ends[0] == ends[1]
    assert world.state(approval_id) == "consumed"
    return found, Reply(ends[0].body)


async def replayed(world: HeldWorld, recorded: Reply) -> tuple[str, Reply]:
    """Check that the hold of a patch whose client knows its key comes to the same end."""
    (hold,) = world.holds.listed()
    end = await world.call("operation_resume", approval_id=hold.approval_id)
    told = Reply(end.body) if end.is_error else Reply(end.body).at("result")
    assert told["operation_id"] == recorded["operation_id"]
    assert told.body.get("code") == recorded.body.get("code")
    assert world.state(hold.approval_id) == "consumed"
    return "replayed", recorded


@pytest.mark.slow
@pytest.mark.requirement(
    "approvals.ambiguous",
    "approvals.recovered-patch",
    "approvals.survive-a-restart",
    "approvals.consumed-with-result",
    "code.approval-ambiguous",
)
@pytest.mark.parametrize("kind", CALLS)
async def test_a_kill_at_any_instant_leaves_one_truth_and_nothing_is_done_twice(
    program: Program, tmp_path: Path, kind: str
) -> None:
    outcomes: Counter[str] = Counter()
    for instant in range(INSTANTS_MAX):
        root, database = tmp_path / f"root-{instant}", tmp_path / f"{instant}.db"
        root.mkdir()
        (root / PATCHED).write_text(BEFORE, encoding="utf-8")
        if not program.dies(kind, instant, root, database):
            break
        with held_world(root, str(database), first=100) as world:
            world.effect = made(root)
            world.patches.restart()
            before = lines(root)
            consumed = any(hold.state.value == "consumed" for hold in world.holds.listed())
            found, end = await gone_on(world, kind)
            if kind == "command":
                check_command(root, end, ran=before, fresh=found == "pending")
            else:
                check_patch(world, end, once=not consumed or found == "replayed")
            outcomes[
                f"{found}{' after the end' if consumed else ''} {end.body.get('code', '')}"
            ] += 1
    else:
        pytest.fail("the call never came to its end")
    print(kind, outcomes)
    found = {outcome.split()[0] for outcome in outcomes}
    assert found >= {"pending", "granted", "replayed" if kind == "keyed" else "resuming"}


def check_command(root: Path, end: Reply, *, ran: int, fresh: bool) -> None:
    """A command that may have run is not run again, and one that did not is run once."""
    if end.body.get("code") == ErrorCode.APPROVAL_AMBIGUOUS.value:
        assert lines(root) == ran <= 1
    else:
        assert end["result", "runs"] == 1
        # Only a new hold, after the first was consumed, may run it a second time.
        assert lines(root) == ran + 1
        assert ran == 0 or fresh


def check_patch(world: HeldWorld, end: Reply, *, once: bool) -> None:
    """The patch is applied, once, or was rolled back as a whole and says so."""
    text = (world.patches.root / PATCHED).read_text(encoding="utf-8")
    statuses = Counter(operation.status for operation in world.patches.recorded())
    if "code" not in end:
        assert text == AFTER
        assert statuses[PatchStatus.APPLIED] == 1
    elif once:
        assert (end["code"], end["details", "status"]) == (
            "FILE_OPERATION_FAILED",
            "failed_rolled_back",
        )
        assert text == BEFORE
    else:
        # The first hold was consumed: a second one finds that there is nothing left to do.
        assert (end["code"], text) == ("INVALID_PATCH", AFTER)
        assert statuses[PatchStatus.APPLIED] == 1


@pytest.mark.requirement("approvals.ambiguous", "approvals.survive-a-restart")
async def test_a_killed_server_does_not_start_a_held_command_twice(tmp_path: Path) -> None:
    root = tmp_path / "root"
    root.mkdir()
    config = write_config(
        tmp_path / "c.json",
        {"default": {"root": str(root), "profile": "workspace-write", "approvals": "confirm"}},
        operations_db=str(tmp_path / "ledger.db"),
    )
    given = {"workspace_id": "default", "command": f"echo made >> {MADE}; sleep 60"}
    with raw_stdio(tmp_path / "1.txt", "--config", str(config)) as gateway:
        gateway.open()
        approval_id = gateway.call("bash", given)["approval_id"]
        gateway.call("approval_resolve", {"approval_id": approval_id, "decision": "grant"})
        gateway.request(
            "tools/call",
            {"name": "operation_resume", "arguments": {"approval_id": approval_id}},
        )
        until(lambda: lines(root) == 1, "the command runs")
        gateway.process.kill()
    with raw_stdio(tmp_path / "2.txt", "--config", str(config)) as gateway:
        gateway.open()
        same = gateway.call("bash", given)
        assert (same["approval_id"], same["details", "state"]) == (approval_id, "resuming")
        ends = [gateway.call("operation_resume", {"approval_id": approval_id}) for _ in range(2)]
        assert ends[0]["code"] == "APPROVAL_AMBIGUOUS"
        assert ends[0].body == ends[1].body
        again = gateway.call("bash", given)
        assert again["approval_id"] != approval_id
        assert again["details", "state"] == "pending"
    assert lines(root) == 1
