"""A script on a gateway that runs elsewhere: begun, waited for, and cancelled by a signal."""

import signal
import sys
from functools import partial
from typing import cast

import anyio
from anyio.abc import TaskStatus

from codespace.adapters.client import Answer, Connection
from codespace.adapters.ungrouped import ungrouped
from codespace.cli.flags import Elsewhere
from codespace.cli.remote import talk
from codespace.domain.tool import Json
from codespace.gateway.scripts import ScriptOrder
from codespace.settings import SettingsError

WAIT_MS = 2_000
"""A line of progress comes at most so often."""


def run_elsewhere(elsewhere: Elsewhere, order: ScriptOrder, workspace: str | None) -> Json:
    """Run a script there and return its envelope.

    Raises:
        SettingsError: there is no such gateway, or it refuses the script.
    """
    return talk(elsewhere, partial(_run, order=order, workspace=workspace))


async def _run(connection: Connection, *, order: ScriptOrder, workspace: str | None) -> Json:
    given = {
        "workspace_id": workspace,
        "run_key": order.run_key,
        "timeout_ms": order.timeout_ms,
        "max_output_chars": order.max_output_chars,
    }
    named = {name: value for name, value in given.items() if value is not None}
    arguments = {"code": order.code, "args": order.args, "wait_ms": 0, **named}
    interrupted = anyio.Event()
    async with ungrouped(anyio.create_task_group()) as tasks:
        # First of all: a run that nobody could cancel any more would go on there.
        await tasks.start(_listen, interrupted)
        try:
            envelope = _accepted(await connection.call("codemode", arguments))
            tasks.start_soon(_cancel, connection, envelope["run_id"], interrupted)
            return await _ended(connection, envelope)
        finally:
            tasks.cancel_scope.cancel()


async def _ended(connection: Connection, envelope: Json) -> Json:
    told = 0
    while envelope["status"] == "running":
        told = _tell(envelope, told)
        asked = {"run_id": envelope["run_id"], "wait_ms": WAIT_MS}
        envelope = _accepted(await connection.call("codemode_status", asked))
    _tell(envelope, told)
    return envelope


def _accepted(answer: Answer) -> Json:
    if answer.is_error:
        raise SettingsError(_refusal(answer.body))
    return answer.body


def _refusal(body: Json) -> str:
    message, details = str(body["message"]), cast("Json | None", body.get("details"))
    told = {
        name: value
        for name, value in (details or {}).items()
        if isinstance(value, str | int) and str(value) not in message
    }
    return message + (f" ({', '.join(f'{k}: {v}' for k, v in told.items())})" if told else "")


def _tell(envelope: Json, told: int) -> int:
    calls = cast("dict[str, int]", envelope["calls"])
    ended = sum(number for name, number in calls.items() if name != "total")
    if ended != told:
        line = f"{ended} done, {calls['failed']} failed, {calls['total'] - ended} to come"
        print(f"codespace: calls: {line}", file=sys.stderr, flush=True)
    return ended


async def _listen(
    interrupted: anyio.Event, *, task_status: TaskStatus[None] = anyio.TASK_STATUS_IGNORED
) -> None:
    with anyio.open_signal_receiver(signal.SIGINT, signal.SIGTERM) as signals:
        task_status.started()
        async for _ in signals:
            interrupted.set()


async def _cancel(connection: Connection, run_id: object, interrupted: anyio.Event) -> None:
    await interrupted.wait()
    await connection.call("codemode_cancel", {"run_id": run_id})
