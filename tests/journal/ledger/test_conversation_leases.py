"""One run at a time holds a conversation, and frees it whatever happens."""

from __future__ import annotations

import itertools
import os
import time
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import replace
from threading import Event

import pytest
from sqlalchemy import Connection, select, update
from sqlalchemy.exc import DBAPIError

from tests.journal.ledger.conversation_holds import ANN, MANY, busy, hold, is_held, refusal
from tests.journal.ledger.conversation_holds import other as other
from tests.journal.ledger.test_leases import often as often
from tests.journal.world import done, started
from tests.patience import PATIENCE_S, until
from toolwire import Caller, ConfigurationError, Session, Store, StoreUnavailable
from toolwire.journal.database import transactions
from toolwire.journal.database.driver import commit
from toolwire.journal.database.location import LEASE_S
from toolwire.journal.database.tables import CONVERSATIONS, OWNERS
from toolwire.journal.ledger import conversation_leases
from toolwire.journal.ledger.conversation_leases import ConversationLease
from toolwire.journal.ledger.leases import Owner, renew
from toolwire.permission.approval import DecisionRefused

# -- one process ------------------------------------------------------------------------------------------------------


def test_a_second_hold_in_one_process_is_refused_until_the_release(opened: Callable[[], Store], other: Store) -> None:
    store, same = opened(), opened()
    lease = hold(store)
    assert lease.conversation == "c-17"
    assert [refusal(one) for one in (store, same, other)] == [busy(os.getpid())] * 3
    hold(store, "c-18")
    done(lease.release())
    done(lease.release())
    again = hold(other)
    # A lease that was released frees nothing that came after it.
    done(lease.release())
    assert refusal(store) == busy(os.getpid())
    done(again.release())
    assert not is_held(store)


def test_of_many_threads_exactly_one_holds(opened: Callable[[], Store], other: Store) -> None:
    stores = [opened(), opened(), other]

    def attempt(number: int) -> ConversationLease | str:
        try:
            return hold(stores[number % 3])
        except DecisionRefused as refused:
            return refused.code

    for _ in range(5):
        with ThreadPoolExecutor(MANY) as threads:
            found = list(threads.map(attempt, range(MANY)))
        (lease,) = [one for one in found if isinstance(one, ConversationLease)]
        assert found.count("conversation_busy") == MANY - 1
        done(lease.release())


def test_a_hold_and_a_release_are_one_transaction_each(store: Store) -> None:
    hold(store, "first")
    writer = store._database.writer
    before = writer.commits
    lease = hold(store)
    held = writer.commits
    done(lease.release())
    assert (held - before, writer.commits - held) == (1, 1)


@pytest.mark.parametrize("name", ["", "x" * 201, "a\nb"])
def test_a_name_that_no_store_can_keep_is_refused(store: Store, name: str) -> None:
    with pytest.raises(ConfigurationError, match="give a text of 1 to 200 printable characters"):
        store.hold_conversation(name, caller=ANN)


@pytest.mark.parametrize("is_cancelled", [False, True], ids=["dropped", "cancelled"])
def test_a_lease_that_nothing_refers_to_ends(store: Store, other: Store, is_cancelled: bool) -> None:
    goes_on = Event()
    store._database.run(lambda _: goes_on.wait(PATIENCE_S))
    held: Future[ConversationLease] = store.hold_conversation("c-17", caller=ANN)
    if is_cancelled:
        assert held.cancel()
    goes_on.set()
    del held
    until(lambda: not is_held(other))


def test_work_that_fails_beside_a_hold_takes_nothing_from_it(store: Store) -> None:
    goes_on = Event()

    def fail(_: object) -> None:
        raise ZeroDivisionError

    lost = hold(store)
    # The row is left over: it names this opening, which has no lease any more.
    store._database._conversations.clear()
    store._database.run(lambda _: goes_on.wait(PATIENCE_S))
    # Both are in one transaction, which is rolled back and written again without the second.
    held, failed = store.hold_conversation("c-17", caller=ANN), store._database.run(fail)
    goes_on.set()
    lease = done(held)
    assert isinstance(failed.exception(PATIENCE_S), ZeroDivisionError)
    assert refusal(store) == busy(os.getpid())
    done(lost.release())
    assert refusal(store) == busy(os.getpid())
    done(lease.release())


# -- the owner --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("stranger", [Caller(principal="bob", tenant="acme"), Caller(principal="ann"), Caller()])
def test_a_conversation_of_another_principal_is_not_permitted(store: Store, stranger: Caller) -> None:
    lease = hold(store)
    assert store.conversations()[0].caller == ANN
    # Also the name of the holder is not for others.
    assert refusal(store, caller=stranger)[0] == "not_permitted"
    done(lease.release())
    assert refusal(store, caller=stranger)[0] == "not_permitted"
    assert hold(store, caller=replace(ANN, agent="other")).conversation == "c-17"


async def test_turns_of_sessions_are_free_while_a_conversation_is_held(store: Store, other: Store) -> None:
    def stock(item: str) -> int:
        """Counts an item."""
        return len(item)

    reply = "<tool_call><name>stock</name><params><item>nut</item></params></tool_call>"
    lease = hold(store)
    for one in (store, other):
        turn = await Session([stock], protocol="xml", store=one, conversation="c-17", caller=ANN).turn(reply)
        assert [result.data for result in turn.results] == [3]
    assert store.save_document("c-17", {}, version=0, caller=ANN) == 1
    assert store.forget(before=time.time() + 60) == 2
    assert refusal(other) == busy(os.getpid())
    done(lease.release())


def test_a_turn_of_another_process_refuses_a_hold_and_one_of_this_process_does_not(store: Store, other: Store) -> None:
    ledger = started(other, "r_1", conversation="c-17", caller=ANN)
    text = (
        f"conversation 'c-17' is in use by process {os.getpid()} on {os.uname().nodename}, which works on run 'r_1': "
        "try again when that run has ended"
    )
    assert refusal(store) == ("conversation_busy", text)
    done(hold(other).release())
    done(ledger.release())
    done(hold(store).release())


# -- the store --------------------------------------------------------------------------------------------------------


def test_closing_the_store_frees_what_it_holds(opened: Callable[[], Store], other: Store) -> None:
    store, same = opened(), opened()
    leases = [hold(store), hold(store, "c-18")]
    store.close()
    assert refusal(other) == busy(os.getpid())
    same.close()
    again = [hold(other), hold(other, "c-18")]
    for lease in leases:
        done(lease.release())
    assert refusal(other) == busy(os.getpid())
    for lease in again:
        done(lease.release())


@pytest.mark.usefixtures("often")
def test_a_release_that_could_not_be_written_locks_nothing_for_ever(
    store: Store, other: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails(*_: object) -> int:
        raise StoreUnavailable("the database is away")

    lease = hold(store)
    with monkeypatch.context() as away:
        away.setattr(conversation_leases, "run_many", fails)
        with pytest.raises(StoreUnavailable, match="the database is away"):
            done(lease.release())
        assert refusal(other) == busy(os.getpid())
        # This process has no lease left, whatever the row says.
        lease = hold(store)
        assert refusal(store) == busy(os.getpid())
        with pytest.raises(StoreUnavailable, match="the database is away"):
            done(lease.release())
    # It is tried again, and then others can hold it.
    until(lambda: not is_held(other))


@pytest.mark.usefixtures("often")
def test_a_hold_whose_commit_did_not_say_whether_it_was_made_locks_nothing_for_ever(
    store: Store, other: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    tries = itertools.count()

    def commit_first_and_fail(connection: Connection) -> None:
        if next(tries) == 0:
            commit(connection)
        raise DBAPIError("COMMIT", None, OSError("the server went away"))

    with monkeypatch.context() as away:
        away.setattr(transactions, "commit", commit_first_and_fail)
        assert isinstance(store.hold_conversation("c-17", caller=ANN).exception(PATIENCE_S), StoreUnavailable)
        assert refusal(other) == busy(os.getpid())
    until(lambda: not is_held(other))


@pytest.mark.usefixtures("often")
def test_a_release_that_is_tried_again_does_not_free_a_later_hold(
    store: Store, other: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails(*_: object) -> int:
        raise StoreUnavailable("the database is away")

    lease, held = hold(store), store._database._conversations
    with monkeypatch.context() as away:
        away.setattr(conversation_leases, "run_many", fails)
        assert isinstance(lease.release().exception(PATIENCE_S), StoreUnavailable)
        lease = hold(store)
    until(lambda: not held._unfreed)
    assert refusal(other) == busy(os.getpid())
    done(lease.release())


# -- other hosts ------------------------------------------------------------------------------------------------------


@pytest.mark.usefixtures("often")
def test_a_process_that_holds_a_conversation_alone_renews_its_row(store: Store) -> None:
    lease = hold(store)
    query = select(OWNERS.c.alive_until).where(OWNERS.c.owner == str(store._database.owner))

    def alive_until() -> float:
        return store._database.read(lambda connection: connection.execute(query).scalar()) or 0.0

    until(lambda: alive_until() > 0)
    first = alive_until()
    until(lambda: alive_until() > first)
    done(lease.release())


FAR = replace(Owner.this(), host="far boot names")


def hold_far_away(store: Store, *, held_until: float, renewed_at: float | None) -> None:
    def job(connection: Connection) -> None:
        values = {"held_by": str(FAR), "held_until": held_until}
        connection.execute(update(CONVERSATIONS).values(values))
        if renewed_at is not None:
            renew(connection, FAR, renewed_at, lease_until=renewed_at + LEASE_S)

    done(store._database.run(job))


@pytest.mark.parametrize(
    ("held_s", "renewed_s", "is_busy"),
    [
        (LEASE_S / 2, None, True),
        (-1, None, False),
        (-1, 0, True),
        (-1, -LEASE_S - 1, False),
        (LEASE_S / 2, -LEASE_S - 1, True),
    ],
)
def test_a_process_on_another_host_holds_as_long_as_its_lease(
    store: Store, held_s: float, renewed_s: float | None, is_busy: bool
) -> None:
    lease, now = hold(store), time.time()
    hold_far_away(store, held_until=now + held_s, renewed_at=None if renewed_s is None else now + renewed_s)
    if is_busy:
        code, text = refusal(store)
        assert (code, f"process {FAR.process_id} on far:" in text) == ("conversation_busy", True)
        return
    # Ours was lost while this process stood still, and its release is not that of the new one.
    again = hold(store)
    done(lease.release())
    assert refusal(store) == busy(os.getpid())
    done(again.release())


def test_a_hold_lasts_before_its_first_renewal(store: Store) -> None:
    lease, held_at = hold(store), store.clock()
    query = select(CONVERSATIONS.c.held_until)
    held_until = store._database.read(lambda connection: connection.execute(query).scalar_one())
    # The clock of a server is measured again now and then.
    assert held_at + LEASE_S - PATIENCE_S / 2 < held_until <= held_at + LEASE_S + 1
    done(lease.release())


def test_a_lease_that_another_host_took_over_is_not_released_for_it(store: Store) -> None:
    lease = hold(store)
    hold_far_away(store, held_until=time.time() + LEASE_S, renewed_at=None)
    done(lease.release())
    assert refusal(store)[0] == "conversation_busy"
