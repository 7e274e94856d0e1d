"""A client's session with a real server, and one workspace of its own.

Each answer is held to what section 2 says of every answer, whatever else a test looks at.
"""

import asyncio
import json
from collections.abc import AsyncGenerator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import cast

import mcp_types as types
from mcp import Client
from mcp.shared.dispatcher import ProgressFnT

from codespace.codemode.reading import blocks
from codespace.domain.errors import ErrorCode
from contract.answers import Json, Reply

TEXT_MAX_BYTES = 256 * 1024
ERROR_FIELDS = {"code", "message", "details", "operation_id", "approval_id"}


@dataclass(frozen=True, slots=True)
class Session:
    """One connection of one client."""

    client: Client

    async def ask(self, tool: str, arguments: Json) -> types.CallToolResult:
        """Send a call as it is and return the answer as it came, held to section 2."""
        answer = await self.client.call_tool(tool, dict(arguments))
        require_one_body(answer)
        return answer

    async def call(self, tool: str, /, **arguments: object) -> Reply:
        """Call a tool that must answer with a result."""
        answer = await self.ask(tool, arguments)
        reply = Reply(cast("Json", answer.structured_content))
        assert not answer.is_error, reply.body
        return reply

    async def refused(self, code: ErrorCode, tool: str, /, **arguments: object) -> Reply:
        """Call a tool that must answer with an error of this code."""
        answer = await self.ask(tool, arguments)
        reply = Reply(cast("Json", answer.structured_content))
        assert answer.is_error, reply.body
        assert reply["code"] == code.value, reply.body
        return reply

    async def run(self, tool: str, /, **arguments: object) -> Reply:
        """Call a tool that answers with a run, whose text is for reading; return its envelope."""
        return await self.watched(tool, arguments, None)

    async def watched(
        self, tool: str, arguments: dict[str, object], progress: ProgressFnT | None
    ) -> Reply:
        """Do the same, and be told of its progress."""
        answer = await self.client.call_tool(tool, arguments, progress_callback=progress)
        reply = Reply(cast("Json", answer.structured_content))
        assert not answer.is_error, reply.body
        told = [item.model_dump(by_alias=True, exclude_none=True) for item in answer.content]
        assert told == blocks(reply.body)
        return reply


@dataclass(frozen=True, slots=True)
class Space:
    """A workspace of one test's own, and a session to reach it. Calls name the workspace."""

    session: Session
    id: str
    root: Path

    async def call(self, tool: str, **arguments: object) -> Reply:
        """Call a tool in the workspace; it must answer with a result."""
        return await self.session.call(tool, workspace_id=self.id, **arguments)

    async def refused(self, code: ErrorCode, tool: str, /, **arguments: object) -> Reply:
        """Call a tool in the workspace; it must answer with an error of this code."""
        return await self.session.refused(code, tool, workspace_id=self.id, **arguments)

    async def script(self, code: str, **arguments: object) -> Reply:
        """Run a script in the workspace."""
        return await self.session.run("codemode", code=code, workspace_id=self.id, **arguments)

    async def patch(self, *lines: str, **arguments: object) -> Reply:
        """Apply a patch that must be applied or checked."""
        return await self.call("apply_patch", patch=v4a(*lines), **arguments)

    async def patch_refused(self, code: ErrorCode, *lines: str, **arguments: object) -> Reply:
        """Send a patch that must be refused."""
        return await self.refused(code, "apply_patch", patch=v4a(*lines), **arguments)

    async def start(self, *argv: str, **arguments: object) -> str:
        """Start a command and return its handle."""
        return (await self.call("exec_command", command=list(argv), **arguments)).text("process_id")

    async def start_shell(self, text: str, **arguments: object) -> str:
        """Start a shell text and return its handle."""
        return await self.start("sh", "-c", text, **arguments)

    async def ended(self, process_id: str) -> Reply:
        """Wait for the end of a process and return its state."""
        state = await self.session.call("process_status", process_id=process_id, wait_ms=30_000)
        assert state["state"] == "exited", state.body
        return state

    async def output(self, process_id: str) -> str:
        """Collect the whole output of a process, to its end."""
        text, cursor = "", 0
        while True:
            chunk = await self.session.call(
                "read_process", process_id=process_id, cursor=cursor, wait_ms=30_000
            )
            text, cursor = text + chunk.text("chunk"), chunk.number("cursor")
            if chunk["eof"]:
                return text

    async def until_said(self, process_id: str, wanted: str) -> None:
        """Wait until a process has written something, so that it is known to be where it says."""
        text, cursor = "", 0
        while wanted not in text:
            chunk = await self.session.call(
                "read_process", process_id=process_id, cursor=cursor, wait_ms=30_000
            )
            text, cursor = text + chunk.text("chunk"), chunk.number("cursor")
            assert wanted in text or not chunk["eof"], text

    def write(self, path: str, content: str | bytes = "") -> str:
        """Write a file below the root, as somebody else would."""
        file = self.root / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(content if isinstance(content, bytes) else content.encode())
        return path

    def text(self, path: str) -> str:
        """Return what stands in a file."""
        return (self.root / path).read_bytes().decode()

    def tree(self) -> dict[str, bytes | None]:
        """Return every file with its bytes, and every directory."""
        return tree(self.root)


@asynccontextmanager
async def held(
    connect: Callable[[], AbstractAsyncContextManager[Session]],
) -> AsyncGenerator[Session]:
    """Open a session in a task of its own, so that its end is no cancellation of the tests."""
    opened: asyncio.Future[Session] = asyncio.get_running_loop().create_future()
    leave = asyncio.Event()

    async def hold() -> None:
        async with connect() as session:
            opened.set_result(session)
            await leave.wait()

    holding = asyncio.create_task(hold())
    await asyncio.wait({holding, opened}, return_when=asyncio.FIRST_COMPLETED)
    if not opened.done():
        await holding
    try:
        yield await opened
    finally:
        leave.set()
        await holding


def v4a(*lines: str) -> str:
    """Return a patch of these lines."""
    return "\n".join(("*** Begin Patch", *lines, "*** End Patch", ""))


def tree(root: Path) -> dict[str, bytes | None]:
    """Return every file below a directory with its bytes, and every other entry as `None`."""
    return {
        str(path.relative_to(root)): path.read_bytes()
        if path.is_file() and not path.is_symlink()
        else None
        for path in sorted(root.rglob("*"))
    }


def require_one_body(answer: types.CallToolResult) -> None:
    """Hold an answer to section 2: one object, told twice unless it is large."""
    body = cast("object", answer.structured_content)
    assert isinstance(body, dict)
    assert len(answer.content) == 1
    item = answer.content[0]
    assert isinstance(item, types.TextContent)
    if len(item.text.encode()) > TEXT_MAX_BYTES or not item.text.startswith("{"):
        size = len(json.dumps(body, ensure_ascii=False, separators=(",", ":")).encode())
        assert size > TEXT_MAX_BYTES
        assert "\n" not in item.text
        assert len(item.text) < 200
    else:
        assert json.loads(item.text) == body
    if answer.is_error:
        require_error(cast("Json", body))


def require_error(body: Json) -> None:
    """Hold an error to its fields and the closed list of codes."""
    assert set(body) <= ERROR_FIELDS, body
    assert ErrorCode(str(body["code"])) is not ErrorCode.INTERNAL, body
    message = body["message"]
    assert isinstance(message, str)
    assert message.endswith("."), message
    assert "\n" not in message, message
