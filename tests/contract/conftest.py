"""Real servers and sessions that a process shares; each test takes a fresh workspace."""

from collections.abc import AsyncGenerator, Generator
from contextlib import AsyncExitStack
from pathlib import Path
from typing import cast

import pytest

from codespace.adapters.client import Era
from codespace.cli.app import run
from contract.houses import CONTAINER, READ_ONLY, House, Transport, over_http, over_stdio
from contract.servers import RefusedStart, serving, write_config
from contract.session import Session, Space, held

BOTH_RUNNERS = {
    f"test_{name}"
    for name in ("bash", "process_ends", "process_input", "process_output", "processes")
}
"""The modules whose tests run against a gateway with a worker process, too."""

CELLS: tuple[tuple[Transport, Era], ...] = (
    ("http", "2025-11-25"),
    ("http", "2026-07-28"),
    ("stdio", "2025-11-25"),
    ("stdio", "2026-07-28"),
)


@pytest.fixture(scope="session")
def anyio_backend() -> str:
    """One loop for all tests, since sessions outlive a test."""
    return "asyncio"


@pytest.fixture(scope="session")
def house(tmp_path_factory: pytest.TempPathFactory) -> Generator[House]:
    """The shared HTTP server."""
    base = tmp_path_factory.mktemp("house")
    house = House.build(base, workspaces=500)
    with serving(base / "stderr.txt", "--config", str(house.config)) as server:
        yield house.at(server)
        assert server.process.poll() is None
        assert [line for line in server.said().splitlines() if " ERROR " in line] == []


@pytest.fixture(scope="session")
async def session(house: House) -> AsyncGenerator[Session]:
    """A client of the shared server, over HTTP in the baseline revision."""
    async with held(lambda: over_http(house.url, "2025-11-25")) as session:
        yield session


@pytest.fixture(scope="session")
def uds_house(tmp_path_factory: pytest.TempPathFactory) -> Generator[House]:
    """The shared HTTP server whose commands a worker process runs."""
    base = tmp_path_factory.mktemp("uds-house")
    house = House.build(base, workspaces=200)
    flags = ("--config", str(house.config), "--runner", "uds")
    with serving(base / "stderr.txt", *flags) as server:
        yield house.at(server)
        assert server.process.poll() is None
        assert [line for line in server.said().splitlines() if " ERROR " in line] == []


@pytest.fixture(scope="session")
async def uds_session(uds_house: House) -> AsyncGenerator[Session]:
    """A client of that server."""
    async with held(lambda: over_http(uds_house.url, "2025-11-25")) as session:
        yield session


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Let the tests of processes run against both runners."""
    if "home" in metafunc.fixturenames and metafunc.definition.path.stem in BOTH_RUNNERS:
        metafunc.parametrize("home", ["in-process", "uds"], indirect=True)


@pytest.fixture
def home(request: pytest.FixtureRequest) -> tuple[House, Session]:
    """The shared server of a kind of runner, and a client of it."""
    kind = "uds_" if getattr(request, "param", "in-process") == "uds" else ""
    house = cast("House", request.getfixturevalue(f"{kind}house"))
    return house, cast("Session", request.getfixturevalue(f"{kind}session"))


@pytest.fixture
def space(home: tuple[House, Session]) -> Space:
    house, session = home
    return Space(session, *house.take())


@pytest.fixture
def second_space(home: tuple[House, Session]) -> Space:
    house, session = home
    return Space(session, *house.take())


@pytest.fixture
async def second_session(house: House) -> AsyncGenerator[Session]:
    """Another client of the shared server, for one test alone."""
    async with over_http(house.url, "2025-11-25") as session:
        yield session


@pytest.fixture
def looking(house: House, session: Session) -> Space:
    """A workspace of profile read-only."""
    return Space(session, READ_ONLY, house.root(READ_ONLY))


@pytest.fixture
def contained(house: House, session: Session) -> Space:
    """A workspace of environment linux-container."""
    return Space(session, CONTAINER, house.root(CONTAINER))


@pytest.fixture(
    scope="session", params=CELLS, ids=lambda cell: "-".join(cast("tuple[str, str]", cell))
)
async def cell(
    request: pytest.FixtureRequest, house: House, tmp_path_factory: pytest.TempPathFactory
) -> AsyncGenerator[tuple[House, Session]]:
    """Each transport and protocol revision in turn."""
    transport, era = cast("tuple[Transport, Era]", request.param)
    async with AsyncExitStack() as stack:
        if transport == "http":
            connect = held(lambda: over_http(house.url, era))
            yield house, await stack.enter_async_context(connect)
            return
        own = House.build(tmp_path_factory.mktemp("stdio"), workspaces=100)
        connect = held(lambda: over_stdio(own.config, era))
        yield own, await stack.enter_async_context(connect)


@pytest.fixture
def cell_space(cell: tuple[House, Session]) -> Space:
    """A workspace over each transport and protocol revision in turn."""
    house, session = cell
    return Space(session, *house.take())


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """The root of the workspace `default` of `config`."""
    root = tmp_path / "root"
    root.mkdir()
    return root


@pytest.fixture
def config(tmp_path: Path, root: Path) -> Path:
    """A configuration with one writable workspace, for a server of a test's own."""
    return write_config(
        tmp_path / "codespace.json", {"default": {"root": str(root), "profile": "workspace-write"}}
    )


@pytest.fixture
def refused_start(capsys: pytest.CaptureFixture[str]) -> RefusedStart:
    """`codespace serve …` that ends with a refusal; in this process, since that is fast."""

    def refused(*arguments: str) -> str:
        capsys.readouterr()
        assert run(["serve", *arguments]) == 2
        told = capsys.readouterr()
        assert told.out == ""
        assert told.err.startswith("codespace: ")
        assert "Traceback" not in told.err
        return told.err

    return refused
