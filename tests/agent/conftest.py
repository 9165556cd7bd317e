from __future__ import annotations

import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.journal.conftest import server as server
from tests.journal.postgres import Server
from toolwire import Store


@pytest.fixture(params=["sqlite", "postgresql"])
def url(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    """The URL of an unused database of each kind."""
    with unused_url(request, tmp_path) as found:
        yield found


@pytest.fixture(params=["sqlite", "postgresql"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Store]:
    """Each kind of store."""
    with unused_url(request, tmp_path) as found, Store.open(found, key=bytes(32)) as opened:
        yield opened


@pytest.fixture(params=["none", "sqlite", "postgresql"])
def agent_store(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Store | None]:
    """No store, and each kind of store."""
    if request.param == "none":
        yield None
        return
    with unused_url(request, tmp_path) as found, Store.open(found, key=bytes(32)) as opened:
        yield opened


@contextmanager
def unused_url(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    """Yields the URL of an unused database of the kind that the fixture's parameter names."""
    if request.param == "sqlite":
        yield f"sqlite:///{tmp_path}/runs.db"
        return
    postgres: Server = request.getfixturevalue("server")
    name = f"t{secrets.token_hex(6)}"
    postgres.create(name)
    yield postgres.url(name)
    postgres.drop(name)
