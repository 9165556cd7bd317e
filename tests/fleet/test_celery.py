"""Celery with a real Redis drives runs by the files of docs/fleet_engines.md. Its sweep finds all that Redis loses."""

from __future__ import annotations

import os
import shlex
import shutil
import signal
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from celery import Celery
from redis import Redis
from redis.exceptions import ConnectionError as RedisGone

from tests.documents.pages import files_of, text_of
from tests.patience import PATIENCE_S, until
from toolwire import Session, Store, tool

PAGE = "docs/fleet_engines.md"
SERVER = shutil.which("redis-server")
pytestmark = [
    pytest.mark.skipif(SERVER is None, reason="redis-server is missing: apt-get install redis-server"),
    # Celery and its parts warn of what Python will not have some day.
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),
]

PLACES = 2
RUNS = 16
"""More than the worker runs and reserves, which is 5 for each place: so some of their jobs are in Redis alone."""
APP = '''
import os
import time

from toolwire import Session, tool


@tool(idempotent="natural")
def note(name: str) -> str:
    """Notes a name once the gate is open."""
    while not os.path.exists("gate"):
        time.sleep(0.02)
    with open("done", "a") as file:
        file.write(f"{name}\\n")
    return name


def session_for(run, store):
    return Session([note], protocol=run.protocol, store=store, caller=run.caller, conversation=run.conversation)
'''


@tool
def note(name: str) -> str:
    """Notes a name."""
    raise AssertionError("only the worker runs it")


class Broker:
    """A Redis that keeps nothing on disk."""

    def __init__(self, folder: Path) -> None:
        with socket.create_server(("127.0.0.1", 0)) as free:
            self._port = free.getsockname()[1]
        self._folder = folder
        self.url = f"redis://127.0.0.1:{self._port}/0"
        self._client = Redis.from_url(self.url)
        self.start()

    def start(self) -> None:
        """Starts it without any job."""
        words = [SERVER or "", "--port", str(self._port), "--bind", "127.0.0.1", "--save", "", "--dir", self._folder]
        self._process = subprocess.Popen(words, stdout=subprocess.DEVNULL)
        until(self._answers)

    def jobs(self) -> int:
        """The number of jobs that no worker has taken."""
        return int(self._client.llen("celery"))  # pyright: ignore[reportArgumentType]

    def kill(self) -> None:
        """Kills it with all its jobs."""
        self._process.kill()
        self._process.wait(PATIENCE_S)

    def close(self) -> None:
        self.kill()
        self._client.close()

    def _answers(self) -> bool:
        try:
            return bool(self._client.ping())
        except RedisGone:
            return False


@pytest.fixture
def broker(tmp_path: Path) -> Iterator[Broker]:
    made = Broker(tmp_path)
    yield made
    made.close()


@pytest.fixture
def store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Store]:
    monkeypatch.setenv("TOOLWIRE_KEY", bytes(32).hex())
    with Store.open(f"sqlite:///{tmp_path}/runs.db") as opened:
        yield opened


@pytest.fixture
def start(tmp_path: Path, broker: Broker, store: Store) -> Iterator[Callable[[str], subprocess.Popen[bytes]]]:
    """Starts the command of the page that begins with these words, among the files of the page."""
    for name, text in {**files_of(PAGE), "app.py": APP}.items():
        # A shorter pause between sweeps makes a shorter test.
        (tmp_path / name).write_text(text.replace("SWEEP_S = 5.0", "SWEEP_S = 1.0"))
    environment = {
        **os.environ,
        "BROKER": broker.url,
        "STORE_URL": store.url,
        "PYTHONPATH": os.pathsep.join([str(tmp_path), *filter(None, sys.path)]),
    }
    started: list[subprocess.Popen[bytes]] = []

    def start_one(command: str) -> subprocess.Popen[bytes]:
        (line,) = [line for line in text_of(PAGE).splitlines() if line.startswith(command)]
        words = shlex.split(line.replace("--concurrency 8", f"--concurrency {PLACES}"))
        with (tmp_path / "said").open("ab") as said:
            process = subprocess.Popen(
                [sys.executable, "-m", *words],
                cwd=tmp_path,
                env=environment,
                stdout=said,
                stderr=said,
                start_new_session=True,
            )
        started.append(process)
        return process

    yield start_one
    for process in started:
        # Its children too.
        os.killpg(process.pid, signal.SIGKILL)
        process.wait(PATIENCE_S)


@pytest.fixture
def celery(broker: Broker) -> Iterator[Celery]:
    with Celery("test", broker=broker.url) as app:
        yield app


def submit(store: Store, celery: Celery, count: int) -> None:
    """Submits runs as the page says."""
    for number in range(count):
        session = Session([note], protocol="xml", store=store)
        reply = f"<tool_call><name>note</name><params><name>{number}</name></params></tool_call>"
        celery.send_task("celery_runs.go_on", (session.run_submit(reply),))


def is_idle(celery: Celery) -> bool:
    """True if the worker is connected, and has no job."""
    inspect = celery.control.inspect(timeout=0.5)
    there = [inspect.active(), inspect.reserved()]
    return all(each is not None and [*each.values()] == [[]] for each in there)


def unfinished(store: Store) -> int:
    """The number of runs that have not ended, in one read."""
    return sum(run.status != "finished" for run in store.runs())


def test_the_sweep_finds_the_runs_whose_jobs_redis_lost(
    tmp_path: Path,
    broker: Broker,
    store: Store,
    celery: Celery,
    start: Callable[[str], subprocess.Popen[bytes]],
) -> None:
    gate, done = tmp_path / "gate", tmp_path / "done"
    start("celery -A celery_runs worker")
    gate.touch()
    submit(store, celery, 3)
    until(lambda: unfinished(store) == 0)

    gate.unlink()
    submit(store, celery, RUNS)
    until(lambda: broker.jobs() == RUNS - PLACES * 5)
    broker.kill()
    broker.start()
    gate.touch()
    until(lambda: is_idle(celery))
    # The control: nothing else brings them back.
    assert broker.jobs() == 0
    assert unfinished(store) >= RUNS - PLACES * 5

    start("celery -A celery_runs beat")
    until(lambda: unfinished(store) == 0)
    assert sorted(done.read_text().split()) == sorted([*map(str, range(3)), *map(str, range(RUNS))])
