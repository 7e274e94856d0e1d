"""What every test shares: the event loop, and Hypothesis settings that fit a busy machine."""

import pytest
from hypothesis import HealthCheck, settings

from codespace.runner.local import LocalRunner
from codespace.runner.uds import UdsRunner

settings.register_profile(
    "house", deadline=None, suppress_health_check=[HealthCheck.too_slow], print_blob=True
)
settings.load_profile("house")


@pytest.fixture(params=[LocalRunner, UdsRunner], ids=["in_process", "in_worker"])
def backend(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let `programs.running.commands` open each kind of runner in turn."""
    monkeypatch.setattr("programs.running.RUNNER", request.param)


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"
