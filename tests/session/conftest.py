from __future__ import annotations

import secrets
from collections.abc import Iterator
from contextlib import nullcontext
from pathlib import Path

import pytest

from tests.conftest import IN_WASM
from tests.journal.conftest import server as server
from tests.journal.postgres import Server
from toolwire import WasmRunner
from toolwire.journal.store import Store
from toolwire.session.runs.resume import RunStore
from toolwire.testing import MemoryStore, programs_run_by


@pytest.fixture(autouse=True)
def runner_in_wasm() -> Iterator[None]:
    """Where tests run in WebAssembly, all programs do."""
    with programs_run_by(WasmRunner()) if IN_WASM else nullcontext():
        yield


@pytest.fixture(params=["memory", "sqlite", "postgresql"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[RunStore]:
    """Each kind of store; the one in memory is a fake that must behave like the real ones."""
    if request.param == "memory":
        yield MemoryStore()
        return
    if request.param == "sqlite":
        with Store.open(f"sqlite:///{tmp_path}/runs.db", key=bytes(32)) as opened:
            yield opened
        return
    postgres: Server = request.getfixturevalue("server")
    name = f"t{secrets.token_hex(6)}"
    postgres.create(name)
    with Store.open(postgres.url(name), key=bytes(32)) as opened:
        yield opened
    postgres.drop(name)
