"""An MCP server of one tool, to try transports and clients without a gateway behind them."""

from mcp.server import Server

from codespace.adapters import mcp_server
from codespace.adapters.in_flight import InFlight
from codespace.domain.limits import Limits
from codespace.domain.tool import Call, Effect, Params, Result, define
from codespace.gateway.dispatch import Dispatcher
from codespace.gateway.toolbox import Toolbox


class Text(Params):
    """A text."""

    text: str = ""


class Said(Result):
    """What was said."""

    text: str


async def say(params: Text, call: Call) -> Said:
    """Say it."""
    return Said(text=params.text)


def echo_server() -> Server:
    """Return the server; its tool is `say`."""
    toolbox = Toolbox([define("say", Effect.READ, Text, Said, say, title="Say it")])
    return mcp_server.build(
        Dispatcher(toolbox, {}), version="1", limits=Limits(), in_flight=InFlight()
    )
