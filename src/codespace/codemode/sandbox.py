"""Scripts over tools, for anybody with an event loop: no gateway is needed."""

import asyncio
import os
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Self, TypedDict, Unpack
from weakref import WeakKeyDictionary

from codespace.codemode.arguments import encoded_args
from codespace.codemode.loop_turn import LoopTurn
from codespace.codemode.machines import default_cache, machine, workers
from codespace.codemode.misuse import require, require_all, require_callable
from codespace.codemode.near import refuse_unknown
from codespace.codemode.orders import Order, SaveOutput, Surroundings
from codespace.codemode.outcome import Outcome, Progress
from codespace.codemode.run import Run
from codespace.codemode.store import MemoryStore, Store
from codespace.codemode.tool import Dispatch, Tool, call_directly
from codespace.codemode.toolset import Toolset
from codespace.codemode.vm import Entry
from codespace.domain.run_limits import LimitOptions, RunLimits


class RunOptions(TypedDict, total=False):
    """What can be said about one run.

    Attributes:
        args: the global `args`, a JSON value; an empty object when absent.
        timeout: seconds; the sandbox's limit when absent, and never more than that.
        max_output_chars: as the sandbox's `output_chars`, and never more than that.
        seed: of `Math.random`; a random one when absent.
        started_ms: what `Date` shows at first, Unix time in milliseconds; now when absent.
        progress: told when a call begins and when it ends.
        dispatch: the way that every call goes; the tool's own function when absent.
        on_step: told of each input of the VM, after it, before anything that it caused.
        run_id: for the outcome.
    """

    args: object
    timeout: float | None
    max_output_chars: int | None
    seed: int
    started_ms: float
    progress: Callable[[Progress], None] | None
    dispatch: Dispatch
    on_step: Callable[[Entry], None] | None
    run_id: str | None


class Sandbox:
    """Runs scripts that may call some tools, and nothing else.

    Runs share the store and the tools; no global and no changed prototype survives a run.

    Args:
        tools: what scripts may call.
        store: what `store` and `load` use; by default one that lives as long as the sandbox.
        instructions: what servers say about their tools as a whole, by namespace.
        save_output: keeps an output that has to be cut.
        cache: a private folder for the engine's machine code; None keeps none.
        limits: any of `RunLimits`, by name.

    Raises:
        TypeError: there is no limit of that name, or `tools` are none.
        ValueError: a limit is no positive integer, or two tools have one name.
    """

    def __init__(
        self,
        tools: Sequence[Tool] = (),
        *,
        store: Store | None = None,
        instructions: Mapping[str, str] | None = None,
        save_output: SaveOutput | None = None,
        cache: Path | None = None,
        **limits: Unpack[LimitOptions],
    ) -> None:
        refuse_unknown("limit", limits, LimitOptions.__annotations__)
        require_all(tools, Tool, what="tools must be a list of Tool values")
        self.limits = RunLimits(**limits)
        self._toolset = Toolset(tools, instructions=instructions)
        self._store = MemoryStore() if store is None else store
        self._save_output = save_output
        self._cache = default_cache() if cache is None else cache
        self._slots = WeakKeyDictionary[asyncio.AbstractEventLoop, asyncio.Semaphore]()
        self._around: Surroundings | None = None
        self._under_way: set[Run] = set()
        self._closed = False

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def close(self) -> None:
        """Cancel what runs, and take no more runs."""
        self._closed = True
        for run in self._under_way:
            run.cancel()

    def declarations(self, budget: int = 3_000) -> str:
        """Return the tools as TypeScript, in about `budget` tokens, for who writes the scripts."""
        return self._toolset.catalogue.text(budget)

    async def run(self, code: str, **options: Unpack[RunOptions]) -> Outcome:
        """Run a script to its end. Whatever it does is in the outcome.

        Raises:
            RuntimeError: the sandbox is closed.
            TypeError: there is no option of that name, or one is of another kind.
            ValueError: `args` is no JSON value, or a number is out of range.
        """
        run = await self.prepare(code, **options)
        self._under_way.add(run)  # also while it waits: `close` cancels it then
        try:
            async with self._slots_here():
                return await run.execute()
        finally:
            self._under_way.discard(run)

    async def prepare(self, code: str, **options: Unpack[RunOptions]) -> Run:
        """Return a run that has not begun, for who wants to be able to cancel it.

        Raises:
            RuntimeError: the sandbox is closed.
            TypeError: there is no option of that name, or one is of another kind.
            ValueError: `args` is no JSON value, or a number is out of range.
        """
        refuse_unknown("option", options, RunOptions.__annotations__)
        _require_kinds(code, options)
        order = self._order(code, options, await encoded_args(options.get("args")))
        self._require_open()
        if self._around is None:
            self._around = await self._surroundings()
            self._require_open()
        return Run(self._around, order)

    def _slots_here(self) -> asyncio.Semaphore:
        # A semaphore belongs to one event loop, and a sandbox may outlive its loop.
        loop = asyncio.get_running_loop()
        return self._slots.setdefault(loop, asyncio.Semaphore(self.limits.runs))

    def _require_open(self) -> None:
        if self._closed:
            raise RuntimeError("the sandbox is closed")

    async def _surroundings(self) -> Surroundings:
        return Surroundings(
            await asyncio.to_thread(machine, self._cache),
            self._toolset,
            self.limits,
            self._store,
            workers(),
            LoopTurn(),
            self._save_output,
        )

    def _order(self, code: str, options: RunOptions, args: bytes) -> Order:
        seconds = options.get("timeout")
        timeout_ms = self.limits.timeout_ms if seconds is None else seconds * 1000
        chars = options.get("max_output_chars") or self.limits.output_chars
        if not timeout_ms > 0 or chars < 1:  # a timeout that is NaN is not above zero
            raise ValueError("timeout and max_output_chars must be above zero")
        return Order(
            code=code,
            args=args,
            timeout_ms=min(timeout_ms, self.limits.timeout_ms),
            output_chars=min(chars, self.limits.output_chars),
            seed=options.get("seed", int.from_bytes(os.urandom(8))),
            started_ms=options.get("started_ms", time.time() * 1000),
            dispatch=options.get("dispatch", call_directly),
            progress=options.get("progress"),
            on_step=options.get("on_step"),
            run_id=options.get("run_id"),
        )


_KINDS: Mapping[str, tuple[type | tuple[type, ...], str]] = {
    "timeout": ((int, float), "a number of seconds"),
    "max_output_chars": (int, "a whole number"),
    "seed": (int, "a whole number"),
    "started_ms": ((int, float), "a number of milliseconds"),
    "run_id": (str, "text"),
}
_FUNCTIONS = ("progress", "dispatch", "on_step")


def _require_kinds(code: object, options: Mapping[str, object]) -> None:
    require(code, str, what="the script must be text")
    for name, (kinds, words) in _KINDS.items():
        if options.get(name) is not None:
            require(options[name], kinds, what=f"the option {name} must be {words}")
    for name in _FUNCTIONS:
        if options.get(name) is not None:
            require_callable(options[name], what=f"the option {name} must be a function")
