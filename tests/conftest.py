"""What every test may rely on."""

from __future__ import annotations

import signal

import pytest
from hypothesis import HealthCheck, settings

# A busy machine makes single examples slow; how long things may take is tested where it is a claim.
settings.register_profile("suite", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("suite")


# A shell that starts the suite in the background ignores Ctrl-C for it, and every process of a test inherits that.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"
