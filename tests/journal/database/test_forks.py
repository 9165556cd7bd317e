"""A process forks while its threads use a store: the child has connections of its own, and both can write."""

from __future__ import annotations

import logging
import os
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import count
from pathlib import Path
from typing import Any

import pytest
from benchmarks.kills import begun, in_child, start_of, step_number

from tests.journal.world import PAID, done, started
from tests.patience import PATIENCE_S
from toolwire.journal.database import engine, forking, transactions
from toolwire.journal.database.forking import ForkGate
from toolwire.journal.store import Store
from toolwire.vocabulary.errors import StoreUnavailable

CHILDREN = 12


def ended(child: int) -> int:
    """The exit code of a child process; 0 is success."""
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def writes(url: str) -> None:
    """The work of each child: it opens the store, writes a whole run and reads it."""
    with Store.open(url) as store:
        run_id = f"r_{os.getpid()}"
        ledger = begun(store, run_id)
        done(ledger.begin(start_of(step_number(1))))
        done(ledger.settle(step_number(1), PAID))
        done(ledger.finish([PAID]))
        assert (store.run(run_id).status, store.run(run_id).steps) == ("finished", 1)


@contextmanager
def busy(work: Callable[[int], Any]) -> Iterator[None]:
    """A thread that does that again and again."""
    is_over = threading.Event()

    def go() -> None:
        for number in count(1):
            work(number)
            if is_over.is_set():
                return

    thread = threading.Thread(target=go)
    thread.start()
    yield
    is_over.set()
    thread.join(PATIENCE_S)
    assert not thread.is_alive()


@pytest.mark.threat(57)
@pytest.mark.timeout(120)
def test_children_forked_while_threads_write_and_read_can_write(url: str) -> None:
    with Store.open(url) as store:
        ledger = begun(store, "r_parent")
        written: list[int] = []

        def write(number: int) -> None:
            done(ledger.begin(start_of(step_number(number))))
            done(ledger.settle(step_number(number), PAID))
            written.append(number)

        with busy(write), busy(lambda _: store.runs()):
            children = [in_child(lambda: writes(url)) for _ in range(CHILDREN)]
            assert [ended(child) for child in children] == [0] * CHILDREN
        runs = {run.run_id: run.steps for run in store.runs()}
        assert runs == {"r_parent": len(written)} | {f"r_{child}": 1 for child in children}
        assert store.verify().is_whole


@contextmanager
def writing_at(store: Store, ends: threading.Event) -> Iterator[None]:
    """Another thread is in the middle of a transaction, until that event."""
    is_inside = threading.Event()

    def job(_: object) -> None:
        is_inside.set()
        assert ends.wait(PATIENCE_S)

    thread = threading.Thread(target=lambda: done(store._database.run(job)))
    thread.start()
    assert is_inside.wait(PATIENCE_S)
    yield
    ends.set()
    thread.join(PATIENCE_S)


@pytest.mark.threat(57)
@pytest.mark.parametrize("is_on", [True, False], ids=["with the hook", "without it"])
def test_a_fork_waits_for_the_transaction_of_another_thread(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, is_on: bool
) -> None:
    url = f"sqlite:///{tmp_path}/runs.db"
    if not is_on:
        monkeypatch.setattr(ForkGate, "before_fork", lambda self: None)
        monkeypatch.setattr(ForkGate, "after_fork_in_child", lambda self: None)
        monkeypatch.setattr(engine, "BUSY_TIMEOUT_S", 0.05)
        monkeypatch.setattr(transactions, "TRIES", 1)

    def parent() -> None:
        forks = threading.Event()
        # Hooks run in the reverse order: this one before the store's.
        os.register_at_fork(before=forks.set if is_on else lambda: None)
        with Store.open(url) as store, writing_at(store, forks):
            child = in_child(lambda: writes(url))
            assert ended(child) == (0 if is_on else 1)
        started(Store.open(url))

    # In a child of its own: hooks cannot be taken back.
    assert ended(in_child(parent)) == 0


@pytest.mark.threat(57)
def test_a_child_whose_fork_could_not_wait_is_refused_the_store(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    url = f"sqlite:///{tmp_path}/runs.db"
    monkeypatch.setattr(forking, "FORK_WAIT_S", 0.05)
    caplog.set_level(logging.WARNING, "toolwire.store")

    def refused() -> None:
        with pytest.raises(StoreUnavailable) as unavailable:
            Store.open(url)
        assert str(unavailable.value) == (
            f"{url} cannot be used in this process: it was forked while a thread of its parent was using a SQLite "
            "store. Fork when no thread does, or start processes by the method 'spawn' or 'forkserver'."
        )

    def child() -> None:
        refused()
        # A child of the child has the same memory.
        assert ended(in_child(refused)) == 0

    with Store.open(url) as store:
        with writing_at(store, threading.Event()):
            assert ended(in_child(child)) == 0
        assert [record.getMessage() for record in caplog.records] == [
            "a fork could not wait for a thread that uses a store: the child can use no SQLite store"
        ]
        # The parent goes on, and so does a child that is forked later.
        started(store)
        assert ended(in_child(lambda: writes(url))) == 0


def test_a_child_has_none_of_its_parents_connections(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/runs.db"

    def open_files() -> list[str]:
        found = [os.path.realpath(one) for one in Path("/proc/self/fd").iterdir()]
        return [name for name in found if name.startswith(str(tmp_path))]

    def child() -> None:
        assert open_files() == []

    with Store.open(url) as store:
        started(store)
        assert open_files() != []
        assert ended(in_child(child)) == 0
        started(store)
