"""The settings as flags. Each is also in the configuration file and in the environment."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Literal

from cyclopts import Parameter

from codespace import logs
from codespace.settings import Loaded, load

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
    """What the operator can say on the command line."""

    config: Annotated[str | None, Parameter(help="JSON or TOML file with the settings.")] = None
    approvals_granted_by: Annotated[
        str | None, Parameter(help="Who grants held calls: `caller` or `operator`.")
    ] = None
    operations_db: Annotated[
        str | None, Parameter(help="File for the ledger; without it, nothing survives a restart.")
    ] = None
    http_host: Annotated[str | None, Parameter(help="Address to listen on.")] = None
    http_port: Annotated[int | None, Parameter(help="Port to listen on; 0 takes a free one.")] = (
        None
    )
    http_token_file: Annotated[
        str | None, Parameter(help="File that holds the bearer token; arguments are public.")
    ] = None
    http_allowed_hosts: Annotated[
        tuple[str, ...] | None, Parameter(help="More names by which clients reach the server.")
    ] = None
    http_allow_insecure_bind: Annotated[
        bool | None, Parameter(help="Insist on a public address without a token.", negative=())
    ] = None
    process_timeout_secs: Annotated[float | None, Parameter(help="Time limit of a command.")] = None
    max_processes: Annotated[int | None, Parameter(help="Live commands at once.")] = None
    runner: Annotated[str | None, Parameter(help="Where commands are supervised.")] = None
    process_environment_pass: Annotated[
        tuple[str, ...] | None, Parameter(help="Variables that commands get, by name.")
    ] = None
    log_level: Annotated[
        Literal["DEBUG", "INFO", "WARNING", "ERROR"] | None, Parameter(help="What goes to stderr.")
    ] = None

    def settings(self) -> Mapping[str, object]:
        """Return the settings that were given, by their keys."""
        return {
            "approvals_granted_by": self.approvals_granted_by,
            "operations_db": self.operations_db,
            "http_host": self.http_host,
            "http_port": self.http_port,
            "http_allowed_hosts": self.http_allowed_hosts,
            "http_allow_insecure_bind": self.http_allow_insecure_bind,
            "process_timeout_secs": self.process_timeout_secs,
            "max_processes": self.max_processes,
            "runner": self.runner,
            "process_environment_pass": self.process_environment_pass,
            "log_level": self.log_level,
        }


def load_settings(path: str | None, flags: Flags | None, *, serves: bool = True) -> Loaded:
    """Load the settings and set up logging; `serves` is as `load` has it.

    Raises:
        SettingsError: naming the key and what it takes.
    """
    flags = flags or Flags()
    loaded = load(
        path=path,
        config=flags.config,
        token_file=flags.http_token_file,
        flags=flags.settings(),
        serves=serves,
    )
    logs.configure(loaded.settings.log_level)
    return loaded
