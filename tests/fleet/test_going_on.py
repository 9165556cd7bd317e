"""Submitted runs, what makes a run due, and `go_on`, on both databases and without workers."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import Connection

from tests.fleet.app import call, lines, session_for, tools
from tests.forks import forked
from tests.journal.world import PAID, done, step
from tests.patience import until
from toolwire import Caller, ConfigurationError, Decision, DecisionRefused, Session
from toolwire.fleet import run_go_on
from toolwire.journal.database.tables import RUNS
from toolwire.journal.run import RunInfo
from toolwire.journal.store import Store

ANN, BOB = Caller(principal="ann"), Caller(principal="bob")


@pytest.fixture(params=["sqlite", "postgresql"])
def either_url(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """The URL of an empty database of each kind, whose tools write to `done_file`."""
    monkeypatch.setenv("DONE_FILE", str(request.getfixturevalue("done_file")))
    monkeypatch.setenv("TOOLWIRE_KEY", bytes(32).hex())
    return f"sqlite:///{tmp_path}/runs.db" if request.param == "sqlite" else request.getfixturevalue("bare_url")


@dataclass
class ListedQueue:
    """A queue that lists its jobs, or fails."""

    jobs: list[tuple[str, str, int]] = field(default_factory=list[tuple[str, str, int]])
    is_failing: bool = False

    def attach(self, url: str) -> None:
        """Takes any database."""

    def put(
        self, connection: Connection, run_id: str, *, conversation: str, priority: int = 0, delay_s: float = 0.0
    ) -> None:
        assert connection.in_transaction()
        assert delay_s == 0
        if self.is_failing:
            raise RuntimeError("the queue is broken")
        self.jobs.append((run_id, conversation, priority))


@pytest.fixture
def jobs() -> ListedQueue:
    return ListedQueue()


@pytest.fixture
def either(either_url: str, jobs: ListedQueue) -> Iterator[Store]:
    with Store.open(either_url, queue=jobs) as opened:
        yield opened


def session(store: Store, caller: Caller = ANN) -> Session:
    return Session(tools(), protocol="openai", store=store, conversation="c-1", caller=caller)


def due(store: Store) -> list[str]:
    return [run.run_id for run in store.ready()]


def test_a_submitted_run_is_queued_until_go_on_ends_it(either: Store, jobs: ListedQueue, done_file: Path) -> None:
    made = session(either)
    run_id = made.run_submit(call("note", name="a"), priority=3)
    assert jobs.jobs == [(run_id, "c-1", 3)]
    run = either.run(run_id)
    assert (run.status, run.is_held, due(either), lines(done_file)) == ("queued", False, [run_id], [])
    with pytest.raises(TimeoutError):
        made.run_wait(run_id, timeout_s=0.05)
    assert run_go_on(either, run_id, session_for) == "finished"
    assert (due(either), lines(done_file)) == ([], ["note a"])
    assert [result.data for result in made.run_wait(run_id, timeout_s=5).results] == ["a"]
    assert run_go_on(either, run_id, session_for) == "finished"
    assert lines(done_file) == ["note a"]


def test_the_run_and_its_job_are_one_transaction(either: Store, jobs: ListedQueue) -> None:
    jobs.is_failing = True
    with pytest.raises(RuntimeError, match=r"^the queue is broken$"):
        session(either).run_submit(call("note", name="a"))
    assert (list(either.runs()), due(either)) == ([], [])


def test_a_decision_and_its_job_are_one_transaction(either: Store, jobs: ListedQueue) -> None:
    run_id = session(either).run_submit(call("pay", amount=1))
    assert run_go_on(either, run_id, session_for) == "suspended"
    request = either.pending(run_id)[0]
    jobs.is_failing = True
    with pytest.raises(RuntimeError, match=r"^the queue is broken$"):
        either.decide(request.id, Decision(verdict="approve"))
    assert [one.id for one in either.pending(run_id)] == [request.id]


def test_a_run_is_due_again_once_its_last_request_is_decided(either: Store, jobs: ListedQueue, done_file: Path) -> None:
    reply = call("pay", amount=1)
    reply["tool_calls"] += [{**call("pay", amount=2)["tool_calls"][0], "id": "c2"}]
    made = session(either)
    run_id = made.run_submit(reply)
    assert run_go_on(either, run_id, session_for) == "suspended"
    suspended = made.run_wait(run_id, timeout_s=5).suspended
    assert suspended is not None
    first, second = suspended.pending
    jobs.jobs.clear()
    either.decide(first.id, Decision(verdict="approve"))
    assert (jobs.jobs, due(either)) == ([], [])
    either.decide(second.id, Decision(verdict="deny"))
    assert (jobs.jobs, due(either)) == ([(run_id, "c-1", 0)], [run_id])
    assert run_go_on(either, run_id, session_for) == "finished"
    assert lines(done_file) == ["pay 1"]


def test_a_decision_without_the_queue_makes_the_run_due(either: Store, either_url: str) -> None:
    run_id = session(either).run_submit(call("pay", amount=1))
    run_go_on(either, run_id, session_for)
    with Store.open(either_url) as other:
        other.decide(other.pending(run_id)[0].id, Decision(verdict="approve"))
        assert due(other) == [run_id]


def test_a_store_without_a_queue_records_the_run(either_url: str) -> None:
    with Store.open(either_url) as store:
        run_id = session(store).run_submit(call("note", name="a"))
        assert due(store) == [run_id]


def test_a_stopped_run_is_not_due(either: Store) -> None:
    run_id = session(either).run_submit(call("note", name="a"))
    either.stop(run_id, by="ann", reason="not wanted")
    assert (either.run(run_id).status, due(either)) == ("stopped", [])
    assert run_go_on(either, run_id, session_for) == "stopped"


def test_another_principal_neither_waits_nor_submits(either: Store) -> None:
    run_id = session(either).run_submit(call("note", name="a"))
    for attempt in (
        lambda: session(either, BOB).run_wait(run_id, timeout_s=5),
        lambda: session(either, BOB).run_submit(call("note", name="b")),
    ):
        with pytest.raises(DecisionRefused) as refused:
            attempt()
        assert refused.value.code == "not_permitted"
    assert len(either.runs()) == 1


def test_a_reply_without_calls_ends_at_once(either: Store) -> None:
    made = session(either)
    run_id = made.run_submit({"role": "assistant", "content": "Nothing to do."})
    assert run_go_on(either, run_id, session_for) == "finished"
    turn = made.run_wait(run_id, timeout_s=5)
    assert (turn.results, turn.reply.text) == ((), "Nothing to do.")


def test_submit_and_wait_need_a_store() -> None:
    bare = Session(tools(), protocol="openai")
    line = "^{}: give the session a store, Session\\(..., store='sqlite:///runs.db'\\)$"
    with pytest.raises(ConfigurationError, match=line.format("submit")):
        bare.run_submit(call("note", name="a"))
    with pytest.raises(ConfigurationError, match=line.format("wait")):
        bare.run_wait("r_1", timeout_s=1)


def _raising(run: RunInfo, store: Store) -> Session:
    raise ValueError("no tools today")


def _without_store(run: RunInfo, store: Store) -> Session:
    return Session(tools(), protocol=run.protocol, caller=run.caller, conversation=run.conversation)


def _other_protocol(run: RunInfo, store: Store) -> Session:
    return Session(tools(), protocol="xml", store=store, caller=run.caller, conversation=run.conversation)


def _other_caller(run: RunInfo, store: Store) -> Session:
    return Session(tools(), protocol=run.protocol, store=store, caller=BOB, conversation=run.conversation)


@pytest.mark.parametrize(
    ("made_for", "said"),
    [
        (_raising, "_raising made no session for run {run_id}: ValueError: no tools today"),
        (_without_store, "the session of _without_store is not that of run {run_id}: write Session(..., store=store)"),
        (
            _other_protocol,
            "the session of _other_protocol is not that of run {run_id}: write Session(..., protocol=run.protocol)",
        ),
        (
            _other_caller,
            "the session of _other_caller is not that of run {run_id}: write Session(..., caller=run.caller)",
        ),
        (lambda run, store: None, "<lambda> returned NoneType: return Session(..., store=store)"),
    ],
)
def test_a_wrong_session_is_refused_in_one_line(
    either: Store, made_for: Callable[[RunInfo, Store], Any], said: str
) -> None:
    run_id = session(either).run_submit(call("note", name="a"))
    with pytest.raises(ConfigurationError) as refused:
        run_go_on(either, run_id, made_for)
    assert str(refused.value).rpartition("<locals>.")[2] == said.format(run_id=run_id)
    assert due(either) == [run_id]


@pytest.mark.parametrize("job", [7, None, "", b"r_1"])
def test_a_job_that_is_no_run_id_is_refused(either: Store, job: Any) -> None:
    with pytest.raises(ConfigurationError) as refused:
        run_go_on(either, job, session_for)
    assert str(refused.value) == f"go_on({job!r}): give the id of a run, as Session.submit returns it"


def test_an_unknown_run_is_over(either: Store) -> None:
    assert run_go_on(either, "r_nobody", session_for) == "stopped"


def test_a_suspended_run_is_due_when_its_request_expires(either: Store) -> None:
    run_id = session(either).run_submit(call("pay", amount=1))
    run_go_on(either, run_id, session_for)
    database = either._database  # pyright: ignore[reportPrivateUsage]
    assert due(either) == []
    expires_at = either.pending(run_id)[0].expires_at
    real = database.clock
    database.clock = lambda: expires_at + 1  # pyright: ignore[reportAttributeAccessIssue]
    try:
        assert due(either) == [run_id]
    finally:
        database.clock = real


def _work(url: str, run_id: str) -> None:
    with Store.open(url) as store:
        run_go_on(store, run_id, session_for)


def test_a_busy_conversation_comes_later(either: Store, either_url: str) -> None:
    first = session(either).run_submit(call("wait", name="a", seconds=1000))
    second = session(either).run_submit(call("note", name="b"))
    worker = forked(_work, either_url, first)
    try:
        until(lambda: either.run(first).is_held)
        assert run_go_on(either, second, session_for) == "later"
        assert due(either) == [second]
    finally:
        worker.kill()
        worker.join()


@pytest.mark.parametrize("priority", ["high", 1.5, None, True])
def test_a_priority_is_a_whole_number(either: Store, priority: Any) -> None:
    with pytest.raises(ConfigurationError) as refused:
        session(either).run_submit(call("note", name="a"), priority=priority)
    assert str(refused.value) == f"submit(priority={priority!r}): give a whole number, such as 0"
    assert list(either.runs()) == []


@pytest.mark.parametrize("timeout_s", ["1", float("nan"), -1, True])
def test_a_time_to_wait_is_a_number_of_seconds(either: Store, timeout_s: Any) -> None:
    made = session(either)
    run_id = made.run_submit(call("note", name="a"))
    with pytest.raises(ConfigurationError) as refused:
        made.run_wait(run_id, timeout_s=timeout_s)
    assert str(refused.value) == f"wait(timeout_s={timeout_s!r}): give seconds from 0, such as 60, or None"


def test_waiting_for_an_unknown_run_is_refused(either: Store) -> None:
    with pytest.raises(DecisionRefused) as refused:
        session(either).run_wait("r_nobody", timeout_s=5)
    assert refused.value.code == "unknown_run"


def test_an_unreadable_reply_ends_as_its_turn_does(either: Store) -> None:
    made = Session(tools(), protocol="xml", store=either, conversation="c-1", caller=ANN)
    broken = "<tool_call><name>note</name><params><name>a</params></tool_call>"
    expected = Session(tools(), protocol="xml").run_turn(broken)
    run_id = made.run_submit(broken)
    assert run_go_on(either, run_id, session_for) == "finished"
    turn = made.run_wait(run_id, timeout_s=5)
    assert turn.messages == expected.messages
    assert turn.reply.failure == expected.reply.failure


def _die_over(store: Store, run_id: str, *, has_step: bool = False) -> None:
    """Takes a run, and leaves it as a process of another host does that dies."""
    database = store._database  # pyright: ignore[reportPrivateUsage]
    ledger = done(store.reopen(run_id))
    if has_step:
        done(ledger.settle(step("1"), PAID))
    database.drop(run_id, ledger)
    gone = RUNS.update().where(RUNS.c.run_id == run_id).values(owner="elsewhere 1 - x", lease_until=0.0, ready_at=0.0)
    done(database.run(lambda connection: connection.execute(gone)))


def test_a_run_over_which_processes_die_is_parked_until_a_person_puts_it_back(
    either: Store, jobs: ListedQueue, done_file: Path
) -> None:
    made = session(either)
    run_id = made.run_submit(call("note", name="a"))
    for deaths in range(4):
        assert (either.run(run_id).taken_over, due(either)) == (max(deaths - 1, 0), [run_id])
        _die_over(either, run_id)
    assert run_go_on(either, run_id, session_for) == "parked"
    assert (either.run(run_id).status, due(either), lines(done_file)) == ("parked", [], [])
    with pytest.raises(DecisionRefused) as refused:
        made.run_wait(run_id, timeout_s=5)
    assert refused.value.code == "parked"
    jobs.jobs.clear()
    either.requeue(run_id, by="ann")
    assert (jobs.jobs, due(either)) == ([(run_id, "c-1", 0)], [run_id])
    assert run_go_on(either, run_id, session_for) == "finished"
    assert lines(done_file) == ["note a"]
    assert either.verify().is_whole


def test_a_run_that_records_a_step_between_the_deaths_is_not_parked(either: Store) -> None:
    run_id = session(either).run_submit(call("note", name="a"))
    for deaths in range(4):
        _die_over(either, run_id, has_step=deaths == 2)
    assert either.run(run_id).taken_over == 1
    assert run_go_on(either, run_id, session_for) == "finished"
