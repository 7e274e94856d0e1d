"""The acceptance sequence of the contract (section 11), as a client walks it.

It speaks MCP to a real server and checks each answer. `demo` shows it to a person; the tests walk
it over every transport and protocol revision.
"""

from collections.abc import AsyncGenerator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import cast

import anyio

from codespace.adapters.client import Connection
from codespace.cli.walk_script import FINDINGS, REMEMBERED, SCRIPT, held, make_inventory, told
from codespace.domain.tool import Json

Connect = Callable[[], AbstractAsyncContextManager[Connection]]
Report = Callable[[str], None]

KEY = "demo-lost-answer"
LOG_BYTES = 2_000_000
STEP_SECONDS = 30

GREETING = "def greet(name):\n    return 'Hello ' + name\n\n\nprint(greet('world'))\n"
PREVIEWED = """*** Begin Patch
*** Update File: greet.py
@@ def greet(name):
-    return 'Hello ' + name
+    return f'Hello, {name}!'
*** Add File: notes/change.md
+The greeting has a comma now.
*** End Patch"""
LOST = """*** Begin Patch
*** Add File: notes/lost.md
+The answer to this patch was never read.
*** End Patch"""


class StepError(Exception):
    """A step of the walk did not hold. The message says which and what came back."""


def make_project(root: Path) -> None:
    """Write the small project that the walk changes."""
    (root / "greet.py").write_text(GREETING, encoding="utf-8")
    make_inventory(root)


@dataclass(slots=True)
class Walk:
    """Walks the sequence once, against a gateway whose one workspace holds the project."""

    connect: Connect
    report: Report
    workspace_id: str = "default"
    _connection: Connection | None = field(default=None, init=False)

    async def run(self) -> None:
        """Walk all steps.

        Raises:
            StepError: a step did not hold.
        """
        async with self._connected():
            await self._patch()
            await self._commands()
            await self._script()
            await self._cancel()
            await self._lose_an_answer()
        async with self._connected():
            await self._recover_it()

    @asynccontextmanager
    async def _connected(self) -> AsyncGenerator[None]:
        async with self.connect() as connection:
            self._connection = connection
            try:
                yield
            finally:
                self._connection = None

    async def _call(self, tool: str, **arguments: object) -> Json:
        answer = await self._ask(tool, arguments)
        self._hold(tool, not answer[1], answer[0])
        return answer[0]

    async def _ask(self, tool: str, arguments: dict[str, object]) -> tuple[Json, bool]:
        if self._connection is None:
            raise StepError("not connected")
        with anyio.fail_after(STEP_SECONDS):
            answer = await self._connection.call(tool, arguments)
        return answer.body, answer.is_error

    def _hold(self, step: str, condition: bool, body: object) -> None:  # noqa: FBT001 -- the claim itself
        if not condition:
            raise StepError(f"{step} did not hold; the answer was {body}")

    async def _patch(self) -> None:
        here = {"workspace_id": self.workspace_id}
        before = await self._call("read", path="greet.py", **here)
        self._hold("read", before["content"] == GREETING, before)
        self.report(f"read      greet.py: {before['size']} bytes, version {_short(before)}")

        patch = {
            "patch": PREVIEWED,
            "expected_versions": {"greet.py": before["version"], "notes/change.md": "absent"},
            **here,
        }
        preview = await self._call("apply_patch", check_only=True, **patch)
        self._hold("preview", preview["status"] == "checked", preview)
        untouched = await self._call("read", path="greet.py", **here)
        self._hold("preview", untouched["version"] == before["version"], untouched)
        self.report(f"preview   would change {', '.join(_texts(preview['files']))}; wrote nothing")

        applied = await self._call("apply_patch", **patch)
        self._hold("apply", applied["status"] == "applied", applied)
        self.report(f"apply     {applied['operation_id']}: applied and verified on disk")

        after = await self._call("read", path="greet.py", **here)
        self._hold("read again", "Hello, {name}!" in str(after["content"]), after)
        self.report(f"read      greet.py again: version {_short(after)}")

    async def _commands(self) -> None:
        here = {"workspace_id": self.workspace_id}
        started = await self._call("exec_command", command=["sh", "-c", "cat greet.py"], **here)
        output, state = await self._collect(str(started["process_id"]))
        self._hold("run", state.get("exit_code") == 0 and "Hello, " in output, (output, state))
        self.report(f"run       cat greet.py: exit 0, {len(output)} characters collected")

        failing = await self._call("bash", command="ls no-such-file", **here)
        self._hold("a failing command", failing.get("exit_code") not in (None, 0), failing)
        first = str(failing["output"]).splitlines()[0]
        self.report(f"fail      ls no-such-file: exit {failing['exit_code']}, {first!r}")

        huge = await self._call(
            "exec_command", command=["sh", "-c", f"yes 'a long log' | head -c {LOG_BYTES}"], **here
        )
        process_id = str(huge["process_id"])
        await self._call("process_status", process_id=process_id, wait_ms=20_000)
        chunk = await self._call("read_process", process_id=process_id, cursor=0)
        status = await self._call("process_status", process_id=process_id)
        lost = bool(chunk["output_lost"]) and status["output_total"] == LOG_BYTES
        self._hold("an oversized log", lost, (chunk["output_lost"], status))
        self.report(
            f"log       {LOG_BYTES:,} bytes written, kept from byte {chunk['retained_from']} on,"
            " and it says so"
        )

    async def _script(self) -> None:
        here = {"workspace_id": self.workspace_id}
        run = await self._call("codemode", code=SCRIPT, **here)
        self._hold("codemode", held(run), run)
        self.report(f"script    {told(run)}")
        again = await self._call("codemode", code=REMEMBERED, **here)
        self._hold("codemode", again["value"] == FINDINGS, again)
        self.report(f"remember  a later script loads all {FINDINGS} findings of the first")

    async def _cancel(self) -> None:
        here = {"workspace_id": self.workspace_id}
        started = await self._call("exec_command", command=["sleep", "600"], **here)
        process_id = str(started["process_id"])
        busy, refused = await self._ask("apply_patch", {"patch": LOST, **here})
        self._hold("a busy workspace", refused and busy["code"] == "WORKSPACE_BUSY", busy)
        await self._call("terminate_process", process_id=process_id)
        state = await self._call("process_status", process_id=process_id, wait_ms=20_000)
        ended = state["state"] == "exited" and state.get("termination") == "terminated"
        self._hold("cancel", ended, state)
        self.report(
            "cancel    sleep 600: a patch was refused meanwhile; terminated, all of it gone"
        )

    async def _lose_an_answer(self) -> None:
        """Send a patch and go away without reading its answer."""
        async with anyio.create_task_group() as tasks:

            async def send() -> None:
                await self._ask("apply_patch", self._lost_patch())

            tasks.start_soon(send)
            await anyio.sleep(0.05)
            tasks.cancel_scope.cancel()
        self.report("lose      sent a patch with a key, and left without reading the answer")

    async def _recover_it(self) -> None:
        # Sending the same key again is safe whatever became of the first: it happens once.
        again = await self._call("apply_patch", **self._lost_patch())
        record = await self._call(
            "operation_status", operation_key=KEY, workspace_id=self.workspace_id
        )
        same = record["operation_id"] == again["operation_id"]
        self._hold("recover", same and record["status"] == "applied", (again, record))
        found = await self._call("read", path="notes/lost.md", workspace_id=self.workspace_id)
        once = str(found["content"]).count("never read") == 1
        self._hold("recover", once, found)
        how = "recorded result replayed" if again["replayed"] else "applied now"
        self.report(f"recover   {record['operation_id']} by its key: {how}; it happened once")

    def _lost_patch(self) -> dict[str, object]:
        return {"workspace_id": self.workspace_id, "patch": LOST, "operation_key": KEY}

    async def _collect(self, process_id: str) -> tuple[str, Json]:
        text, cursor, eof = "", 0, False
        while not eof:
            chunk = await self._call(
                "read_process", process_id=process_id, cursor=cursor, wait_ms=5_000
            )
            text, cursor, eof = (
                text + str(chunk["chunk"]),
                cast("int", chunk["cursor"]),
                bool(chunk["eof"]),
            )
        return text, await self._call("process_status", process_id=process_id)


def _short(body: Json) -> str:
    return f"{str(body['version'])[:12]}…"


def _texts(value: object) -> list[str]:
    return [str(item) for item in cast("list[object]", value)]
