"""Every test of the store runs on SQLite and on PostgreSQL."""

from __future__ import annotations

import hashlib
import os
import secrets
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.journal.postgres import Server, running
from toolwire.journal.store import Store


@pytest.fixture(scope="session")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    base = tmp_path_factory.getbasetemp()
    # Workers have folders of their own below one that they share.
    shared = base.parent if "PYTEST_XDIST_WORKER" in os.environ else base
    # Not below it: pytest closes its folders to other users, and the server runs as another user.
    name = hashlib.sha256(str(shared).encode()).hexdigest()[:12]
    with running(Path(tempfile.gettempdir()) / f"toolwire-postgres-{name}", shared / "postgres.users") as found:
        yield found


@pytest.fixture(params=["sqlite", "postgresql"])
def url(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """The URL of an unused database."""
    monkeypatch.delenv("TOOLWIRE_KEY", raising=False)
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    if request.param == "sqlite":
        yield f"sqlite:///{tmp_path}/runs.db"
        return
    server: Server = request.getfixturevalue("server")
    name = f"t{secrets.token_hex(6)}"
    server.create(name, is_new="is_new" in request.fixturenames)
    yield server.url(name)
    server.drop(name)


@pytest.fixture
def is_new() -> None:
    """For a test whose database must not have its tables yet."""


@pytest.fixture
def opened(url: str) -> Iterator[Callable[[], Store]]:
    """Opens the store, as often as wanted."""
    stores: list[Store] = []

    def open_it() -> Store:
        stores.append(Store.open(url))
        return stores[-1]

    yield open_it
    for store in stores:
        store.close()


@pytest.fixture
def store(opened: Callable[[], Store]) -> Store:
    return opened()
