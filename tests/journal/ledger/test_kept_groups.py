"""The active tool groups of a conversation, in both databases and in rows of an older toolwire."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from sqlalchemy import update

from toolwire.journal.database.tables import CONVERSATIONS
from toolwire.journal.ledger.conversations import ConversationState, state_of
from toolwire.journal.ledger.forms import encode_form, plain_form
from toolwire.journal.store import Store
from toolwire.permission.approval import DecisionRefused
from toolwire.vocabulary.calls import Caller

ANN, EVE = Caller(principal="ann"), Caller(principal="eve")


def test_the_groups_are_those_that_were_kept_last(opened: Callable[[], Store]) -> None:
    store = opened()
    assert store.active_groups("c", caller=ANN) == frozenset()
    store.keep_groups("c", ["maps", "mail"], caller=ANN).result()
    assert opened().active_groups("c", caller=ANN) == {"maps", "mail"}
    store.keep_groups("c", ["mail"], caller=ANN).result()
    store.keep_groups("other", ["b\u00fccher \ud83d"], caller=ANN).result()
    assert store.active_groups("c", caller=Caller(principal="ann", agent="second")) == {"mail"}
    assert store.active_groups("other", caller=ANN) == {"b\u00fccher \ud83d"}
    store.keep_groups("c", [], caller=ANN).result()
    assert store.active_groups("c", caller=ANN) == frozenset()


def test_the_groups_of_another_principal_are_neither_read_nor_changed(store: Store) -> None:
    store.keep_groups("c", ["maps"], caller=ANN).result()
    assert store.active_groups("c", caller=EVE) == frozenset()
    with pytest.raises(DecisionRefused, match="another principal"):
        store.keep_groups("c", [], caller=EVE).result()
    assert store.active_groups("c", caller=ANN) == {"maps"}


def test_the_other_state_of_a_conversation_stays(store: Store) -> None:
    version = store.save_document("c", {"a": 1}, version=0, caller=ANN)
    store.keep_groups("c", ["maps"], caller=ANN).result()
    assert (store.document("c", caller=ANN).version, store.conversations()[0].caller) == (version, ANN)


def test_a_row_of_an_older_toolwire_has_no_groups_and_takes_some(store: Store) -> None:
    store.save_document("c", {}, version=0, caller=ANN)
    database = store._database  # pyright: ignore[reportPrivateUsage]
    old = encode_form({"caller": plain_form(ANN), "taints": ["private"]})
    sealed = database.sealer.seal(old, "conversations", "c", "state")
    assert state_of(database.sealer, "c", sealed) == ConversationState(caller=ANN, taints=frozenset({"private"}))
    row = CONVERSATIONS.c.conversation == "c"
    database.run(lambda connection: connection.execute(update(CONVERSATIONS).where(row).values(state=sealed))).result()
    assert store.active_groups("c", caller=ANN) == frozenset()
    store.keep_groups("c", ["maps"], caller=ANN).result()
    assert (store.active_groups("c", caller=ANN), store.conversations()[0].taints) == ({"maps"}, ("private",))
