"""A network that hangs, a thread that does not start: a store that cannot be used says so within a limit."""

from __future__ import annotations

import asyncio
import math
import secrets
import select
import socket
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.journal.ledger.test_run_ledger import kind
from tests.journal.postgres import Server
from tests.journal.world import PAID, done, run_start, start, started, step
from tests.patience import PATIENCE_S
from tests.session.till import calls
from toolwire import Session
from toolwire.journal.database import engine, work
from toolwire.journal.store import Store
from toolwire.vocabulary.errors import StoreUnavailable

SILENCE_S = 0.5


class Network:
    """Forwards TCP connections to a server's socket, until it hangs: then every connection stays open and silent."""

    def __init__(self, target: Path) -> None:
        self._target = str(target)
        self._flows = threading.Event()
        self._flows.set()
        self._is_over = False
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._listener.getsockname()[1]
        self._thread = threading.Thread(target=self._serve, daemon=True)
        self._thread.start()

    def hang(self) -> None:
        self._flows.clear()

    def flow(self) -> None:
        self._flows.set()

    def close(self) -> None:
        self._is_over = True
        self.flow()
        self._thread.join(PATIENCE_S)

    def _serve(self) -> None:
        ends: dict[socket.socket, socket.socket] = {}
        with closing(self._listener):
            while not self._is_over:
                self._flows.wait()
                for ready in select.select([self._listener, *ends], [], [], 0.01)[0]:
                    if not self._flows.is_set():
                        break
                    if ready is self._listener:
                        here, there = ready.accept()[0], socket.socket(socket.AF_UNIX)
                        there.connect(self._target)
                        ends |= {here: there, there: here}
                    elif ready in ends:
                        self._forward(ready, ends)
        for end in ends:
            end.close()

    def _forward(self, ready: socket.socket, ends: dict[socket.socket, socket.socket]) -> None:
        other = ends[ready]
        try:
            data = ready.recv(65_536)
            other.sendall(data)
        except OSError:
            data = b""
        if not data:
            for end in (ready, other):
                del ends[end]
                end.close()


@pytest.fixture
def network(server: Server, monkeypatch: pytest.MonkeyPatch) -> Iterator[Network]:
    monkeypatch.setattr(engine, "SILENCE_LIMIT_S", SILENCE_S)
    monkeypatch.setattr(engine, "CONNECT_LIMIT_S", 2)
    found = Network(server.folder / ".s.PGSQL.5432")
    yield found
    found.close()


@contextmanager
def store_behind(network: Network, server: Server) -> Iterator[Store]:
    name = f"t{secrets.token_hex(6)}"
    server.create(name)
    with Store.open(f"postgresql://tests@127.0.0.1:{network.port}/{name}", key=b"k" * 32) as store:
        yield store
        network.flow()
    server.drop(name)


def wait_for_a_record(store: Store) -> object:
    return started(store, "r_late").run_id


def read(store: Store) -> object:
    return store.runs()


def take_a_turn(store: Store) -> object:
    def price(thing: str) -> int:
        """Looks a price up."""
        return len(thing)

    session = Session([price], protocol="openai", store=store)
    return asyncio.run(session.turn(calls(("price", {"thing": "tea"})))).text


@pytest.mark.timeout(120)
@pytest.mark.parametrize("use", [wait_for_a_record, read, take_a_turn])
def test_a_server_behind_a_network_that_hangs_is_unavailable_and_named(
    network: Network, server: Server, use: Callable[[Store], object]
) -> None:
    with store_behind(network, server) as store, ThreadPoolExecutor(1) as pool:
        network.hang()
        error = pool.submit(use, store).exception(PATIENCE_S)
        assert isinstance(error, StoreUnavailable)
        assert f"the store {store.url} could not be" in str(error)
        # The control: the network flows again, and the store is used as if nothing had been.
        network.flow()
        assert use(store) or use is read


@pytest.mark.timeout(120)
def test_a_call_whose_beginning_cannot_be_recorded_does_not_run(network: Network, server: Server) -> None:
    with store_behind(network, server) as store:
        ledger = started(store)
        network.hang()
        assert kind(ledger.begin(start(step("1"))).result(PATIENCE_S)) == "unavailable"
        network.flow()
        assert isinstance(done(ledger.begin(start(step("1")))), float)


@pytest.mark.timeout(120)
def test_a_store_that_cannot_be_reached_does_not_open(network: Network) -> None:
    network.hang()
    with pytest.raises(StoreUnavailable, match="cannot be used"):
        Store.open(f"postgresql://tests@127.0.0.1:{network.port}/postgres", key=b"k" * 32)


@pytest.mark.timeout(120)
def test_without_the_limit_a_reader_waits_as_long_as_the_network_hangs(
    network: Network, server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The control: only the limit ends the wait."""
    monkeypatch.setattr(engine, "SILENCE_LIMIT_S", math.inf)
    with store_behind(network, server) as store, ThreadPoolExecutor(1) as pool:
        network.hang()
        reading = pool.submit(store.runs)
        with pytest.raises(TimeoutError):
            reading.result(4 * SILENCE_S)
        network.flow()
        assert reading.result(PATIENCE_S) == []


def test_the_server_ends_a_statement_that_takes_too_long(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    def settings(connection: Any) -> list[str]:
        return [connection.exec_driver_sql(f"SHOW {name}").scalar() for name in ("statement_timeout", "work_mem")]

    name = f"t{secrets.token_hex(6)}"
    server.create(name)
    with Store.open(server.url(name), key=b"k" * 32) as store:
        assert store._database.read(settings)[0] == "20s"
    # The URL has the last word.
    own = f"{server.url(name)}&options=-c statement_timeout=5s -c work_mem=8MB"
    with Store.open(own, key=b"k" * 32) as store:
        assert store._database.read(settings) == ["5s", "8MB"]
    monkeypatch.setattr(engine, "STATEMENT_LIMIT_S", 0.2)
    with Store.open(f"{server.url(name)}&application_name=limited", key=b"k" * 32) as store:
        with pytest.raises(StoreUnavailable, match="statement timeout"):
            store._database.read(lambda connection: connection.exec_driver_sql("SELECT pg_sleep(60)").all())
        assert store._database.read(lambda connection: connection.exec_driver_sql("SELECT 1").scalar()) == 1
    server.drop(name)


def test_a_thread_waits_for_a_record_no_longer_than_the_limit(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    go_on = threading.Event()
    monkeypatch.setattr(work, "RECORD_LIMIT_S", 0.1)
    late = store._database.run(lambda _: go_on.wait(PATIENCE_S))
    with pytest.raises(StoreUnavailable) as unavailable:
        late.result()
    assert str(unavailable.value) == f"the store {store.url} did not take a record within 0.1 s"
    go_on.set()
    # The control: a record that is written in time.
    monkeypatch.setattr(work, "RECORD_LIMIT_S", PATIENCE_S)
    assert late.result()
    assert store._database.run(lambda _: 7).result() == 7


def test_a_thread_that_does_not_start_fails_what_was_to_be_written_and_nothing_later(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(thread: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    opened = done(store.start(run_start("r_1")))
    with monkeypatch.context() as broken:
        broken.setattr(threading.Thread, "start", refuse)
        with pytest.raises(StoreUnavailable) as unavailable:
            done(opened.begin(start(step("1"))))
        assert str(unavailable.value) == f"the store {store.url} cannot be written: can't start new thread"
    ledger = started(store, "r_1")
    assert isinstance(done(ledger.begin(start(step("1")))), float)
    assert done(ledger.settle(step("1"), PAID)) == PAID


@pytest.mark.parametrize("is_replaced", [False, True], ids=["deleted", "replaced"])
def test_a_store_whose_file_was_deleted_is_neither_written_nor_read(tmp_path: Path, is_replaced: bool) -> None:
    path = tmp_path / "runs.db"
    with Store.open(f"sqlite:///{path}") as store:
        ledger = started(store)
        path.rename(tmp_path / "away.db")
        if is_replaced:
            path.write_bytes((tmp_path / "away.db").read_bytes())
        with pytest.raises(StoreUnavailable) as unavailable:
            done(ledger.settle(step("1"), PAID))
        assert str(unavailable.value) == (
            f"the store {store.url} could not be written: its file was deleted or replaced while the store was open"
        )
        with pytest.raises(StoreUnavailable) as unavailable:
            store.runs()
        assert str(unavailable.value) == (
            f"the store {store.url} could not be read: its file was deleted or replaced while the store was open"
        )
        # The control: the same file in its place again.
        (tmp_path / "away.db").rename(path)
        done(ledger.settle(step("1"), PAID))
        assert store.run(ledger.run_id).steps == 1
