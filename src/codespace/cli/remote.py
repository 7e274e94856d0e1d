"""A gateway that runs elsewhere, in place of one for this command alone."""

from collections.abc import Awaitable, Callable, Mapping
from typing import TypeVar, cast
from urllib.parse import urlsplit

import anyio

from codespace import logs
from codespace.adapters.client import FAILURES, UNREACHED, Connection, TurnedAwayError, connect_http
from codespace.cli.flags import Elsewhere
from codespace.domain.tool import Json
from codespace.settings import SettingsError, read_token_file

MCP_PATH = "/mcp"

T = TypeVar("T")


def talk(elsewhere: Elsewhere, work: Callable[[Connection], Awaitable[T]]) -> T:
    """Connect to the gateway and return what `work` makes of it.

    Raises:
        SettingsError: there is none, or it does not let this client in.
    """
    logs.configure()
    url, token_file = elsewhere.url or "", elsewhere.token_file
    token = None if token_file is None else read_token_file(token_file)

    async def talking() -> T:
        async with connect_http(url, token=token) as connection:
            return await work(connection)

    try:
        return anyio.run(talking)
    except TurnedAwayError as error:
        advice = " Name a file with it: --token-file FILE." if error.wants_token else ""
        raise SettingsError(f"{url}: {error}{advice}") from None
    except FAILURES as error:
        there = "" if isinstance(error, UNREACHED) else _other_path(url)
        raise SettingsError(f"{url} does not answer as a gateway: {error}{there}") from None


def _other_path(url: str) -> str:
    parts = urlsplit(url)
    if parts.path.rstrip("/") == MCP_PATH:
        return ""
    return f" (did you mean {parts.scheme}://{parts.netloc}{MCP_PATH}?)"


async def workspace_ids(connection: Connection, schemas: Mapping[str, Json]) -> list[str]:
    """Return the ids of the gateway's workspaces; none, where it is no gateway of ours."""
    if "workspace_info" not in schemas:
        return []
    answer = await connection.call("workspace_info")
    listed = cast("list[Json]", answer.body.get("workspaces", []))
    return [str(each["workspace_id"]) for each in listed]
