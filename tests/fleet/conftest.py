"""A PostgreSQL database with the tables of the queue, and workers in processes of their own."""

from __future__ import annotations

import os
import secrets
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any

import psycopg
import pytest

from tests.fleet.workers import WorkerProcess
from tests.journal.conftest import server as server
from tests.journal.postgres import Server
from toolwire.fleet import ProcrastinateQueue
from toolwire.journal.store import Store

KEY = bytes(32)
EMPTY: Mapping[str, str] = MappingProxyType({})


@pytest.fixture
def bare_url(server: Server, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """The URL of a database without tables."""
    monkeypatch.setenv("TOOLWIRE_KEY", KEY.hex())
    name = f"t{secrets.token_hex(6)}"
    server.create(name, is_new=True)
    yield server.url(name)
    # Not given back: other tests want no tables of a queue.
    with psycopg.connect(f"host={server.folder} user=tests dbname=postgres", autocommit=True) as connection:
        connection.execute(f'DROP DATABASE "{name}" WITH (FORCE)')


@pytest.fixture
def url(bare_url: str) -> str:
    """The URL of a database whose queue has its tables."""
    ProcrastinateQueue().migrate(bare_url)
    return bare_url


@pytest.fixture
def queue() -> ProcrastinateQueue:
    return ProcrastinateQueue()


@pytest.fixture
def store(url: str, queue: ProcrastinateQueue) -> Iterator[Store]:
    with Store.open(url, queue=queue) as opened:
        yield opened


@pytest.fixture
def done_file(tmp_path: Path) -> Path:
    """The file to which the tools of `app.py` write what they did."""
    file = tmp_path / "done"
    file.touch()
    return file


@pytest.fixture
def start_worker(bare_url: str, done_file: Path, tmp_path: Path) -> Iterator[Callable[..., WorkerProcess]]:
    """Starts `toolwire worker` with these arguments. Each is killed at the end.

    `url` and `variables` of the environment, and the options of `WorkerProcess`, can be given too.
    """
    started: list[WorkerProcess] = []

    def start(
        *arguments: str, url: str = bare_url, variables: Mapping[str, str] = EMPTY, **options: Any
    ) -> WorkerProcess:
        environment = {**os.environ, "DONE_FILE": str(done_file), **variables}
        said = tmp_path / f"said{len(started)}"
        started.append(WorkerProcess(url, arguments, environment, said, **options))
        return started[-1]

    yield start
    for worker in started:
        worker.kill()
