"""Who writes a store: a thread that waits, or else the writer's own; whatever becomes of it, nobody waits for ever."""

from __future__ import annotations

import asyncio
import os
import threading
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from benchmarks.kills import in_child, start_of, step_number

from tests.journal.test_ledger import kind
from tests.journal.world import PAID, done, started
from tests.patience import PATIENCE_S
from toolwire.journal import forking, writer
from toolwire.journal.events import run_event
from toolwire.journal.store import Store
from toolwire.vocabulary.errors import StoreUnavailable


def whose(_: object) -> int:
    return threading.get_ident()


@pytest.fixture
def unhurried(monkeypatch: pytest.MonkeyPatch) -> None:
    """The writer's own thread writes only what it is called for."""
    monkeypatch.setattr(writer, "UNASKED_S", 60.0)


@pytest.mark.usefixtures("unhurried")
def test_who_waits_writes_and_is_not_woken_for_it(store: Store) -> None:
    is_sqlite = store.url.startswith("sqlite")
    database, here = store._database, threading.get_ident()
    assert (database.run(whose).result() == here) == is_sqlite
    store.tell(run_event("r_1", "started"))
    assert (database.run(whose).result() == here) == is_sqlite
    assert [row.run_id for row in store.log()] == ["r_1"]


@pytest.mark.usefixtures("unhurried")
def test_an_event_loop_is_not_held_up(store: Store) -> None:
    database, went_on = store._database, threading.Event()

    async def main() -> bool:
        waiting = asyncio.wrap_future(database.run(lambda _: went_on.wait(PATIENCE_S)))
        await asyncio.sleep(0)
        went_on.set()
        return await waiting

    assert asyncio.run(main())


@pytest.mark.usefixtures("unhurried")
def test_who_waits_for_so_long_and_no_longer_does_not_write(store: Store) -> None:
    assert store._database.run(whose).result(timeout=PATIENCE_S) != threading.get_ident()


def test_what_nobody_waits_for_is_written(store: Store) -> None:
    is_written = threading.Event()
    store._database.run(lambda _: is_written.set())
    assert is_written.wait(PATIENCE_S)


@pytest.mark.usefixtures("unhurried")
def test_the_main_thread_which_signals_interrupt_writes_for_nobody_else(store: Store) -> None:
    database = store._database
    other, mine = database.run(whose), database.run(whose)
    assert mine.result() == other.result() != threading.get_ident()


@pytest.mark.usefixtures("unhurried")
@pytest.mark.parametrize("is_answering", [False, True])
def test_an_interrupted_caller_loses_nobodys_work_and_writes_nothing_twice(store: Store, is_answering: bool) -> None:
    database, ledger = store._database, started(store)
    rows, interrupted = store.log_length(), list[int]()

    def interrupt(_: object) -> int:
        if not interrupted and store.url.startswith("sqlite"):
            interrupted.append(threading.get_ident())
            raise KeyboardInterrupt
        return threading.get_ident()

    first = ledger.settle(step_number(0), PAID)
    store.tell(run_event(ledger.run_id, "resumed"))
    mine = database.run(whose if is_answering else interrupt)
    if is_answering:
        # Past the answer's own, which would call the writer's thread.
        Future[Any].add_done_callback(first, interrupt)
    last = ledger.settle(step_number(1), PAID)
    with ThreadPoolExecutor(1) as pool:
        error = pool.submit(lambda: mine.result()).exception(PATIENCE_S)
    assert isinstance(error, KeyboardInterrupt) == bool(interrupted)
    assert (done(first), done(last)) == (PAID, PAID)
    assert (done(mine) in interrupted) == (is_answering and bool(interrupted))
    assert (store.runs()[0].steps, store.log_length()) == (2, rows + 1)


def test_when_the_one_that_waits_for_the_others_goes_away_they_are_answered_all_the_same(store: Store) -> None:
    database = store._database
    together = [database.run(whose) for _ in range(3)]
    assert len({done(future) for future in together}) == 1
    first = database.run(whose)
    # Told to come again, and never does.
    database.writer.help(first)
    assert database.run(whose).result() == first.result()


@pytest.mark.usefixtures("unhurried")
def test_of_what_a_caller_writes_what_fails_fails_alone(store: Store) -> None:
    database, ledger = store._database, started(store)

    def broken(_: object) -> None:
        raise ValueError("broken")

    others = [ledger.settle(step_number(number), PAID) for number in range(3)]
    failing = database.run(broken)
    others += [ledger.settle(step_number(number), PAID) for number in range(3, 6)]
    with ThreadPoolExecutor(1) as pool:
        assert str(pool.submit(lambda: failing.result()).exception(PATIENCE_S)) == "broken"
    assert [done(future) for future in others] == [PAID] * 6
    assert store.runs()[0].steps == 6


def test_who_writes_does_not_wait_for_room_that_only_they_can_make(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(writer, "QUEUE_LIMIT", 1)
    told = store._database.run(lambda _: [store.tell(run_event("r_1", "started")) for _ in range(3)])
    told.result()
    assert store.log_length() == 3


def test_who_writes_and_waits_for_more_is_told_so(store: Store) -> None:
    database = store._database
    with pytest.raises(StoreUnavailable, match="waits for the store"):
        database.run(lambda _: database.run(whose).result()).result()
    assert database.run(whose).result()


def _leading(store: Store, until: Callable[[], object], pool: ThreadPoolExecutor) -> Future[int]:
    """A caller that is in the middle of writing, and goes on when that returns."""
    is_leading = threading.Event()

    def job(_: object) -> int:
        is_leading.set()
        until()
        return 1

    leading = pool.submit(lambda: store._database.run(job).result())
    assert is_leading.wait(PATIENCE_S)
    return leading


def test_a_fork_while_a_caller_writes_disturbs_neither(
    url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(forking, "FORK_WAIT_S", 0.05)
    store, go_on = Store.open(url), threading.Event()
    ledger = started(store, "r_1")

    def child() -> None:
        assert kind(done(ledger.begin(start_of(step_number(1))))) == "unavailable"
        try:
            with Store.open(f"sqlite:///{tmp_path}/other.db") as other:
                assert other._database.run(whose).result() == threading.get_ident()
        except StoreUnavailable:
            # SQLite's memory is as the writing thread left it; a connection to a server is nobody else's.
            assert url.startswith("sqlite")

    with ThreadPoolExecutor(1) as pool:
        leading = _leading(store, lambda: go_on.wait(PATIENCE_S), pool)
        assert os.waitstatus_to_exitcode(os.waitpid(in_child(child), 0)[1]) == 0
        go_on.set()
        assert leading.result(PATIENCE_S) == 1
    assert isinstance(done(ledger.begin(start_of(step_number(1)))), float)
    store.close()


def test_a_store_that_is_closed_while_a_caller_writes_waits_for_it_and_writes_the_rest(url: str) -> None:
    store = Store.open(url)
    with ThreadPoolExecutor(1) as pool:
        leading = _leading(store, lambda: store._closing.wait(PATIENCE_S), pool)
        later = store._database.run(whose)
        store.close()
        assert later.done()
        assert leading.result(PATIENCE_S) == 1
