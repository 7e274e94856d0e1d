"""A small MCP client: to try a gateway as any client would, from the command line and the tests."""

import json
import sys
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Literal, TextIO, cast

import httpx2
from mcp import Client, StdioServerParameters
from mcp.client.stdio import stdio_client
from mcp.client.streamable_http import streamable_http_client
from mcp.shared.exceptions import MCPError

from codespace.adapters.ungrouped import ungrouped
from codespace.domain.tool import Json

Era = Literal["2025-11-25", "2026-07-28"]
_MODES: Mapping[str, Literal["legacy", "2026-07-28"]] = {
    "2025-11-25": "legacy",
    "2026-07-28": "2026-07-28",
}
CALL_SECONDS = 60
_TURNED_AWAY = (401, 403, 421)


class TurnedAwayError(Exception):
    """The gateway's guard answered in place of a tool. The message is its sentence.

    Attributes:
        wants_token: whether it was the token that was missing or wrong.
    """

    def __init__(self, sentence: str, *, wants_token: bool) -> None:
        super().__init__(sentence)
        self.wants_token = wants_token


FAILURES = (httpx2.HTTPError, httpx2.InvalidURL, MCPError)
"""How talking to a gateway can fail, other than by a tool's error and by `TurnedAwayError`."""
UNREACHED = (httpx2.TransportError, httpx2.InvalidURL)
"""Of these failures, those in which nobody answered."""


@dataclass(frozen=True, slots=True)
class Answer:
    """A tool's answer: the structured content, and whether it is an error."""

    body: Json
    is_error: bool


@dataclass(frozen=True, slots=True)
class Connection:
    """An open connection to one gateway."""

    client: Client

    async def input_schemas(self) -> Mapping[str, Json]:
        """Return the input schema of each tool that the gateway lists."""
        listed = await self.client.list_tools()
        return {tool.name: cast("Json", tool.input_schema) for tool in listed.tools}

    async def call(self, tool: str, arguments: Json | None = None) -> Answer:
        """Call a tool.

        Raises:
            RuntimeError: the answer has no structured content, which no tool of ours ever does.
        """
        answer = await self.client.call_tool(tool, dict(arguments or {}))
        body = cast("object", answer.structured_content)
        if not isinstance(body, dict):
            raise RuntimeError(f"{tool} answered without structured content")  # noqa: TRY004 -- the server is at fault, not a type of ours
        return Answer(cast("Json", body), bool(answer.is_error))


@asynccontextmanager
async def connect_stdio(
    command: Sequence[str],
    *,
    era: Era = "2025-11-25",
    environment: Mapping[str, str] | None = None,
    errors: TextIO | None = None,
) -> AsyncGenerator[Connection]:
    """Start a gateway as a child and talk to it over its stdin and stdout."""
    parameters = StdioServerParameters(
        command=command[0],
        args=list(command[1:]),
        env=dict(environment) if environment is not None else None,
    )
    transport = stdio_client(parameters, errlog=errors or sys.stderr)
    async with ungrouped(
        Client(transport, mode=_MODES[era], read_timeout_seconds=CALL_SECONDS, cache=None)
    ) as client:
        yield Connection(client)


@asynccontextmanager
async def connect_http(
    url: str, *, era: Era = "2025-11-25", token: str | None = None
) -> AsyncGenerator[Connection]:
    """Talk to a running gateway over Streamable HTTP.

    Raises:
        TurnedAwayError: the gateway's guard does not let this client in.
    """
    headers = {} if token is None else {"Authorization": f"Bearer {token}"}
    refusals: list[TurnedAwayError] = []

    async def listen(response: httpx2.Response) -> None:
        # The SDK drops the body of such an answer, and with it all that it says.
        if response.status_code in _TURNED_AWAY:
            refusals.append(_refusal(response.status_code, await response.aread()))

    try:
        async with (
            httpx2.AsyncClient(
                headers=headers,
                timeout=CALL_SECONDS,
                trust_env=False,
                event_hooks={"response": [listen]},
            ) as http,
            ungrouped(
                Client(
                    streamable_http_client(url, http_client=http),
                    mode=_MODES[era],
                    read_timeout_seconds=CALL_SECONDS,
                    cache=None,
                )
            ) as client,
        ):
            yield Connection(client)
    except FAILURES as error:
        if refusals:
            raise refusals[-1] from error
        raise


def _refusal(status: int, body: bytes) -> TurnedAwayError:
    try:
        sentence = str(json.loads(body)["message"])
    except (ValueError, TypeError, KeyError):
        sentence = f"The server answered with HTTP status {status}."
    return TurnedAwayError(sentence, wants_token=status == 401)  # noqa: PLR2004 -- the status itself
