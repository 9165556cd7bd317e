"""A turn with a key runs once in its conversation, whoever asks again, and in whichever process."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, cast

import pytest

from toolwire import (
    Caller,
    ConfigurationError,
    Decision,
    DecisionRefused,
    Reply,
    Session,
    Store,
    ToolCall,
    ToolRegistry,
    ToolSpec,
)
from toolwire.session.runs.resume import RunStore
from toolwire.session.runs.turn_keys import KEY_LIMIT, keyed_run_id
from toolwire.testing import MemoryStore


class Bank:
    def __init__(self) -> None:
        self.paid: list[int] = []

    def pay(self, amount: int) -> int:
        """Pays."""
        self.paid.append(amount)
        return amount

    async def slow(self, amount: int) -> int:
        """Pays slowly."""
        await asyncio.sleep(0.3)
        self.paid.append(amount)
        return amount


@pytest.fixture
def bank() -> Bank:
    return Bank()


def session(bank: Bank, store: Any, *, permission: Any = "auto", conversation: str = "c-1", **options: Any) -> Session:
    registry = ToolRegistry()
    registry.register(bank.pay, permission=permission)
    registry.register(bank.slow)
    return Session(registry, protocol="openai", store=store, conversation=conversation, **options)


def reply(amount: int, tool: str = "pay") -> Reply:
    return Reply(calls=(ToolCall(tool, {"amount": amount}, id="call_1"),))


def test_the_same_key_gives_the_recorded_turn(store: RunStore, bank: Bank) -> None:
    first = session(bank, store).run_turn(reply(5), key="m-1")
    again = session(bank, store).run_turn(reply(5), key="m-1")
    assert (first.results[0].text, again.results[0].text, bank.paid) == ("5", "5", [5])
    assert (again.run_id, again.messages) == (first.run_id, first.messages)


def test_without_a_key_it_runs_twice(store: RunStore, bank: Bank) -> None:
    """The control."""
    for _ in range(2):
        session(bank, store).run_turn(reply(5))
    assert bank.paid == [5, 5]


def test_the_same_key_goes_on_with_what_waits(store: RunStore, bank: Bank) -> None:
    waits = [session(bank, store, permission="confirm").run_turn(reply(5), key="m-1") for _ in range(2)]
    asked = [turn.suspended.pending[0].id for turn in waits if turn.suspended is not None]
    assert len(asked) == 2
    assert asked[0] == asked[1]
    store.decide(asked[0], Decision(verdict="approve"))
    for _ in range(2):
        turn = session(bank, store, permission="confirm").run_turn(reply(5), key="m-1")
        assert (turn.suspended, turn.results[0].text) == (None, "5")
    assert bank.paid == [5]


def test_another_reply_under_a_known_key_diverges(store: RunStore, bank: Bank) -> None:
    session(bank, store).run_turn(reply(5), key="m-1")
    with pytest.raises(DecisionRefused, match="another reply has run with this key") as refused:
        session(bank, store).run_turn(reply(6), key="m-1")
    assert (refused.value.code, bank.paid) == ("divergence", [5])
    assert session(bank, store).run_turn(reply(5), key="m-1").results[0].text == "5"


def test_a_reply_without_calls_under_a_known_key_diverges(store: RunStore, bank: Bank) -> None:
    session(bank, store).run_turn(reply(5), key="m-1")
    with pytest.raises(DecisionRefused) as refused:
        session(bank, store).run_turn(Reply(text="Hello."), key="m-1")
    assert refused.value.code == "divergence"


def test_another_key_or_conversation_is_another_turn(store: RunStore, bank: Bank) -> None:
    session(bank, store).run_turn(reply(1), key="m-1")
    session(bank, store).run_turn(reply(2), key="m-2")
    session(bank, store, conversation="c-2").run_turn(reply(3), key="m-1")
    assert bank.paid == [1, 2, 3]
    assert len({keyed_run_id(*pair) for pair in (("a", "bc"), ("ab", "c"), ("1 a", "b"), ("", "1 ab"))}) == 4


def test_another_principal_does_not_get_the_turn(store: RunStore, bank: Bank) -> None:
    session(bank, store, caller=Caller(principal="ann")).run_turn(reply(5), key="m-1")
    with pytest.raises(DecisionRefused) as refused:
        session(bank, store, caller=Caller(principal="bob")).run_turn(reply(5), key="m-1")
    assert (refused.value.code, bank.paid) == ("not_permitted", [5])


async def test_a_turn_at_work_does_not_run_beside_itself(store: RunStore, bank: Bank) -> None:
    async def take() -> str:
        try:
            return (await session(bank, store).turn(reply(5, "slow"), key="m-1")).results[0].text
        except DecisionRefused as refused:
            return refused.code

    said = await asyncio.gather(take(), take())
    assert bank.paid == [5]
    assert sorted(said) == ["5", "run_busy"]
    assert await take() == "5"
    assert bank.paid == [5]


def test_a_forgotten_turn_is_refused(store: RunStore, bank: Bank) -> None:
    if isinstance(store, MemoryStore):
        pytest.skip("it forgets nothing")
    assert isinstance(store, Store)
    session(bank, store).run_turn(reply(5), key="m-1")
    session(bank, store).run_turn(reply(6))
    assert store.forget(before=time.time() + 60) == 2
    assert store.runs() == []
    with pytest.raises(DecisionRefused, match="its record was deleted") as refused:
        session(bank, store).run_turn(reply(5), key="m-1")
    assert (refused.value.code, bank.paid) == ("run_ended", [5, 6])
    session(bank, store).run_turn(reply(7), key="m-2")
    assert bank.paid == [5, 6, 7]
    assert store.verify().is_whole


def test_a_reply_without_calls_needs_no_record(store: RunStore, bank: Bank) -> None:
    for _ in range(2):
        turn = session(bank, store).run_turn(Reply(text="Hello."), key="m-1")
        assert turn.reply.text == "Hello."


WRONG_KEYS = [("", "''"), (5, "5"), ("x" * (KEY_LIMIT + 1), "'xxx")]


@pytest.mark.parametrize(("key", "shown"), WRONG_KEYS)
def test_a_wrong_key_is_refused(key: Any, shown: str, bank: Bank) -> None:
    with pytest.raises(ConfigurationError, match=rf"turn\(key={shown}.*give a text of 1 to {KEY_LIMIT} characters"):
        session(bank, MemoryStore()).run_turn(reply(5), key=key)
    assert bank.paid == []


def test_the_longest_key_is_taken(bank: Bank) -> None:
    session(bank, MemoryStore()).run_turn(reply(5), key="x" * KEY_LIMIT)
    assert bank.paid == [5]


def test_a_key_needs_a_store(bank: Bank) -> None:
    with pytest.raises(ConfigurationError, match="give the session a store"):
        session(bank, None).run_turn(reply(5), key="m-1")
    assert bank.paid == []


def read_page() -> str:
    """Reads a page of strangers."""
    return "page"


def read_mail() -> str:
    """Reads the user's mail."""
    return "mail"


def send(text: str) -> str:
    """Sends."""
    return text


def guarded(store: Any) -> Session:
    return Session(
        [
            ToolSpec.from_function(read_page, labels=["untrusted"], effects=["read"]),
            ToolSpec.from_function(read_mail, labels=["private"], effects=["read"]),
            ToolSpec.from_function(send, effects=["send"]),
        ],
        protocol="openai",
        store=store,
        conversation="c-1",
    )


@pytest.mark.parametrize("is_stored", [True, False])
def test_a_call_is_explained_with_what_the_conversation_has_read(is_stored: bool, tmp_path: Path) -> None:
    with Store.open(f"sqlite:///{tmp_path}/runs.db", key=bytes(32)) as store:
        made = guarded(store if is_stored else None)
        assert made.explain_call("send", {"text": "a"}).verdict.effect == "auto"
        made.run_turn(Reply(calls=(ToolCall("read_page", {}), ToolCall("read_mail", {}))))
        assert made.explain_call("send", {"text": "a"}).verdict.effect == "confirm"
        # Another process of the conversation knows it by the store.
        expected = "confirm" if is_stored else "auto"
        assert guarded(store if is_stored else None).explain_call("send", {"text": "a"}).verdict.effect == expected


def test_only_what_the_model_may_call_is_explained() -> None:
    made = Session([send], protocol="openai", permissions={"send": "confirm"})
    assert made.explain_call("send", {"text": "a"}).verdict.effect == "confirm"
    with pytest.raises(ValueError, match=r"no tool is named 'sent'.*send"):
        made.explain_call("sent", {})
    with pytest.raises(ConfigurationError, match="text"):
        made.explain_call("send", {})


def test_a_new_key_asks_whether_it_is_on_record_and_a_known_one_reads_its_run(
    bank: Bank, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[str] = []

    def watch(name: str, real: Callable[[Store, str], Any]) -> None:
        monkeypatch.setattr(Store, name, lambda store, run_id: (asked.append(name), real(store, run_id))[1])

    watch("has_run", Store.has_run)
    watch("run", Store.run)
    with Store.open(f"sqlite:///{tmp_path}/runs.db", key=bytes(32)) as store:
        made = session(bank, store)
        made.run_turn(reply(5), key="m-1")
        assert asked == ["has_run"]
        made.run_turn(reply(5), key="m-1")
        assert asked == ["has_run", "has_run", "run"]
    assert bank.paid == [5]


def test_a_store_of_ones_own_need_not_tell_whether_it_has_a_run(bank: Bank, tmp_path: Path) -> None:
    class Own:
        def __init__(self, store: Store) -> None:
            self._store = store

        def __getattr__(self, name: str) -> Any:
            if name == "has_run":
                raise AttributeError(name)
            return getattr(self._store, name)

    with Store.open(f"sqlite:///{tmp_path}/runs.db", key=bytes(32)) as store:
        made = session(bank, cast("Any", Own(store)))
        for _ in range(2):
            made.run_turn(reply(5), key="m-1")
    assert bank.paid == [5]
