"""Drives quickjs-rs: a runtime and a context for each script."""

import asyncio
import os
import sys
from typing import cast

import meter
import quickjs_rs

PRELUDE = "globalThis.tools = {tool, real, mb, objs, never};"


class Peer:
    """The engine with the tools of the scripts."""

    def __init__(self, result: object) -> None:
        self.waiting: list[object] = []
        self._result, self._rows, self._text = result, meter.rows(), meter.text()
        self._kept: list[object] = []

    def context(self, runtime: quickjs_rs.Runtime, seconds: float) -> quickjs_rs.Context:
        """Return a context that can call the tools."""
        context = runtime.new_context(timeout=seconds)

        async def tool(given: dict[str, object]) -> object:
            return {"a": given["a"]}

        async def real(given: object) -> object:
            return self._result

        async def mb(given: object) -> object:
            return self._text

        async def objs(given: object) -> object:
            return self._rows

        async def never(given: object) -> object:
            self.waiting.append(given)
            await asyncio.Event().wait()
            return None

        for function in (tool, real, mb, objs, never):
            context.function(function)
        return context

    async def run(self, script: str, seconds: float = meter.LIMIT_SECONDS) -> object:
        """Run one script in a VM of its own."""
        with quickjs_rs.Runtime() as runtime, self.context(runtime, seconds) as context:
            return cast("object", await context.eval_async(wrapped(script)))

    async def suspend(self) -> object:
        """Run a script that waits for ever."""
        runtime = quickjs_rs.Runtime()
        context = self.context(runtime, meter.LIMIT_SECONDS)
        self._kept.append((runtime, context))
        return cast("object", await context.eval_async(wrapped("await tools.never({})")))


def wrapped(script: str) -> str:
    """Return the script as the body of an async function."""
    return f"{PRELUDE} await (async () => {{ {script} \n}})()"


async def first() -> None:
    """Run one script in a fresh process."""
    with quickjs_rs.Runtime() as runtime, runtime.new_context() as context:
        print(await context.eval_async("await (async () => { return 1+2 })()"), flush=True)


async def measure() -> None:
    """Print all measures."""
    given = meter.given()
    scripts = {name: text for name, text in given.items() if isinstance(text, str)}
    peer = Peer(given["result"])
    await meter.timed(peer.run, scripts, "return 1+2")
    await meter.spun(lambda script: peer.run(script, meter.SPIN_SECONDS), "while (true) {}")
    await meter.told("recursion", peer.run, scripts["rec"])
    await meter.told("deadlock", peer.run, "await new Promise(() => {})")
    await meter.suspended(peer.suspend, peer.waiting)


asyncio.run(first() if "first" in sys.argv[1:] else measure())
os._exit(0)
