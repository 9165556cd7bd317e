"""A conformance kit for queues of runs: the guarantees that a store and its workers rely on."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from sqlalchemy import Engine

from toolwire.journal.run_queue import RunQueue
from toolwire.journal.store import Store
from toolwire.session.session import Session
from toolwire.testing.checks import holds, run_checks

_LATER_S = 60.0
"""Seconds of a delay that no check waits for."""


@dataclass(frozen=True, slots=True)
class CheckedQueue:
    """A queue under test, with an empty database and a worker of its own.

    Attributes:
        queue: The queue. Its own tables are there; nothing is attached yet.
        url: The URL of the empty database, for `queue.attach` and `Store.open`.
        engine: Connects to that database.
        take: Takes the next job as a worker does, and returns its run's id; None if there is none to take now.
        finish: Ends the job of a run that was taken.
    """

    queue: RunQueue
    url: str
    engine: Engine
    take: Callable[[], str | None]
    finish: Callable[[str], None]


MakeQueue = Callable[[], CheckedQueue]
"""Creates a queue with a new empty database, for one check."""


def check_queue(make_queue: MakeQueue) -> None:
    """Runs every check of `QUEUE_CHECKS`. Needs the environment variable `TOOLWIRE_KEY`, as every store does.

    Raises:
        PortFails: At least one check failed.
    """
    run_checks(QUEUE_CHECKS, make_queue)


def _put(checked: CheckedQueue, *runs: str, conversation: str = "", priority: int = 0, delay_s: float = 0.0) -> None:
    with checked.engine.begin() as connection:
        for run_id in runs:
            checked.queue.put(connection, run_id, conversation=conversation, priority=priority, delay_s=delay_s)


def _attached(make: MakeQueue) -> CheckedQueue:
    checked = make()
    checked.queue.attach(checked.url)
    return checked


def _takes(checked: CheckedQueue, *expected: str | None) -> None:
    taken = tuple(checked.take() for _ in expected)
    holds(taken == expected, f"a worker took {list(taken)}, not {list(expected)}")


def _a_job_is_taken_once(make: MakeQueue) -> None:
    checked = _attached(make)
    _put(checked, "r_1")
    _takes(checked, "r_1", None)
    checked.finish("r_1")
    _takes(checked, None)


def _a_job_belongs_to_its_transaction(make: MakeQueue) -> None:
    checked = _attached(make)
    with checked.engine.connect() as connection:
        checked.queue.put(connection, "r_1", conversation="c")
        holds(checked.take() is None, "a job was taken before its transaction ended")
        connection.rollback()
    _takes(checked, None)


def _a_second_job_that_waits_is_none(make: MakeQueue) -> None:
    checked = _attached(make)
    # In one transaction, which the second put must not break.
    _put(checked, "r_1", "r_1", "r_2")
    _takes(checked, "r_1", "r_2", None)


def _a_run_can_be_put_while_its_job_is_at_work(make: MakeQueue) -> None:
    checked = _attached(make)
    _put(checked, "r_1")
    _takes(checked, "r_1")
    _put(checked, "r_1")
    checked.finish("r_1")
    _takes(checked, "r_1", None)


def _a_conversation_keeps_its_order(make: MakeQueue) -> None:
    checked = _attached(make)
    _put(checked, "r_1", "r_2", conversation="c")
    _put(checked, "r_3", conversation="d")
    _takes(checked, "r_1", "r_3", None)
    checked.finish("r_1")
    _takes(checked, "r_2", None)


def _runs_without_a_conversation_go_side_by_side(make: MakeQueue) -> None:
    checked = _attached(make)
    _put(checked, "r_1", "r_2")
    _takes(checked, "r_1", "r_2")


def _a_higher_priority_comes_first(make: MakeQueue) -> None:
    checked = _attached(make)
    _put(checked, "r_low", priority=-1)
    _put(checked, "r_1")
    _put(checked, "r_high", priority=5)
    _takes(checked, "r_high", "r_1", "r_low")


def _a_delayed_job_waits(make: MakeQueue) -> None:
    checked = _attached(make)
    _put(checked, "r_later", delay_s=_LATER_S)
    _put(checked, "r_1")
    _takes(checked, "r_1", None)


def _attaching_twice_is_nothing(make: MakeQueue) -> None:
    checked = _attached(make)
    checked.queue.attach(checked.url)
    _put(checked, "r_1")
    _takes(checked, "r_1")


def _a_store_puts_what_is_submitted(make: MakeQueue) -> None:
    checked = make()
    with Store.open(checked.url, queue=checked.queue) as store:
        session = Session([echo], protocol="xml", store=store, conversation="c-1")
        first, second = (session.run_submit(_reply(number)) for number in (1, 2))
        _takes(checked, first, None)
        checked.finish(first)
        _takes(checked, second, None)


def echo(value: int) -> int:
    """Returns the value."""
    return value


def _reply(value: int) -> str:
    return f"<tool_call><name>echo</name><params><value>{value}</value></params></tool_call>"


QUEUE_CHECKS: Mapping[str, Callable[[MakeQueue], None]] = {
    "a job is taken once": _a_job_is_taken_once,
    "a job belongs to its transaction": _a_job_belongs_to_its_transaction,
    "a second job that waits is none": _a_second_job_that_waits_is_none,
    "a run can be put while its job is at work": _a_run_can_be_put_while_its_job_is_at_work,
    "a conversation keeps its order": _a_conversation_keeps_its_order,
    "runs without a conversation go side by side": _runs_without_a_conversation_go_side_by_side,
    "a higher priority comes first": _a_higher_priority_comes_first,
    "a delayed job waits": _a_delayed_job_waits,
    "attaching twice is nothing": _attaching_twice_is_nothing,
    "a store puts what is submitted": _a_store_puts_what_is_submitted,
}
"""The checks by name, to run one by one; each raises `PortFails`."""
