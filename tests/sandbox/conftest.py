"""One sandbox for all tests of a process: they share its zygote, as users do.

With `TOOLWIRE_TESTS_RUNNER=wasm` it is the one in WebAssembly: `tests/sandbox/wasm/test_in_wasm.py` sets it.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.conftest import IN_WASM
from tests.sandbox.programs import Runner
from toolwire import WasmRunner
from toolwire.sandbox.host import Sandbox
from toolwire.sandbox.program import Program

SandboxHere = WasmRunner if IN_WASM else Sandbox
if IN_WASM:
    defaults = Program.__init__.__kwdefaults__
    assert defaults is not None
    defaults["min_isolation"] = "wasm"


@pytest.fixture(scope="session")
def shared_sandbox() -> Iterator[Sandbox]:
    with SandboxHere() as sandbox:
        yield sandbox


@pytest.fixture
def run(shared_sandbox: Sandbox) -> Runner:
    return Runner(shared_sandbox)


@pytest.fixture
def sandbox() -> Iterator[Sandbox]:
    """One of the test's own, for those that break it."""
    with SandboxHere() as own:
        yield own
