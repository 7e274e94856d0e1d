"""Applies one patch after the other, in children that somebody kills. Run as a program.

It is imported once and forks for each line `ROUND [CALL]` on stdin, since starting Python takes
longer than a patch. A child says `child PID`, then `begun VERSION` before and `done VERSION` after
each patch; with CALL it kills itself before that system call of its first patch. When it is gone,
`ended` is said.
"""

import os
import signal
import sys
from collections.abc import Sequence
from pathlib import Path

from codespace.domain.ids import OperationId, OperationKey, WorkspaceId
from codespace.domain.limits import Limits
from codespace.domain.operation import Operation
from codespace.domain.patch import PatchStatus
from codespace.domain.workspace import Workspace
from codespace.gateway.writing import PatchRequest, Writer
from codespace.store.engine import Store
from codespace.store.operations import Operations
from codespace.workspace.directory import register
from codespace.workspace.syscalls import Syscalls
from doubles.failing_syscalls import Call, FailingSyscalls, Faults
from doubles.patch_world import add, delete, patch, update

DEMO = WorkspaceId("demo")
KEPT = ("a.txt", "b/c/d.txt", "b/e.txt", "b/c/f.txt", "g.txt")


def files_of(version: int) -> dict[str, bytes]:
    """Return every file of the workspace at a version."""
    files = {name: f"top\nversion {version}\nend\n".encode() for name in KEPT}
    files[f"moving-{version % 2}.txt"] = f"moved {version}\n".encode()
    files[f"fresh-{version}/in/new.txt"] = b"fresh\n"
    files[f"turns-{version}"] = b"file\n"
    if version > 0:
        files[f"turns-{version - 1}/in.txt"] = b"directory\n"
    return files


def directories_of(version: int) -> set[str]:
    """Return every directory at a version: deleting a file leaves its directories."""
    made = {f"fresh-{number}{below}" for number in range(version + 1) for below in ("", "/in")}
    turned = {f"turns-{number}" for number in range(version)}
    return {"b", "b/c"} | made | turned


def patch_to(version: int) -> str:
    """Return the patch that leads from the version before to `version`."""
    old = version - 1
    changes = [update(name, f"version {old}", f"version {version}") for name in KEPT]
    moved = f"moving-{version % 2}.txt"
    return patch(
        *changes,
        update(f"moving-{old % 2}.txt", f"moved {old}", f"moved {version}", move_to=moved),
        delete(f"fresh-{old}/in/new.txt"),
        add(f"fresh-{version}/in/new.txt", "fresh"),
        delete(f"turns-{old}"),
        add(f"turns-{old}/in.txt", "directory"),
        add(f"turns-{version}", "file"),
        *([delete(f"turns-{old - 1}/in.txt")] if old > 0 else []),
    )


def key_of(version: int, turn: str) -> OperationKey:
    """Return the key of the patch to `version` in one turn."""
    return OperationKey(f"{version}.{turn}")


def version_on_disk(root: Path) -> int:
    """Return which version one of the files says that it is."""
    return int((root / KEPT[0]).read_text(encoding="utf-8").split()[2])


def say(text: str) -> None:
    os.write(1, f"{text}\n".encode())


def run(root: Path, database: str, turn: str, call: int | None) -> None:
    """Apply patches until somebody ends this process."""

    def kill(at: Call) -> None:
        if at.number == call:
            os.kill(os.getpid(), signal.SIGKILL)

    workspace = Workspace(DEMO, register(str(root)))
    calls = Syscalls() if call is None else FailingSyscalls(Faults(before=kill))
    operations = Operations(Store(database, durable=False, patience_seconds=30))
    # Durable, but for the waiting: a sync would only make most kills fall into it.
    writer = Writer(operations, Limits(), lambda: 0, durable=call is not None, calls=calls)
    while True:
        version = version_on_disk(root) + 1
        minted = Operation(
            operation_id=OperationId(f"op-{version}-{turn}"),
            workspace_id=DEMO,
            root=workspace.root.path,
            fingerprint="f",
            created_at=0,
            operation_key=key_of(version, turn),
        )
        say(f"begun {version}")
        record = writer.execute(workspace, PatchRequest(patch_to(version)), minted)
        if record.status is not PatchStatus.APPLIED:
            say(f"wrong {record}")
            os._exit(1)
        say(f"done {version}")


def main(arguments: Sequence[str]) -> None:
    root, database = Path(arguments[0]), arguments[1]
    for line in sys.stdin:
        turn, _, call = line.strip().partition(" ")
        child = os.fork()
        if child == 0:
            try:
                say(f"child {os.getpid()}")
                run(root, database, turn, int(call) if call else None)
            except BaseException as error:  # noqa: BLE001 -- said, so that the test fails on it
                say(f"wrong {error!r}")
            finally:
                os._exit(1)
        os.waitpid(child, 0)
        say("ended")


if __name__ == "__main__":
    main(sys.argv[1:])
