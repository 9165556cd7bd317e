"""The surroundings that every test may rely on."""

from __future__ import annotations

import gc
import os
import signal
import sys
from collections.abc import Generator
from typing import Any

import pytest
from hypothesis import HealthCheck, settings

# A busy machine makes single examples slow; how long things may take is tested where it is a claim.
# `make fuzz` has more examples.
settings.register_profile("suite", deadline=None, max_examples=60, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("suite")


# A shell that starts the suite in the background ignores Ctrl-C for it, and every process of a test inherits that.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--whole", action="store_true", help="run only the proofs that have a short form, and run them whole"
    )


def pytest_collection() -> None:
    """Collected tests stay until the end, so a collection of garbage among them finds nothing: it doubles the time."""
    gc.disable()


IN_WASM = os.environ.get("TOOLWIRE_TESTS_RUNNER") == "wasm"
"""True in the runs of `tests/sandbox/wasm/test_in_wasm.py`, whose programs run in WebAssembly."""


IS_SHORT_RERUN = bool(os.environ.get("TOOLWIRE_TESTS_SOME"))
"""True where tests run once more: as another user, where namespaces are refused, in WebAssembly, on Python 3.13."""
CASES_IN_A_SHORT_RERUN = 3
"""Cases of each parametrised test there; `make soak` reruns all of them, `make
test-elsewhere` those of other interpreters. The suite itself runs all cases once, and a
place breaks a test as a whole. With all cases the reruns took twice the time."""


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    if IN_WASM:
        items[:] = [item for item in items if not item.get_closest_marker("of_processes")]
    if IS_SHORT_RERUN:
        items[:] = some_of_each(items)
    if config.getoption("whole"):
        items[:] = [item for item in items if "whole" in getattr(item, "fixturenames", ())]


def some_of_each(items: list[pytest.Item]) -> list[pytest.Item]:
    """At most `CASES_IN_A_SHORT_RERUN` cases of each test, spread over its table, in their order."""
    cases: dict[str, list[pytest.Item]] = {}
    for item in items:
        cases.setdefault(item.nodeid.partition("[")[0], []).append(item)
    return [item for table in cases.values() for item in table[:: -(-len(table) // CASES_IN_A_SHORT_RERUN)]]


def pytest_collection_finish() -> None:
    """Freezes the collected tests and the imported modules: otherwise each full collection goes through all of them,
    which takes a second of processor time."""
    gc.freeze()
    gc.enable()
    if "toolwire.journal.ledger.store_database" in sys.modules:
        from tests.journal.new_files import copy_first_schema

        copy_first_schema()


@pytest.hookimpl(wrapper=True)
def pytest_report_to_serializable() -> Generator[None, Any, Any]:
    """A worker sends its reports as UTF-8, and one failed test about a lone surrogate would end the whole run."""
    return encodable((yield))


def encodable(value: Any) -> Any:
    match value:
        case str():
            return value.encode("utf-8", "backslashreplace").decode()
        case dict():
            return {encodable(key): encodable(item) for key, item in value.items()}
        case list() | tuple():
            return type(value)(map(encodable, value))
        case _:
            return value


@pytest.fixture
def whole(request: pytest.FixtureRequest) -> bool:
    """True under `make soak`, which runs every case of a proof; the suite runs some of them."""
    return bool(request.config.getoption("whole"))


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"
