"""Two tools for scripts: one answers with its arguments, one takes its time."""

import asyncio
from typing import cast

from codespace.codemode import Effect, Tool

Json = dict[str, object]


async def echo(arguments: Json) -> object:
    return arguments


async def nap(arguments: Json) -> object:
    await asyncio.sleep(cast("float", arguments["ms"]) / 1000)
    return arguments["ms"]


ECHO, NAP = Tool("echo", echo, effect=Effect.READ), Tool("nap", nap, effect=Effect.READ)
