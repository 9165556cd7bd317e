"""The state of a session whose turns are on record: the session that resumes gives its own."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.session.test_suspended import decided, waiting
from tests.session.till import calls, program
from toolwire import Session, ToolSpec, Turn
from toolwire.journal.store import Store
from toolwire.permission.approval import DecisionRefused
from toolwire.session.runs.resume import RunStore

PAY = ("pay", {"amount": 5})


class Bank:
    """The payments and look-ups, each with its token."""

    def __init__(self) -> None:
        self.used: list[tuple[str, Any]] = []

    def pay(self, amount: int, token: Any) -> str:
        """Pays."""
        self.used.append(("pay", token))
        return f"paid {amount}"

    def balance(self, token: Any) -> int:
        """How much there is."""
        self.used.append(("balance", token))
        return 7

    def session(self, store: RunStore, state: dict[str, Any] | None, *, protocol: str = "openai") -> Session:
        """A session of this bank, as a process that has just started would make it."""
        pay = ToolSpec.from_function(self.pay, permission="confirm").bind("token")
        balance = ToolSpec.from_function(self.balance).bind("token", default="nobody")
        return Session([pay, balance], protocol=protocol, store=store, state=state)


def kinds(turn: Turn) -> list[Any]:
    return [result.failure and result.failure.kind for result in turn.results]


class Client:
    """A live connection: nothing that a store could hold."""


async def test_a_resumed_call_gets_the_value_of_the_session_that_resumes(store: RunStore) -> None:
    bank, before, after = Bank(), Client(), Client()
    turn = await bank.session(store, {"token": before}).turn(calls(PAY))
    resuming = bank.session(store, {"token": after})
    done = await resuming.resume(waiting(turn)[0].run_id, decided(waiting(turn), "approve"))
    assert kinds(done) == [None]
    assert len(bank.used) == 1
    assert bank.used[0][1] is after


async def test_a_resumed_program_gets_the_values_of_the_session_that_resumes(store: RunStore) -> None:
    bank, before, after = Bank(), Client(), Client()
    code = "print(balance(), pay(5), balance())"
    turn = await bank.session(store, {"token": before}, protocol="attp").turn(program(code))
    resuming = bank.session(store, {"token": after}, protocol="attp")
    done = await resuming.resume(waiting(turn)[0].run_id, decided(waiting(turn), "approve"))
    assert done.text == "7 paid 5 7\n"
    assert [name for name, _ in bank.used] == ["balance", "pay", "balance"]
    assert [token is after for _, token in bank.used] == [False, True, True]


async def test_a_call_approved_with_one_token_never_runs_with_another(store: RunStore) -> None:
    bank = Bank()
    turn = await bank.session(store, {"token": "ann"}).turn(calls(PAY))
    resuming = bank.session(store, {"token": "bob"})
    done = await resuming.resume(waiting(turn)[0].run_id, decided(waiting(turn), "approve"))
    assert (kinds(done), bank.used) == (["approval_mismatch"], [])


async def test_the_control_with_the_same_token_it_runs(store: RunStore) -> None:
    bank = Bank()
    turn = await bank.session(store, {"token": "ann"}).turn(calls(PAY))
    resuming = bank.session(store, {"token": "ann"})
    done = await resuming.resume(waiting(turn)[0].run_id, decided(waiting(turn), "approve"))
    assert (kinds(done), bank.used) == ([None], [("pay", "ann")])


async def test_a_session_that_resumes_without_a_value_runs_nothing(store: RunStore) -> None:
    bank = Bank()
    turn = await bank.session(store, {"token": "ann"}).turn(calls(PAY))
    resuming = bank.session(store, None)
    done = await resuming.resume(waiting(turn)[0].run_id, decided(waiting(turn), "approve"))
    assert (kinds(done), bank.used) == (["unavailable"], [])


async def test_an_edit_is_checked_with_the_state_of_the_session_that_resumes(store: RunStore) -> None:
    bank = Bank()
    turn = await bank.session(store, {"token": "ann"}).turn(calls(PAY))
    edit = decided(waiting(turn), "edit", arguments={"amount": 6})
    with pytest.raises(DecisionRefused, match="its state has no 'token'"):
        await bank.session(store, None).resume(waiting(turn)[0].run_id, edit)
    done = await bank.session(store, {"token": "ann"}).resume(waiting(turn)[0].run_id, edit)
    assert ([result.data for result in done.results], bank.used) == (["paid 6"], [("pay", "ann")])


async def test_no_store_holds_a_value_of_a_state(tmp_path: Path) -> None:
    bank, secret = Bank(), "k-5c1e7-never-stored"
    with Store.open(f"sqlite:///{tmp_path}/runs.db", key=bytes(32)) as store:
        turn = await bank.session(store, {"token": secret}).turn(calls(PAY, ("balance", {})))
        assert turn.suspended is not None
        assert secret not in turn.suspended.to_json()
        done = await bank.session(store, {"token": secret}).resume(
            turn.suspended.run_id, decided(waiting(turn), "approve")
        )
        assert kinds(done) == [None, None]
    assert sorted(bank.used) == [("balance", secret), ("pay", secret)]
    written = _bytes_under(tmp_path)
    assert b"balance" in written
    assert secret.encode() not in written


def _bytes_under(folder: Path) -> bytes:
    return b"".join(file.read_bytes() for file in folder.rglob("*") if file.is_file())
