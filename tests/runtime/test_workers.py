"""Threads that run blocking work."""

from __future__ import annotations

import contextvars
import gc
import threading
import weakref
from collections.abc import Callable, Iterator
from functools import partial

import pytest

from tests.patience import PATIENCE_S
from tests.runtime.subprocesses import output_of
from toolwire.runtime.workers import ALARM_PAUSE_S, WAITING_CAP, WORKERS_CAP, Workers, WorkersExhausted


@pytest.fixture
def release() -> Iterator[threading.Event]:
    """Set it to let jobs go that wait for it; set at the end in any case."""
    event = threading.Event()
    yield event
    event.set()


def stuck_on(event: threading.Event) -> Callable[[], bool]:
    return lambda: event.wait(PATIENCE_S)


class Thing:
    """Something that can be seen to go away."""


def test_a_job_gives_its_result() -> None:
    assert Workers().start(lambda: 40 + 2).result(PATIENCE_S) == 42


@pytest.mark.parametrize("error", [ValueError("no"), StopIteration(3), SystemExit(2), KeyboardInterrupt()], ids=repr)
def test_whatever_a_job_raises_is_delivered_as_it_is(error: BaseException) -> None:
    def fail() -> None:
        raise error

    assert Workers().start(fail).exception(PATIENCE_S) is error


def test_jobs_run_up_to_the_cap_and_further_ones_wait_in_order(release: threading.Event) -> None:
    workers, order = Workers(cap=2, waiting_cap=3), list[int]()
    running = [workers.start(stuck_on(release)) for _ in range(2)]
    waiting = [workers.start(partial(order.append, number)) for number in range(3)]
    assert (workers.busy, order) == (2, [])
    with pytest.raises(WorkersExhausted) as caught:
        workers.start(lambda: None)
    assert str(caught.value) == "no worker is free: 2 are busy or stuck, and 3 calls wait for one"
    # A job whose caller leaves frees its place and never starts.
    assert waiting.pop(1).cancel()
    waiting.append(workers.start(partial(order.append, 3)))
    release.set()
    assert [job.result(PATIENCE_S) for job in (*running, *waiting)] == [True, True, None, None, None]
    assert sorted(order) == [0, 2, 3]
    assert workers.start(lambda: "again").result(PATIENCE_S) == "again"
    assert workers.busy == 0


def test_a_job_from_inside_of_a_full_pool_does_not_wait_for_itself() -> None:
    workers = Workers(cap=1)
    outer = workers.start(lambda: workers.start(lambda: None))
    assert str(outer.exception(PATIENCE_S)) == "no worker is free: 1 is busy or stuck"
    # The control: another pool has room, and a caller from outside may wait.
    assert workers.start(lambda: Workers(cap=1).start(lambda: 7).result(PATIENCE_S)).result(PATIENCE_S) == 7


def test_jobs_that_wait_when_the_workers_are_closed_are_refused(release: threading.Event) -> None:
    workers = Workers(cap=1)
    running, waiting = workers.start(stuck_on(release)), workers.start(lambda: None)
    workers.close()
    assert str(waiting.exception(PATIENCE_S)) == "the workers were closed"
    release.set()
    assert running.result(PATIENCE_S)


def test_a_worker_is_free_as_soon_as_its_result_is_known() -> None:
    workers = Workers(cap=1)
    names = {workers.start(lambda: threading.current_thread().ident).result(PATIENCE_S) for _ in range(200)}
    assert (len(names), workers.busy) == (1, 0)


def test_the_default_cap_leaves_room_for_a_batch() -> None:
    assert (WORKERS_CAP, WAITING_CAP, Workers().cap) == (64, 1_000, 64)


def test_a_job_sees_a_copy_of_its_callers_context_variables() -> None:
    colour = contextvars.ContextVar("colour", default="none")
    colour.set("red")

    def repaint() -> str:
        seen = colour.get()
        colour.set("blue")
        return seen

    workers = Workers(cap=1)
    assert [workers.start(repaint).result(PATIENCE_S) for _ in range(2)] == ["red", "red"]
    assert colour.get() == "red"


def test_an_idle_worker_keeps_nothing_of_its_last_job() -> None:
    workers, gone = Workers(cap=1), threading.Event()
    thing = Thing()
    weakref.finalize(thing, gone.set)

    def use(thing: Thing = thing) -> list[Thing]:
        return [thing]

    workers.start(use).result(PATIENCE_S)
    del thing, use
    assert gone.wait(PATIENCE_S)


def test_a_failed_job_leaves_no_garbage_to_collect() -> None:
    workers, gone = Workers(cap=1), threading.Event()

    def fail() -> None:
        thing = Thing()
        weakref.finalize(thing, gone.set)
        raise ValueError

    gc.disable()
    try:
        assert type(workers.start(fail).exception(PATIENCE_S)) is ValueError
        assert gone.wait(PATIENCE_S)
    finally:
        gc.enable()


def test_a_job_that_waited_leaves_no_garbage_to_collect(release: threading.Event) -> None:
    workers, gone = Workers(cap=1), threading.Event()

    def make() -> Thing:
        thing = Thing()
        weakref.finalize(thing, gone.set)
        return thing

    gc.disable()
    try:
        workers.start(stuck_on(release))
        waiting = workers.start(make)
        release.set()
        assert type(waiting.result(PATIENCE_S)) is Thing
        del waiting
        assert gone.wait(PATIENCE_S)
    finally:
        gc.enable()


def test_closing_lets_idle_workers_end_and_waits_for_no_other(release: threading.Event) -> None:
    before = set(threading.enumerate())
    workers = Workers(cap=3)
    started = [workers.start(stuck_on(release)) for _ in range(3)]
    threads = set(threading.enumerate()) - before
    workers.close()
    assert workers.busy == 3
    with pytest.raises(WorkersExhausted) as caught:
        workers.start(lambda: None)
    assert str(caught.value) == "the workers were closed"
    release.set()
    assert [job.result(PATIENCE_S) for job in started] == [True] * 3
    for thread in threads:
        thread.join(PATIENCE_S)
    assert [thread.is_alive() for thread in threads] == [False] * 3


def test_a_job_that_was_taken_on_runs_though_the_workers_are_closed_at_once() -> None:
    for _ in range(100):
        workers = Workers(cap=2)
        workers.start(lambda: None).result(PATIENCE_S)
        job = workers.start(lambda: "ran")
        workers.close()
        assert job.result(PATIENCE_S) == "ran"


def test_a_machine_without_another_thread_is_an_exhausted_pool(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(_: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    workers = Workers()
    monkeypatch.setattr(threading.Thread, "start", refuse)
    with pytest.raises(WorkersExhausted) as caught:
        workers.start(lambda: None)
    assert (str(caught.value), workers.busy) == ("no thread beyond 0 workers could be started", 0)


def test_a_stuck_job_holds_up_neither_close_nor_the_end_of_the_interpreter() -> None:
    script = """
        import threading
        from toolwire.runtime.runtime import default_runtime
        workers, begun = default_runtime().workers, threading.Event()
        workers.start(lambda: (begun.set(), threading.Event().wait()))
        begun.wait()
        default_runtime().close()
        default_runtime().workers.start(lambda: threading.Event().wait())
        print(workers.busy, default_runtime().workers.busy)
    """
    assert output_of(script) == "1 1\n"


def test_busy_workers_are_warned_of_once_a_minute(caplog: pytest.LogCaptureFixture) -> None:
    now = [1_000.0]
    workers = Workers(cap=10, clock=lambda: now[0])

    def told() -> list[str]:
        return [record.getMessage().partition(":")[0] for record in caplog.records if record.name == "toolwire.workers"]

    for elapsed_s, warnings in ((0.0, 1), (ALARM_PAUSE_S - 0.1, 1), (0.1, 2), (ALARM_PAUSE_S, 3)):
        now[0] += elapsed_s
        release = threading.Event()
        jobs = [workers.start(stuck_on(release)) for _ in range(10)]
        release.set()
        for job in jobs:
            job.result(PATIENCE_S)
        assert told() == ["8 of 10 workers are busy or stuck"] * warnings
