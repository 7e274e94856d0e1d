"""The reference of the call figures: the SDK's low-level server and nothing else.

    python bare_server.py PAYLOAD.json            on stdio, with the SDK's own transport
    python bare_server.py PAYLOAD.json --port N   over Streamable HTTP, with uvicorn and h11

It has one tool, `read`, which answers the object in PAYLOAD.json as text and as structured content.
"""

import json
import sys
from pathlib import Path

import anyio
import mcp_types as types
import uvicorn
from mcp.server import Server, ServerRequestContext
from mcp.server.stdio import stdio_server

SCHEMA = {"type": "object", "properties": {"path": {"type": "string"}}, "required": ["path"]}
TOOL = types.Tool(name="read", input_schema=SCHEMA, output_schema={"type": "object"})
Context = ServerRequestContext[object, object]


def build(payload: dict[str, object]) -> Server:
    """Return a server whose only tool answers `payload`."""

    async def list_tools(
        _context: Context, _params: types.PaginatedRequestParams | None
    ) -> types.ListToolsResult:
        return types.ListToolsResult(tools=[TOOL])

    async def call_tool(
        _context: Context, _params: types.CallToolRequestParams
    ) -> types.CallToolResult:
        text = json.dumps(payload, ensure_ascii=False, separators=(",", ":"))
        content = types.TextContent(type="text", text=text)
        return types.CallToolResult(content=[content], structured_content=payload)

    return Server(
        "bare",
        on_list_tools=list_tools,
        on_call_tool=call_tool,
        get_tool_input_schema={"read": SCHEMA}.get,
    )


async def serve_stdio(server: Server) -> None:
    """Serve one client on stdin and stdout."""
    async with stdio_server() as (read, write):
        await server.run(read, write, server.create_initialization_options())


def main(arguments: list[str]) -> None:
    """Serve until the client leaves or a signal comes."""
    server = build(json.loads(Path(arguments[0]).read_text(encoding="utf-8")))
    if len(arguments) == 1:
        anyio.run(serve_stdio, server)
        return
    app = server.streamable_http_app()
    uvicorn.run(
        app, host="127.0.0.1", port=int(arguments[2]), http="h11", ws="none", log_level="error"
    )


if __name__ == "__main__":
    main(sys.argv[1:])
