"""Two processes whose transactions lock the same conversations, runs and requests never wait for each other."""

from __future__ import annotations

import os
import select as readiness
from typing import Any

import pytest
from benchmarks.kills import in_child
from sqlalchemy import text

from tests.journal.database.test_forks import ended
from tests.journal.world import done
from tests.patience import PATIENCE_S
from toolwire.journal.database import work
from toolwire.journal.ledger.conversations import lock_conversation
from toolwire.journal.store import Store
from toolwire.vocabulary.calls import NOBODY

MEETING_S = 0.5
"""Seconds that one process waits inside its first lock for the other to have its own first one."""


def lock_both(store: Store, names: tuple[str, str], mine: int, theirs: int) -> None:
    """Locks two conversations in one transaction, and waits between them until the other process has one too."""
    database = store._database

    def lock_one(connection: Any, name: str) -> None:
        lock_conversation(connection, database.sealer, name, NOBODY, 1.0)

    def lock_first(connection: Any) -> None:
        lock_one(connection, names[0])
        os.write(mine, b".")
        readiness.select([theirs], [], [], MEETING_S)

    held = database.run(lambda _: readiness.select([theirs], [], [], 0.05))
    both = [
        database.run(lock_first, locks=(names[0],)),
        database.run(lambda connection: lock_one(connection, names[1]), locks=(names[1],)),
    ]
    done(held)
    for one in both:
        one.result(PATIENCE_S)


def count_deadlocks(store: Store, names: tuple[str, str]) -> int:
    """Locks the conversations in this process and, in the other order, in another one."""
    here, there = os.pipe(), os.pipe()

    def work_in_child() -> None:
        with Store.open(store.url) as other:
            lock_both(other, (names[1], names[0]), there[1], here[0])

    child = in_child(work_in_child)
    lock_both(store, names, here[1], there[0])
    assert ended(child) == 0
    query = text("SELECT deadlocks FROM pg_stat_database WHERE datname = current_database()")
    # The server counts when a connection is idle or ends.
    return store._database.read(lambda connection: connection.execute(query).scalar_one())


@pytest.mark.timeout(60)
@pytest.mark.parametrize("url", ["postgresql"], indirect=True)
def test_two_processes_lock_the_same_conversations_in_one_order(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    before = count_deadlocks(store, ("new 1", "new 2"))
    assert count_deadlocks(store, ("new 1", "new 2")) == before
    with monkeypatch.context() as unprotected:
        unprotected.setattr(work, "lock_in_order", lambda *_: None)
        # The control. Both were written all the same: a transaction that the server ended is tried again. On a busy
        # machine the two may miss each other, and the server counts late, so they try more than once.
        assert any(count_deadlocks(store, ("new 1", "new 2")) > before for _ in range(8))
