"""One sandbox for all tests of a process: they share its zygote, as users do."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.sandbox.programs import Runner
from toolwire.sandbox.host import Sandbox


@pytest.fixture(scope="session")
def shared_sandbox() -> Iterator[Sandbox]:
    with Sandbox() as sandbox:
        yield sandbox


@pytest.fixture
def run(shared_sandbox: Sandbox) -> Runner:
    return Runner(shared_sandbox)


@pytest.fixture
def sandbox() -> Iterator[Sandbox]:
    """One of the test's own, for those that break it."""
    with Sandbox() as own:
        yield own
