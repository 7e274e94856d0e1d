"""The gateway's token, with commands that look for it where no PID namespace hides the gateway."""

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from codespace.adapters.client import connect_stdio
from programs.running import new_token, python_for_all, setpriv_line

pytestmark = pytest.mark.anyio

TOKEN = "hunter2-0123456789-of-the-gateway"
WITH_KEEPER = """
from codespace.cli.app import main
from codespace.runner import sandbox
sandbox.find_launchers = lambda search_path=None: ()
main()
"""
"""The command line, on a machine without bubblewrap."""
LOOK = r"""
grep -l 'hunter[2]-0123' /proc/[0-9]*/environ /proc/[0-9]*/cmdline 2>/dev/null
gateway=$(awk '/^PPid/ {print $2}' /proc/$PPID/status)
tr '\0' ' ' </proc/$gateway/cmdline
tr '\0' ' ' </proc/$gateway/environ
"""
"""Says which processes show the token, and what the gateway does: a keeper is between the two."""


@pytest.fixture
def place() -> Iterator[Path]:
    """A directory that an ordinary user can reach and own."""
    directory = Path("/tmp") / f"codespace-tests-{new_token()}"
    directory.mkdir(mode=0o700)
    yield directory
    subprocess.run(["rm", "-rf", str(directory)], check=True)


@pytest.mark.parametrize("ordinary", [True, False], ids=["ordinary user", "whoever tests"])
async def test_no_command_finds_the_token_that_the_gateway_got_by_its_environment(
    place: Path, *, ordinary: bool
) -> None:
    line = [sys.executable]
    if ordinary:
        python = python_for_all()
        if python is None or setpriv_line() is None:
            pytest.skip("needs root, setpriv, and an interpreter that everybody can reach")
        os.chown(place, 65534, 65534)
        line = [*(setpriv_line() or []), python]
    environment = {
        "CODESPACE_HTTP_TOKEN": TOKEN,
        "PATH": "/usr/bin:/bin",
        "HOME": str(place),
        "PYTHONDONTWRITEBYTECODE": "1",
        "PYTHONPATH": os.pathsep.join(path for path in sys.path if path),
    }
    command = [*line, "-c", WITH_KEEPER, "serve", str(place)]
    async with connect_stdio(command, environment=environment) as connection:
        answer = await connection.call("bash", {"workspace_id": "default", "command": LOOK})
    output = str(answer.body["output"])
    assert f"serve {place}" in output, "the command did not find the gateway"
    assert "hunter" not in output
    assert not output.startswith("/proc/"), "a process shows it"
    # Nothing is hidden from root; there it is the variable alone that is gone.
    assert ("PYTHONDONTWRITEBYTECODE=1" in output) is (os.geteuid() == 0 and not ordinary)
