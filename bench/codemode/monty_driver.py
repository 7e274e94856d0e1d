"""Drives Monty, which runs a dialect of Python in worker processes.

`pool`: one pool for all scripts. `alone`: a pool for each script, as an agent that runs one now
and then would have.
"""

import asyncio
import os
import sys
from typing import cast

import meter
import pydantic_monty

NOTHING = "1+2"
LIMITS = pydantic_monty.ResourceLimits(
    max_feed_duration_secs=float(meter.LIMIT_SECONDS), max_suspensions=10**6
)
SHORT = pydantic_monty.ResourceLimits(
    max_feed_duration_secs=meter.SPIN_SECONDS, max_suspensions=10**6
)
PROCESSES = meter.SUSPENDED + 2


class Peer:
    """The engine with the tools of the scripts."""

    def __init__(self, result: object, pool: pydantic_monty.AsyncMonty | None) -> None:
        self.waiting: list[object] = []
        self._result, self._rows, self._text = result, meter.rows(), meter.text()
        self._pool = pool

    async def run(self, script: str, limits: pydantic_monty.ResourceLimits = LIMITS) -> object:
        """Run one script in a session of its own."""
        if self._pool is not None:
            return await self._feed(self._pool, script, limits)
        async with pydantic_monty.AsyncMonty() as pool:
            return await self._feed(pool, script, limits)

    async def _feed(
        self, pool: pydantic_monty.AsyncMonty, script: str, limits: pydantic_monty.ResourceLimits
    ) -> object:
        functions = {
            "tool": self.tool,
            "real": self.real,
            "mb": self.mb,
            "objs": self.objs,
            "never": self.never,
        }
        async with pool.checkout(limits=limits) as session:
            return cast("object", await session.feed_run(script, external_lookup=functions))

    async def tool(self, number: int) -> object:
        return {"a": number}

    async def real(self, query: object) -> object:
        return self._result

    async def mb(self) -> object:
        return self._text

    async def objs(self) -> object:
        return self._rows

    async def never(self) -> object:
        self.waiting.append(None)
        await asyncio.Event().wait()
        return None


async def measure(peer: Peer) -> None:
    """Print all measures."""
    scripts = cast("dict[str, str]", meter.given()["py"])
    await meter.timed(peer.run, scripts, NOTHING)
    await meter.spun(lambda script: peer.run(script, SHORT), "while True:\n    pass\n")
    await meter.told("recursion", peer.run, scripts["rec"])
    await meter.suspended(lambda: peer.run("await never()"), peer.waiting)


async def main() -> None:
    """Open a pool if one is asked for; run the first script, or everything."""
    result = meter.given()["result"]
    if "pool" in sys.argv[1:]:
        async with pydantic_monty.AsyncMonty(max_processes=PROCESSES) as pool:
            await driven(Peer(result, pool))
    else:
        await driven(Peer(result, None))


async def driven(peer: Peer) -> None:
    """Run the first script only, or everything; then end without cleaning up."""
    if "first" in sys.argv[1:]:
        print(await peer.run(NOTHING), flush=True)
    else:
        await measure(peer)
    os._exit(0)


asyncio.run(main())
