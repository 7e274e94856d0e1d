"""The settings as flags. Each is also in the configuration file and in the environment.

A command takes only the groups that do something for it.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, fields
from typing import Annotated, Literal

from cyclopts import Parameter

from codespace import logs
from codespace.settings import Loaded, SettingsError, load

Directory = Annotated[str | None, Parameter(help="Directory to serve as workspace `default`.")]


@Parameter(name="*")
@dataclass(frozen=True, slots=True)
class Elsewhere:
    """A running gateway, instead of one for this command alone."""

    url: Annotated[
        str | None, Parameter(help="A running gateway, instead of one for this command alone.")
    ] = None
    token_file: Annotated[str | None, Parameter(help="File with that gateway's token.")] = None


@Parameter(name="*")
@dataclass(frozen=True, slots=True)
class Flags:
    """What the operator can say to every command."""

    config: Annotated[str | None, Parameter(help="JSON or TOML file with the settings.")] = None
    approvals_granted_by: Annotated[
        str | None, Parameter(help="Who grants held calls: `caller` or `operator`.")
    ] = None
    operations_db: Annotated[
        str | None, Parameter(help="File for the ledger; without it, nothing survives a restart.")
    ] = None
    log_level: Annotated[
        Literal["DEBUG", "INFO", "WARNING", "ERROR"] | None, Parameter(help="What goes to stderr.")
    ] = None


@Parameter(name="*")
@dataclass(frozen=True, slots=True)
class CommandFlags:
    """What can be said where tools are called."""

    process_timeout_secs: Annotated[float | None, Parameter(help="Time limit of a command.")] = None
    max_processes: Annotated[int | None, Parameter(help="Live commands at once.")] = None
    process_environment_pass: Annotated[
        tuple[str, ...] | None,
        Parameter(help="Variables that commands get, by name.", negative=()),
    ] = None


@Parameter(name="*")
@dataclass(frozen=True, slots=True)
class ServerFlags:
    """What can be said of a server."""

    http_host: Annotated[str | None, Parameter(help="Address to listen on.")] = None
    http_port: Annotated[int | None, Parameter(help="Port to listen on; 0 takes a free one.")] = (
        None
    )
    http_token_file: Annotated[
        str | None, Parameter(help="File that holds the bearer token; arguments are public.")
    ] = None
    http_allowed_hosts: Annotated[
        tuple[str, ...] | None,
        Parameter(help="More names by which clients reach the server.", negative=()),
    ] = None
    http_allow_insecure_bind: Annotated[
        bool | None, Parameter(help="Insist on a public address without a token.", negative=())
    ] = None
    runner: Annotated[
        str | None, Parameter(help="Where commands are supervised: in-process or uds.")
    ] = None


Group = Flags | CommandFlags | ServerFlags


def load_settings(path: str | None, *groups: Group | None, serves: bool = True) -> Loaded:
    """Load the settings and set up logging; `serves` is as `load` has it.

    Raises:
        SettingsError: naming the key and what it takes.
    """
    given = dict(_given(groups))
    loaded = load(
        path=path,
        config=_text(given.pop("config", None)),
        token_file=_text(given.pop("http_token_file", None)),
        flags=given,
        serves=serves,
    )
    logs.configure(loaded.settings.log_level)
    return loaded


def goes_elsewhere(
    elsewhere: Elsewhere | None, path: str | None, *groups: Group | None
) -> Elsewhere | None:
    """Return the running gateway that was named, if one was.

    Raises:
        SettingsError: something was said that would do nothing there, or here.
    """
    named = dict(_given([elsewhere]))
    if "url" not in named:
        if named:
            raise SettingsError("--token-file belongs to --url; give both")
        return None
    local = {**({} if path is None else {"path": path}), **dict(_given(groups))}
    if local:
        flags = ", ".join(f"--{name.replace('_', '-')}" for name in local)
        raise SettingsError(f"--url excludes {flags}: that gateway has settings of its own")
    return elsewhere


def _given(groups: Iterable[Group | Elsewhere | None]) -> Iterator[tuple[str, object]]:
    for group in groups:
        for field in () if group is None else fields(group):
            value: object = getattr(group, field.name)
            if value is not None:
                yield field.name, value


def _text(value: object) -> str | None:
    return None if value is None else str(value)
