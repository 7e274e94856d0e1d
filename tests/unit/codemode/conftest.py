"""The sandbox that most tests of scripts use."""

from collections.abc import AsyncIterator

import pytest

from codespace.codemode import Sandbox
from doubles.script_tools import ECHO, NAP


@pytest.fixture
async def sandbox() -> AsyncIterator[Sandbox]:
    async with Sandbox([ECHO, NAP]) as made:
        yield made
