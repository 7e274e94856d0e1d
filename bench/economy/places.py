"""Where a workload runs: a gateway over stdio, or a sandbox over tools of another process."""

import json
import subprocess
import sys
import time
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Protocol, cast

import httpx2
from bill import Answer, Bill, Json
from mcp.shared.exceptions import MCPError
from references import environment

from codespace.adapters.client import Connection, connect_stdio
from codespace.codemode import Effect, Sandbox, Tool, ToolError

HERE = Path(__file__).resolve().parent


class Place(Protocol):
    """One fresh world, and the two ways to work in it."""

    async def call(self, tool: str, arguments: Json) -> Answer:
        """Call one tool, as an agent without scripts does."""
        ...

    async def script(self, code: str, args: Json) -> tuple[object, Bill]:
        """Run one script; return its value and what it cost."""
        ...


class GatewayPlace:
    """`codespace serve` over one directory."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    async def call(self, tool: str, arguments: Json) -> Answer:
        """Call one tool of the gateway."""
        answer = await self._connection.call(tool, {**arguments, "workspace_id": "default"})
        return Answer(answer.body, answer.is_error)

    async def script(self, code: str, args: Json) -> tuple[object, Bill]:
        """Call `codemode` once."""
        arguments: Json = {"code": code, "args": args}
        started = time.perf_counter()
        answer = await self._connection.call("codemode", arguments)
        return judged(answer.body, arguments, started)

    async def definitions(self) -> tuple[int, int]:
        """Return the characters of the definition of `codemode`, and of all other tools."""
        listed = (await self._connection.client.list_tools()).tools
        sizes = {tool.name: len(tool.model_dump_json(exclude_none=True)) for tool in listed}
        return sizes["codemode"], sum(sizes.values()) - sizes["codemode"]


class SandboxPlace:
    """A sandbox whose tools are those of another process: an MCP server, or an HTTP interface."""

    def __init__(self, sandbox: Sandbox, foreign: "Foreign") -> None:
        self._sandbox, self._foreign = sandbox, foreign

    async def call(self, tool: str, arguments: Json) -> Answer:
        """Call the other process directly."""
        return await self._foreign(tool, arguments)

    async def script(self, code: str, args: Json) -> tuple[object, Bill]:
        """Run one script in the sandbox."""
        started = time.perf_counter()
        outcome = await self._sandbox.run(code, args=dict(args))
        return judged(outcome.to_json(), {"code": code, "args": args}, started)


class Foreign(Protocol):
    """Calls a tool of another process."""

    async def __call__(self, tool: str, arguments: Json) -> Answer:
        """Return what the model would read."""
        ...


def judged(envelope: Json, arguments: Json, started: float) -> tuple[object, Bill]:
    """Return the value of a run that completed, and its bill: the whole envelope is read.

    Raises:
        RuntimeError: it did not complete.
    """
    bill = Bill(turns=1, seconds=time.perf_counter() - started)
    bill.add(arguments, envelope)
    if envelope["status"] != "completed":
        raise RuntimeError(f"the script failed: {json.dumps(envelope)[:2000]}")
    return envelope["value"], bill


@asynccontextmanager
async def gateway(root: Path) -> AsyncGenerator[GatewayPlace]:
    """Start a gateway over `root`; its first script, which loads the engine, does not count."""
    command = [sys.executable, "-m", "codespace", "serve", str(root)]
    async with logged(command, root.parent / "gateway.log") as connection:
        await connection.call("codemode", {"code": "return 0"})
        yield GatewayPlace(connection)


@asynccontextmanager
async def logged(command: Sequence[str], log: Path) -> AsyncGenerator[Connection]:
    """Connect to a server; show what it wrote to stderr only when something fails."""
    try:
        with log.open("w", encoding="utf-8") as file:
            async with connect_stdio(command, environment=environment(), errors=file) as connected:
                yield connected
    except Exception:
        print(log.read_text(encoding="utf-8")[-5000:], file=sys.stderr)
        raise


@asynccontextmanager
async def tracker(folder: Path, settings: Json) -> AsyncGenerator[SandboxPlace]:
    """Start the MCP server of issues and items."""
    command = [sys.executable, str(HERE / "tracker_server.py"), json.dumps(settings)]
    async with logged(command, folder / "tracker.log") as connection:
        listed = (await connection.client.list_tools()).tools
        tools = {each.name: (each.description or "", each.input_schema) for each in listed}

        async def foreign(tool: str, arguments: Json) -> Answer:
            try:
                answer = await connection.call(tool, arguments)
            except MCPError as error:
                return Answer({"code": "UPSTREAM_ERROR", "message": str(error)}, is_error=True)
            return Answer(answer.body, answer.is_error)

        async with sandbox(tools, foreign) as place:
            yield place


@asynccontextmanager
async def organisations(settings: Json) -> AsyncGenerator[SandboxPlace]:
    """Start the HTTP interface of organisations."""
    command = [sys.executable, str(HERE / "organisations_server.py"), json.dumps(settings)]
    child = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment())
    try:
        output = child.stdout
        port = int(output.readline()) if output is not None else 0
        address = f"http://127.0.0.1:{port}"
        async with httpx2.AsyncClient(base_url=address, trust_env=False) as http:

            async def foreign(tool: str, arguments: Json) -> Answer:
                path = "/organisations"
                if tool == "list_projects":
                    path += f"/{arguments['organisation']}/projects"
                response = await http.get(path)
                return Answer(response.json(), response.status_code != httpx2.codes.OK)

            name = {"type": "object", "properties": {"organisation": {"type": "string"}}}
            tools = {
                "list_organisations": ("The names of all organisations.", {"type": "object"}),
                "list_projects": (
                    "The projects of one organisation.",
                    {**name, "required": ["organisation"]},
                ),
            }
            async with sandbox(tools, foreign) as place:
                yield place
    finally:
        child.terminate()
        child.wait(timeout=10)


@asynccontextmanager
async def sandbox(
    tools: Mapping[str, tuple[str, Mapping[str, object]]], foreign: Foreign
) -> AsyncGenerator[SandboxPlace]:
    """Open a sandbox over tools of another process; its first script does not count."""

    def tool(name: str, description: str, schema: Mapping[str, object]) -> Tool:
        async def call(arguments: dict[str, object]) -> object:
            answer = await foreign(name, arguments)
            if answer.is_error:
                body = cast("Mapping[str, str]", answer.body)
                raise ToolError(body["code"], body["message"])
            return answer.body

        return Tool(name, call, description=description, input_schema=schema, effect=Effect.READ)

    made = [tool(name, *rest) for name, rest in tools.items()]
    async with Sandbox(made) as opened:
        await opened.run("return 0")
        yield SandboxPlace(opened, foreign)
