"""What every test may rely on."""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, settings

# A busy machine makes single examples slow; how long things may take is tested where it is a claim.
settings.register_profile("suite", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("suite")


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"
