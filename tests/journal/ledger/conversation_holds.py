"""Holding conversations, for the tests of their leases."""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest

from tests.journal.world import done
from toolwire import Caller, Store
from toolwire.journal.database.location import location_of
from toolwire.journal.ledger.conversation_leases import ConversationLease
from toolwire.permission.approval import DecisionRefused
from toolwire.runtime.runtime import Runtime

ANN = Caller(principal="ann", agent="clerk", tenant="acme")
MANY = 20
"""Threads or processes that want one conversation at once."""


def hold(store: Store, conversation: str = "c-17", caller: Caller = ANN) -> ConversationLease:
    return done(store.hold_conversation(conversation, caller=caller))


def refusal(store: Store, conversation: str = "c-17", caller: Caller = ANN) -> tuple[str, str]:
    with pytest.raises(DecisionRefused) as refused:
        hold(store, conversation, caller)
    return refused.value.code, str(refused.value)


def busy(process_id: int) -> tuple[str, str]:
    host = os.uname().nodename
    return (
        "conversation_busy",
        f"conversation 'c-17' is held by a run of process {process_id} on {host}: try again when that run has ended",
    )


def is_held(store: Store) -> bool:
    try:
        done(hold(store).release())
    except DecisionRefused:
        return True
    return False


@pytest.fixture
def other(url: str) -> Iterator[Store]:
    """Another opening of the store. To the database it is another process of this host."""
    runtime = Runtime()
    yield Store(location_of(url), runtime=runtime)
    runtime.close()
