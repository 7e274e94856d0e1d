"""Real servers and sessions. One HTTP server a test process; each test takes a fresh workspace."""

from collections.abc import AsyncGenerator, Generator, Iterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, cast

import pytest

from codespace.adapters.client import Era, connect_http, connect_stdio
from contract.servers import Registered, Server, command, environment, serving, write_config
from contract.session import Session, Space

WORKSPACES = 500
READ_ONLY = "looking"
CONTAINER = "container"
CELLS: tuple[tuple[Literal["http", "stdio"], Era], ...] = (
    ("http", "2025-11-25"),
    ("http", "2026-07-28"),
    ("stdio", "2025-11-25"),
    ("stdio", "2026-07-28"),
)


@dataclass(frozen=True, slots=True)
class House:
    """The shared server, its directories, and which of its workspaces nobody used yet."""

    server: Server
    directory: Path
    ledger: Path
    unused: Iterator[str]

    def root(self, workspace_id: str) -> Path:
        """Return the directory of a workspace."""
        return self.directory / workspace_id

    def take(self) -> tuple[str, Path]:
        """Return a workspace that no other test has."""
        workspace_id = next(self.unused)
        return workspace_id, self.root(workspace_id)


@pytest.fixture(scope="session")
def house(tmp_path_factory: pytest.TempPathFactory) -> Generator[House]:
    base = tmp_path_factory.mktemp("house")
    directory = base / "workspaces"
    names = [f"w{number:03}" for number in range(WORKSPACES)]
    registered = special(directory)
    for name in names:
        (directory / name).mkdir()
        registered[name] = {"root": str(directory / name), "profile": "workspace-write"}
    ledger = base / "state" / "ledger.db"
    config = write_config(
        base / "codespace.json", registered, operations_db=str(ledger), log_level="INFO"
    )
    with serving(base / "stderr.txt", "--config", str(config)) as server:
        yield House(server, directory, ledger, iter(names))
        internal = [line for line in server.said().splitlines() if " ERROR " in line]
        assert internal == []


def special(directory: Path) -> dict[str, dict[str, str]]:
    """Make and describe a read-only workspace and one without a backend."""
    registered: dict[str, dict[str, str]] = {}
    for name, settings in {
        READ_ONLY: {"profile": "read-only"},
        CONTAINER: {"profile": "workspace-write", "environment": "linux-container"},
    }.items():
        root = directory / name
        root.mkdir(parents=True)
        (root / "kept.txt").write_text("kept\n", encoding="utf-8")
        registered[name] = {"root": str(root), **settings}
    return registered


@pytest.fixture
async def session(house: House) -> AsyncGenerator[Session]:
    async with connect_http(house.server.url) as connection:
        yield Session(connection.client)


@pytest.fixture
def space(house: House, session: Session) -> Space:
    return Space(session, *house.take())


@pytest.fixture
async def space_beside(house: House) -> AsyncGenerator[Space]:
    """Another workspace, reached by another client."""
    async with connect_http(house.server.url) as connection:
        yield Space(Session(connection.client), *house.take())


@pytest.fixture
def looking(house: House, session: Session) -> Space:
    return Space(session, READ_ONLY, house.root(READ_ONLY))


@pytest.fixture
def contained(house: House, session: Session) -> Space:
    return Space(session, CONTAINER, house.root(CONTAINER))


@dataclass(frozen=True, slots=True)
class Cell:
    """One transport and protocol revision: a way to connect, again and again, to one gateway."""

    transport: Literal["http", "stdio"]
    era: Era
    workspace_id: str
    root: Path
    config: Path | None
    url: str

    def connect(self) -> AbstractAsyncContextManager[Session]:
        """Open a session. Over stdio it is a gateway of its own, on the same ledger."""
        return self._http() if self.config is None else self._stdio(self.config)

    @asynccontextmanager
    async def _http(self) -> AsyncGenerator[Session]:
        async with connect_http(self.url, era=self.era) as connection:
            yield Session(connection.client)

    @asynccontextmanager
    async def _stdio(self, config: Path) -> AsyncGenerator[Session]:
        line = command("serve", "--config", str(config))
        async with connect_stdio(line, era=self.era, environment=environment()) as connection:
            yield Session(connection.client)


@pytest.fixture(params=CELLS, ids=lambda cell: "-".join(cast("tuple[str, str]", cell)))
def cell(request: pytest.FixtureRequest, house: House, tmp_path: Path) -> Cell:
    transport, era = cast("tuple[Literal['http', 'stdio'], Era]", request.param)
    if transport == "http":
        workspace_id, root = house.take()
        return Cell(transport, era, workspace_id, root, None, house.server.url)
    root = tmp_path / "workspaces" / "default"
    registered: Registered = {
        **special(root.parent),
        "default": {"root": str(root), "profile": "workspace-write"},
    }
    root.mkdir()
    config = write_config(
        tmp_path / "codespace.json", registered, operations_db=str(tmp_path / "ledger.db")
    )
    return Cell(transport, era, "default", root, config, "")


@pytest.fixture
async def cell_space(cell: Cell) -> AsyncGenerator[Space]:
    """A workspace over each transport and protocol revision in turn."""
    async with cell.connect() as session:
        yield Space(session, cell.workspace_id, cell.root)


@pytest.fixture
def config_file(tmp_path: Path) -> Path:
    """A configuration with one writable workspace, for servers of a test's own."""
    root = tmp_path / "root"
    root.mkdir()
    return write_config(
        tmp_path / "codespace.json", {"default": {"root": str(root), "profile": "workspace-write"}}
    )
