"""File, environment and flags made into one frozen `Settings`. Refuses what it does not know.

The only reader of the environment. Flags win over the environment, the environment over the file.
"""

import os
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Literal, Self

from pydantic import ConfigDict, Field, ValidationError, field_validator, model_validator

from codespace.domain.approval import Resolver
from codespace.domain.attribute_docs import Described
from codespace.domain.errors import CodeSpaceError
from codespace.domain.ids import WorkspaceId
from codespace.domain.near import meant
from codespace.domain.run_limits import RunLimits
from codespace.domain.workspace import Approvals, Environment, Network, Profile
from codespace.operator_files import SettingsError, read_configuration, read_token_file
from codespace.policy.addresses import is_host, is_loopback
from codespace.policy.environment import DEFAULT_PATH, CommandEnvironment, select
from codespace.policy.separation import Ground, OwnFile, problems
from codespace.store.placement import identity, way

PREFIX = "CODESPACE_"
TOKEN_VARIABLE = f"{PREFIX}HTTP_TOKEN"
DEFAULT_WORKSPACE = "default"


class _Strict(Described):
    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)


class WorkspaceSettings(_Strict):
    """One directory that clients may select."""

    root: str
    """The directory, absolute. It may be a symlink; what is below it may not."""
    profile: Annotated[Profile, Field(strict=False)] = Profile.READ_ONLY
    """`read-only`, or `workspace-write` to permit patches and commands."""
    network: Annotated[Network, Field(strict=False)] = Network.RESTRICTED
    """`restricted` or `enabled`. `workspace_info` says whether anything enforces it."""
    approvals: Annotated[Approvals, Field(strict=False)] = Approvals.OFF
    """`off`, or `confirm`: patches and commands wait until somebody grants them."""
    approvals_granted_by: Annotated[Resolver | None, Field(strict=False)] = None
    """As the setting of the same name below has it, for this workspace."""
    environment: Annotated[Environment, Field(strict=False)] = Environment.HOST
    """`host`, or `linux-container`, for which every file and process tool is refused so far."""

    @field_validator("root")
    @classmethod
    def _is_a_directory(cls, root: str) -> str:
        if not Path(root).is_absolute():
            raise ValueError("takes an absolute path")
        if not Path(root).is_dir():
            raise ValueError("takes a directory that exists")
        return root


class Settings(_Strict):
    """Everything that the operator decides."""

    workspaces: dict[str, WorkspaceSettings] = Field(default_factory=dict, min_length=1)
    """The directories that clients may select, by the operator's own names."""
    approvals_granted_by: Annotated[Resolver, Field(strict=False)] = Resolver.CALLER
    """Who grants held calls: `caller`, the MCP client as well, or only the `operator`."""
    operations_db: str | None = Field(default=None, min_length=1)
    """A file for the ledger, in no workspace. Unset: in memory, and nothing survives a restart."""
    http_host: str = "127.0.0.1"
    """The address that HTTP listens on."""
    http_port: Annotated[int, Field(ge=0, le=65535)] = 8787
    """The port that HTTP listens on; 0 takes a free one."""
    http_token: str | None = Field(default=None, min_length=16, repr=False)
    """The bearer token that every HTTP route asks for."""
    http_allowed_hosts: tuple[str, ...] = ()
    """More names by which clients reach the server: `name` or `name:port`."""
    http_allow_insecure_bind: bool = False
    """Insist on a non-loopback address without a token."""
    process_timeout_secs: Annotated[float, Field(ge=0.001, le=86_400)] = 30
    """The time limit of a command, in seconds."""
    max_processes: Annotated[int, Field(ge=1, le=1_000)] = 8
    """How many commands may live at once, in all workspaces."""
    runner: Literal["in-process", "uds"] = "in-process"
    """Where commands are supervised: in the gateway itself, or in a worker process of its own."""
    codemode: RunLimits = RunLimits()
    """Limits of the scripts of `codemode`, by their names in the table below."""
    process_environment: dict[str, str] = Field(default_factory=dict, repr=False)
    """Variables that every command gets, with their values."""
    process_environment_pass: tuple[str, ...] = ()
    """Names of the gateway's own variables that every command gets."""
    log_level: Literal["DEBUG", "INFO", "WARNING", "ERROR"] = "WARNING"
    """How much goes to stderr."""

    @field_validator("http_allowed_hosts", "process_environment_pass", mode="before")
    @classmethod
    def _list_to_tuple(cls, value: object) -> object:
        return tuple(value) if isinstance(value, list) else value  # pyright: ignore[reportUnknownVariableType, reportUnknownArgumentType] -- its items are checked next

    @field_validator("codemode", mode="before")
    @classmethod
    def _are_integers(cls, value: object) -> object:
        # What is made into a dataclass is taken leniently else: "5" and true as numbers.
        if isinstance(value, dict) and any(type(most) is not int for most in value.values()):  # pyright: ignore[reportUnknownVariableType, reportUnknownArgumentType] -- its keys are checked next
            raise ValueError("takes limits by their names, each an integer from 1")
        return value  # pyright: ignore[reportUnknownVariableType] -- checked next

    @field_validator("http_token")
    @classmethod
    def _fits_a_header(cls, token: str | None) -> str | None:
        if token is not None and not re.fullmatch("[!-~]+", token):
            raise ValueError("takes ASCII characters without spaces, since it is sent in a header")
        return token

    @field_validator("http_allowed_hosts")
    @classmethod
    def _are_hosts(cls, hosts: tuple[str, ...]) -> tuple[str, ...]:
        if not all(map(is_host, hosts)):
            raise ValueError("takes names such as code.example.org or code.example.org:8443")
        return hosts

    @field_validator("workspaces")
    @classmethod
    def _names_are_plain(cls, value: dict[str, WorkspaceSettings]) -> dict[str, WorkspaceSettings]:
        for name in value:
            if not name or len(name) > 100 or not name.isprintable():  # noqa: PLR2004 -- named in the text
                raise ValueError("takes names of 1 to 100 printable characters")
        return value

    @model_validator(mode="after")
    def _bind_is_safe(self) -> Self:
        if (
            not is_loopback(self.http_host)
            and self.http_token is None
            and not self.http_allow_insecure_bind
        ):
            raise ValueError(
                "http_host is not a loopback address and there is no http_token: set a token,"
                " or insist with http_allow_insecure_bind"
            )
        return self


@dataclass(frozen=True, slots=True)
class Loaded:
    """Settings, and what commands get of the process's environment.

    `secret_files` are the operator's files that hold secrets.
    """

    settings: Settings
    environment: CommandEnvironment = field(repr=False)
    secret_files: tuple[str, ...] = field(default=(), compare=False)

    @property
    def workspace_ids(self) -> tuple[WorkspaceId, ...]:
        """The registered names."""
        return tuple(WorkspaceId(name) for name in self.settings.workspaces)


def load(
    *,
    path: str | None = None,
    config: str | None = None,
    token_file: str | None = None,
    flags: Mapping[str, object] | None = None,
    environ: Mapping[str, str] | None = None,
    serves: bool = True,
) -> Loaded:
    """Read the configuration.

    Args:
        path: zero configuration: this directory becomes the workspace `default`, with
            `workspace-write`. The current directory, when no workspaces are configured either.
        config: a JSON or TOML file; else `CODESPACE_CONFIG`.
        token_file: the file that holds `http_token`; wins over the environment and the file.
        flags: settings from the command line, by key; `None` values are left out.
        environ: the environment, for tests; the process's own by default.
        serves: refuse what clients could read or replace; there are none otherwise.

    Raises:
        SettingsError: naming the key and what it takes.
    """
    environ = os.environ if environ is None else environ  # noqa: TID251 -- the one reader
    config = config or environ.get(f"{PREFIX}CONFIG")
    values: dict[str, object] = read_configuration(config) if config else {}
    secrets = not {"http_token", "process_environment"}.isdisjoint(values)
    values.update(_from_environment(environ))
    if token_file is not None:
        values["http_token"] = read_token_file(token_file)
    values.update({key: value for key, value in (flags or {}).items() if value is not None})
    if path is not None and "workspaces" in values:
        raise SettingsError("PATH and the configuration's workspaces exclude each other; leave one")
    if "workspaces" not in values:
        root = str(Path(path or ".").absolute())
        if not Path(root).is_dir():
            raise SettingsError(f"PATH takes a directory that exists; {root!r} is not one")
        values["workspaces"] = {
            DEFAULT_WORKSPACE: {"root": root, "profile": Profile.WORKSPACE_WRITE.value}
        }
    try:
        settings = Settings.model_validate(values)
    except ValidationError as error:
        raise SettingsError(_explain(error)) from None
    named = {"configuration": config, "http_token_file": token_file}
    if serves:
        _require_separation(settings, named, secret_config=secrets)
    holders = (config if secrets else None, token_file)
    return Loaded(
        settings,
        _command_environment(settings, environ),
        tuple(file for file in holders if file is not None),
    )


def _require_separation(
    settings: Settings, named: Mapping[str, str | None], *, secret_config: bool
) -> None:
    grounds = [
        Ground(
            name,
            identity(workspace.root),
            way(workspace.root),
            writable=workspace.profile is Profile.WORKSPACE_WRITE,
        )
        for name, workspace in settings.workspaces.items()
    ]
    files = [
        OwnFile(key, path, way(path), secret=secret_config or key != "configuration")
        for key, path in {**named, "operations_db": settings.operations_db}.items()
        if path is not None
    ]
    if found := list(problems(grounds, files)):
        raise SettingsError("; ".join(found))


_NUMBERS = {"http_port": int, "process_timeout_secs": float, "max_processes": int}
_TEXTS = ("approvals_granted_by", "operations_db", "http_host", "http_token", "runner", "log_level")
_LISTS = ("http_allowed_hosts", "process_environment_pass")
_SWITCH = "http_allow_insecure_bind"
_SWITCHES = {"1": True, "true": True, "0": False, "false": False}
_FOREIGN = ("CODESPACE_NAME", "CODESPACE_VSCODE_FOLDER")
"""Set in every GitHub Codespace, and nothing of ours."""


def _from_environment(environ: Mapping[str, str]) -> dict[str, object]:
    """Translate CODESPACE_* variables; an unknown one is an error, not a shrug."""
    values: dict[str, object] = {}
    keys = (*_TEXTS, *_NUMBERS, *_LISTS, _SWITCH)
    for name, text in environ.items():
        if not name.startswith(PREFIX) or name == f"{PREFIX}CONFIG" or name in _FOREIGN:
            continue
        key = name.removeprefix(PREFIX).lower()
        if name != name.upper() or key not in keys:
            names = [PREFIX + known.upper() for known in ("config", *keys)]
            raise SettingsError(f"the variable {name} {_is_no_setting(name.upper(), names)}")
        # An empty variable is as good as none; but an empty token was meant to be one.
        if text or key == "http_token":
            values[key] = _from_text(name, key, text)
    return values


def _from_text(name: str, key: str, text: str) -> object:
    if key in _NUMBERS:
        try:
            return _NUMBERS[key](text)
        except ValueError:
            raise SettingsError(f"the variable {name} takes a number") from None
    if key in _LISTS:
        return tuple(part.strip() for part in text.split(",") if part.strip())
    if key == _SWITCH:
        if text.lower() not in _SWITCHES:
            raise SettingsError(f"the variable {name} takes true or false")
        return _SWITCHES[text.lower()]
    return text


_UNKNOWN = ("extra_forbidden", "unexpected_keyword_argument")


def _explain(error: ValidationError) -> str:
    return "; ".join(
        f"{'.'.join(map(str, item['loc'])) or 'the configuration'}: "
        + (_unknown(item["loc"]) if item["type"] in _UNKNOWN else item["msg"])
        for item in error.errors(include_url=False, include_input=False)
    ).replace("Value error, ", "")


def _unknown(place: tuple[int | str, ...]) -> str:
    if place[0] == "codemode":
        return _is_no_setting(str(place[-1]), RunLimits().options())
    model = Settings if len(place) == 1 else WorkspaceSettings
    return _is_no_setting(str(place[-1]), model.model_fields)


def _is_no_setting(word: str, known: Iterable[str]) -> str:
    return f"is not a setting{meant(word, known)}"


def _command_environment(settings: Settings, environ: Mapping[str, str]) -> CommandEnvironment:
    names = ("USER", "LOGNAME", "TZ")
    try:
        passed = select((*names, *settings.process_environment_pass), environ)
        return CommandEnvironment(
            home=environ.get("HOME", "/"),
            path=environ.get("PATH", DEFAULT_PATH),
            passed={**passed, **settings.process_environment},
        )
    except CodeSpaceError as error:
        raise SettingsError(f"process_environment: {error.message}") from None
