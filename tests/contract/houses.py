"""A gateway's directories and configuration with many workspaces, and the ways to reach it."""

from collections.abc import AsyncGenerator, Iterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal, Self

from codespace.adapters.client import Era, connect_http, connect_stdio
from contract.servers import Server, command, environment, write_config
from contract.session import Session

Transport = Literal["http", "stdio"]

READ_ONLY = "looking"
CONTAINER = "container"
_SPECIAL = {
    READ_ONLY: {"profile": "read-only"},
    CONTAINER: {"profile": "workspace-write", "environment": "linux-container"},
}


@dataclass(frozen=True, slots=True)
class House:
    """What a gateway serves, and which of its workspaces no test has used yet."""

    config: Path
    directory: Path
    ledger: Path
    unused: Iterator[str]
    server: Server | None = None

    @classmethod
    def build(cls, base: Path, *, workspaces: int) -> Self:
        """Make the directories and the configuration."""
        directory, ledger = base / "workspaces", base / "state" / "ledger.db"
        names = [f"w{number:03}" for number in range(workspaces)]
        registered: dict[str, dict[str, str]] = {}
        for name in (*_SPECIAL, *names):
            root = directory / name
            root.mkdir(parents=True)
            registered[name] = {"root": str(root), "profile": "workspace-write"}
        for name, settings in _SPECIAL.items():
            (directory / name / "kept.txt").write_text("kept\n", encoding="utf-8")
            registered[name].update(settings)
        config = write_config(
            base / "codespace.json", registered, operations_db=str(ledger), log_level="INFO"
        )
        return cls(config, directory, ledger, iter(names))

    def at(self, server: Server) -> Self:
        """Return the house with the server that it has over HTTP."""
        return replace(self, server=server)

    @property
    def running(self) -> Server:
        """The server."""
        assert self.server is not None
        return self.server

    @property
    def url(self) -> str:
        """Where the server answers."""
        return self.running.url

    def root(self, workspace_id: str) -> Path:
        """Return the directory of a workspace."""
        return self.directory / workspace_id

    def take(self) -> tuple[str, Path]:
        """Return a workspace that no other test has."""
        workspace_id = next(self.unused)
        return workspace_id, self.root(workspace_id)


@asynccontextmanager
async def over_http(url: str, era: Era = "2025-11-25") -> AsyncGenerator[Session]:
    """Open a session with a running server."""
    async with connect_http(url, era=era) as connection:
        yield Session(connection.client)


@asynccontextmanager
async def over_stdio(
    config: Path,
    era: Era = "2025-11-25",
    *arguments: str,
    variables: Mapping[str, str] | None = None,
) -> AsyncGenerator[Session]:
    """Start a gateway as a child, and open a session with it."""
    line = command("serve", "--config", str(config), *arguments)
    async with connect_stdio(line, era=era, environment=environment(variables)) as connection:
        yield Session(connection.client)
