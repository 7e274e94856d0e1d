"""What every test shares: the event loop, and Hypothesis settings that fit a busy machine."""

import pytest
from hypothesis import HealthCheck, settings

settings.register_profile(
    "house", deadline=None, suppress_health_check=[HealthCheck.too_slow], print_blob=True
)
settings.load_profile("house")


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"
