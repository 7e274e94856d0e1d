"""What a run is given: by its sandbox, and by whoever asked for it."""

from collections.abc import Awaitable, Callable
from typing import NamedTuple

from codespace.codemode.loop_turn import LoopTurn
from codespace.codemode.outcome import Progress
from codespace.codemode.store import Store
from codespace.codemode.tool import Dispatch
from codespace.codemode.toolset import Toolset
from codespace.codemode.vm import Entry
from codespace.codemode.wasm import Machine
from codespace.codemode.workers import Workers
from codespace.domain.run_limits import RunLimits

SaveOutput = Callable[[str], Awaitable[str | None]]
"""Keeps a whole output that has to be cut, and returns where a reader finds it, if it is kept."""


class Surroundings(NamedTuple):
    """What all runs of a sandbox share."""

    machine: Machine
    toolset: Toolset
    limits: RunLimits
    store: Store
    workers: Workers
    turn: LoopTurn
    save_output: SaveOutput | None


class Order(NamedTuple):
    """What one run is asked to do.

    Attributes:
        code: the script as it was sent.
        args: the global `args`, as JSON.
        timeout_ms: the time that it may take, before its own `@options`.
        output_chars: the output that is shown, before its own `@options`.
        seed: of `Math.random`.
        started_ms: what `Date` shows at first: Unix time.
        dispatch: the way that every call goes.
        progress: told when a call begins and when it ends.
        on_step: told of each input of the VM, after it, before anything that it caused.
        run_id: for the envelope.
    """

    code: str
    args: bytes
    timeout_ms: float
    output_chars: int
    seed: int
    started_ms: float
    dispatch: Dispatch
    progress: Callable[[Progress], None] | None
    on_step: Callable[[Entry], None] | None
    run_id: str | None
