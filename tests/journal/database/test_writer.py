"""One thread writes a store, in groups; each caller gets its answer, or hears why it gets none."""

from __future__ import annotations

import asyncio
import os
import threading
import time
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path

import pytest
from benchmarks.kills import in_child, start_of, step_number

from tests.journal.ledger.test_run_ledger import kind
from tests.journal.world import PAID, done, run_start, started
from tests.patience import PATIENCE_S, until
from toolwire.journal.database import forking, writer
from toolwire.journal.database.work import RecordFuture, Work
from toolwire.journal.log.events import run_event
from toolwire.journal.store import Store
from toolwire.vocabulary.errors import StoreUnavailable


def whose(_: object) -> int:
    return threading.get_ident()


def test_one_thread_writes_for_all_callers(store: Store) -> None:
    database = store._database
    with ThreadPoolExecutor(4) as pool:
        writers = {pool.submit(lambda: database.run(whose).result()).result(PATIENCE_S) for _ in range(8)}
    assert len(writers) == 1
    assert threading.get_ident() not in writers


def test_an_event_loop_is_not_held_up(store: Store) -> None:
    database, went_on = store._database, threading.Event()

    async def main() -> bool:
        waiting = asyncio.wrap_future(database.run(lambda _: went_on.wait(PATIENCE_S)))
        await asyncio.sleep(0)
        went_on.set()
        return await waiting

    assert asyncio.run(main())


def test_a_queue_is_written_in_one_transaction_and_a_long_one_in_several(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(writer, "BATCH_LIMIT", 10)
    database = store._database

    def commits_for(works: int) -> int:
        is_writing, go_on = threading.Event(), threading.Event()
        first = database.run(lambda _: (is_writing.set(), go_on.wait(PATIENCE_S)))
        assert is_writing.wait(PATIENCE_S)
        before, rest = database.writer.commits, [database.run(whose) for _ in range(works)]
        go_on.set()
        done(first)
        for future in rest:
            done(future)
        database.wait_for_writes()
        return database.writer.commits - before

    assert commits_for(10) <= 3
    assert commits_for(50) >= 6


def test_callers_that_come_together_share_their_transactions(store: Store) -> None:
    database, callers, each = store._database, 8, 50

    def write(_: int) -> None:
        for _ in range(each):
            database.run(whose).result()

    before = database.writer.commits
    with ThreadPoolExecutor(callers) as pool:
        list(pool.map(write, range(callers)))
    assert each <= database.writer.commits - before < callers * each / 2


def works(number: int) -> list[Work]:
    return [Work(future=RecordFuture(), job=lambda _: time.sleep(0.01)) for _ in range(number)]


def wait_for(*some: Work) -> None:
    for work in some:
        assert work.future is not None
        done(work.future)


def test_a_caller_that_hands_over_two_works_waits_for_nobody_after_them(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    # To wait for other callers would take a quarter of an hour.
    monkeypatch.setattr(writer, "GATHER_PART", 1e5)
    monkeypatch.setattr(writer, "GATHER_LIMIT", 1e5)
    database, both = store._database, works(2)
    database.put(*both)
    wait_for(*both)
    (alone,) = works(1)
    database.put(alone)
    wait_for(alone)
    # The control: after two callers the writer waits for the second one.
    go_on = threading.Event()
    database.put(Work(future=None, job=lambda _: go_on.wait(PATIENCE_S)))
    for work in (both := works(2)):
        database.put(work)
    go_on.set()
    wait_for(*both)
    (first,), (second,) = works(1), works(1)
    database.put(first)
    assert first.future is not None
    with pytest.raises(TimeoutError):
        first.future.result(0.3)
    database.put(second)
    wait_for(first, second)


@pytest.mark.parametrize("patience_s", [0.001, 0.0])
def test_a_caller_waits_for_no_other_one_after_work_in_the_background(
    store: Store, monkeypatch: pytest.MonkeyPatch, patience_s: float
) -> None:
    monkeypatch.setattr(writer, "GATHER_PART", 1e5)
    monkeypatch.setattr(writer, "GATHER_LIMIT", 1e5)
    database, has_begun, go_on = store._database, threading.Event(), threading.Event()

    def work(_: object) -> None:
        has_begun.set()
        go_on.wait(PATIENCE_S)

    background = database.run(work, patience_s=patience_s)
    assert has_begun.wait(PATIENCE_S)
    (caller,) = works(1)
    database.put(caller)
    go_on.set()
    done(background)
    if patience_s:
        wait_for(caller)
        until(lambda: database.writer.is_idle)
        took_s = database.writer._took_s
        done(database.run(lambda _: None, patience_s=patience_s))
        until(lambda: database.writer.is_idle)
        assert database.writer._took_s == took_s
        return
    # The control: a caller may come again, and the next one waits for it as long as its work took.
    assert caller.future is not None
    with pytest.raises(TimeoutError):
        caller.future.result(0.3)
    (second,) = works(1)
    database.put(second)
    wait_for(caller, second)


def test_a_record_without_a_waiting_caller_is_written(store: Store) -> None:
    is_written = threading.Event()
    store._database.run(lambda _: is_written.set())
    assert is_written.wait(PATIENCE_S)


def test_work_that_fails_fails_alone(store: Store) -> None:
    database, ledger = store._database, started(store)

    def broken(_: object) -> None:
        raise ArithmeticError("broken")

    others = [ledger.settle(step_number(number), PAID) for number in range(3)]
    failing = database.run(broken)
    others += [ledger.settle(step_number(number), PAID) for number in range(3, 6)]
    with ThreadPoolExecutor(1) as pool:
        assert str(pool.submit(lambda: failing.result()).exception(PATIENCE_S)) == "broken"
    assert [done(future) for future in others] == [PAID] * 6
    assert store.runs()[0].steps == 6


def test_a_job_does_not_wait_for_room_that_only_its_thread_can_make(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(writer, "QUEUE_LIMIT", 1)
    told = store._database.run(lambda _: [store.tell(run_event(run_start("r_1"), "started")) for _ in range(3)])
    told.result()
    assert store.log_length() == 3


def test_a_job_that_waits_for_its_own_store_is_refused(store: Store) -> None:
    database = store._database
    with pytest.raises(StoreUnavailable, match="waits for another record of the same store"):
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
                assert other._database.run(whose).result()
        except StoreUnavailable:
            # SQLite's memory is as the writing thread left it; a connection to a server is not shared.
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
        followed = store.follow()
        leading = _leading(store, lambda: list(followed), pool)
        later = store._database.run(whose)
        store.close()
        assert later.done()
        assert leading.result(PATIENCE_S) == 1
