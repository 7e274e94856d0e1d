"""`codespace run`: a script against the configured workspaces, with a view of what it does."""

import json
import signal
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, cast

import anyio
from cyclopts import Parameter
from cyclopts.validators import Number

from codespace.bootstrap import Gateway, open_gateway
from codespace.cli.flags import (
    CommandFlags,
    Directory,
    Elsewhere,
    Flags,
    goes_elsewhere,
    load_settings,
)
from codespace.cli.given_text import json_text_of
from codespace.cli.run_view import View, view_of
from codespace.codemode.outcome import Outcome, RunStatus
from codespace.codemode.reading import read_out
from codespace.domain.errors import CodeSpaceError
from codespace.domain.ids import RunKey, WorkspaceId
from codespace.domain.tool import Json
from codespace.domain.workspace import Workspace
from codespace.gateway.scripts import ScriptOrder
from codespace.settings import SettingsError


@Parameter(name="*")
@dataclass(frozen=True, slots=True)
class Given:
    """What a script is given."""

    arg: Annotated[
        tuple[str, ...],
        Parameter(help="One member of `args`, as NAME=TEXT; can be repeated.", negative=()),
    ] = ()
    args_json: Annotated[
        str | None,
        Parameter(
            help="All of `args` as JSON; - is stdin, @FILE a file.", allow_leading_hyphen=True
        ),
    ] = None


@Parameter(name="*")
@dataclass(frozen=True, slots=True)
class Choice:
    """Where a script belongs, and what it may take."""

    workspace: Annotated[
        str | None, Parameter(help="The workspace; the only registered one by default.")
    ] = None
    key: Annotated[
        str | None, Parameter(help="The run's key: the same key and script give the same run.")
    ] = None
    timeout_ms: Annotated[
        int | None,
        Parameter(
            help="Ends the run after this time; the operator's limit applies in any case.",
            validator=Number(gte=1),
        ),
    ] = None
    max_output_chars: Annotated[
        int | None,
        Parameter(
            help="Longer output is cut in the middle; the operator's limit applies in any case.",
            validator=Number(gte=1),
        ),
    ] = None


def run(
    file: Annotated[str, Parameter(help="The script; - is stdin.", allow_leading_hyphen=True)],
    /,
    *,
    given: Given | None = None,
    choice: Choice | None = None,
    json_output: Annotated[
        bool, Parameter(name="--json", help="Print JSON on a terminal, too.", negative=())
    ] = False,
    path: Directory = None,
    elsewhere: Elsewhere | None = None,
    flags: Flags | None = None,
    commands: CommandFlags | None = None,
) -> int:
    """Run a script that calls tools, and print what it returns.

    FILE holds the body of an async JavaScript function. On a terminal the result is
    printed to be read; else stdout is the run's envelope as JSON. Progress goes to stderr. Exit
    code 0 only when the script completed. With --url it runs there, in that gateway's limits.
    """
    given, choice = given or Given(), choice or Choice()
    there = goes_elsewhere(elsewhere, path, flags, commands)
    if file == "-" and given.args_json in ("-", "@-"):
        raise SettingsError("FILE and --args-json cannot both be stdin")
    order = _order(_source(file), _args(given.arg, given.args_json), choice)
    if there is not None:
        # A client takes a third of a second to import, and a run of this process needs none.
        from codespace.cli.run_remote import run_elsewhere  # noqa: PLC0415 -- see above

        return _print(run_elsewhere(there, order, choice.workspace), as_json=json_output)
    loaded = load_settings(path, flags, commands)

    async def local() -> int:
        async with open_gateway(loaded) as gateway:
            outcome = await _watched(gateway, _workspace(gateway, choice.workspace), order)
        return _print(outcome.to_json(), as_json=json_output)

    return anyio.run(local)


def _order(code: str, args: object, choice: Choice) -> ScriptOrder:
    return ScriptOrder(
        code,
        args,
        None if choice.key is None else RunKey(choice.key),
        choice.timeout_ms,
        choice.max_output_chars,
        whole_value=True,
    )


async def _watched(gateway: Gateway, workspace: Workspace, order: ScriptOrder) -> Outcome:
    scripts = gateway.scripts
    with view_of(sys.stderr) as view:
        try:
            record = scripts.start(workspace, order, watch=view.tell)
        except CodeSpaceError as error:
            raise SettingsError(error.message) from None
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(_refresh, view)
            tasks.start_soon(_until_interrupted, record.cancel)
            await record.ended.wait()
            tasks.cancel_scope.cancel()
    return await scripts.wait(record, 0)


async def _refresh(view: View) -> None:
    while True:
        view.refresh()
        await anyio.sleep(view.pause_seconds)


async def _until_interrupted(cancel: Callable[[], None]) -> None:
    with anyio.open_signal_receiver(signal.SIGINT, signal.SIGTERM) as signals:
        async for _ in signals:
            cancel()


def _print(envelope: Json, *, as_json: bool) -> int:
    # The run is over: what a terminal's encoding does not have is no reason to lose its outcome.
    encoding = sys.stdout.encoding
    if sys.stdout.isatty() and not as_json:
        print(read_out(envelope).encode(encoding, "backslashreplace").decode(encoding))
    else:
        plain = encoding.lower() != "utf-8"
        print(json.dumps(envelope, ensure_ascii=plain, indent=2))
    return 0 if envelope["status"] == RunStatus.COMPLETED else 1


def _workspace(gateway: Gateway, name: str | None) -> Workspace:
    known = gateway.workspaces
    if name is None and len(known) == 1:
        return next(iter(known.values()))
    chosen = None if name is None else known.get(WorkspaceId(name))
    if chosen is None:
        raise SettingsError(f"--workspace takes one of: {', '.join(sorted(known))}")
    return chosen


def _source(file: str) -> str:
    try:
        return sys.stdin.read() if file == "-" else Path(file).read_text(encoding="utf-8")
    except OSError as error:
        raise SettingsError(f"FILE {file!r} cannot be read: {error.strerror}") from None
    except UnicodeDecodeError:
        raise SettingsError(f"FILE {file!r} is not UTF-8 text") from None


def _args(pairs: Sequence[str], args_json: str | None) -> object:
    if args_json is not None and pairs:
        raise SettingsError("--arg and --args-json exclude each other; leave one")
    if args_json is not None:
        text = json_text_of("--args-json", args_json)
        try:
            parsed = cast("object", json.loads(text))
            json.dumps(parsed, allow_nan=False)  # Python's JSON has NaN
        except (ValueError, RecursionError) as error:
            raise SettingsError(f"--args-json takes JSON: {error}") from None
        return parsed
    return dict(map(_pair, pairs))


def _pair(given: str) -> tuple[str, str]:
    name, equals, value = given.partition("=")
    if not name or not equals:
        raise SettingsError(f"--arg takes NAME=TEXT, not {given!r}")
    return name, value
