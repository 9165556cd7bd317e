"""Turns, processes and days belong to one conversation: its runs are found, its guard holds, its document is kept."""

from __future__ import annotations

import asyncio
import gzip
import multiprocessing
import os
import re
import signal
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from multiprocessing.connection import Connection
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import Connection as DatabaseConnection
from sqlalchemy import text, update

from tests.forks import forked
from tests.journal.conftest import opened as opened
from tests.journal.conftest import url as url
from tests.journal.world import on_record
from tests.patience import PATIENCE_S
from tests.session.saved import FOLDERS, KEY
from tests.session.till import Till, calls, texts
from toolwire import ConfigurationError, Session, Store, ToolRegistry, ToolSpec
from toolwire.journal.conversation_info import NAME_LIMIT
from toolwire.journal.database.location import LEASE_S
from toolwire.journal.database.tables import RUNS
from toolwire.journal.ledger.leases import Owner, renew
from toolwire.journal.run import RunStart
from toolwire.journal.store_conversations import DOCUMENT_LIMIT_BYTES
from toolwire.log import LogFilter
from toolwire.permission.approval import DecisionRefused
from toolwire.session.runs.resume import RunStore
from toolwire.vocabulary.calls import Caller
from toolwire.vocabulary.errors import DocumentChanged

ANN = Caller(principal="ann", agent="clerk", tenant="acme")
PRICE = calls(("price", {"thing": "tea"}))
PAY = calls(("pay", {"amount": 5}))


@pytest.fixture
def kept(opened: Callable[[], Store]) -> Store:
    """A real store: the one in memory lists nothing."""
    return opened()


def change(store: Store, statement: str, **values: Any) -> int:
    """Changes the database behind the store's back."""
    job = store._database.run(lambda connection: connection.execute(text(statement), values).rowcount)
    return job.result(timeout=PATIENCE_S)


# -- names ------------------------------------------------------------------------------------------------------------


async def test_runs_and_every_log_row_carry_the_conversation_and_the_caller(kept: Store) -> None:
    till = Till()
    session = till.session(kept, conversation="c-17", caller=ANN)
    turn = await session.turn(calls(("price", {"thing": "tea"}), ("pay", {"amount": 5})))
    assert turn.suspended is not None
    again = till.session(kept, conversation="c-17", caller=Caller(principal="ann", agent="other", tenant="acme"))
    await again.resume(turn.suspended, [{"request_id": turn.suspended.pending[0].id, "verdict": "approve"}])
    await till.session(kept, caller=ANN).turn(PRICE)

    (run,) = kept.runs(conversation="c-17")
    assert (run.run_id, run.conversation, run.caller) == (turn.suspended.run_id, "c-17", ANN)
    rows = kept.log(LogFilter(conversation="c-17"))
    assert {row.kind for row in rows} == {"run", "call", "request", "decision"}
    assert {row.run_id for row in rows} == {run.run_id}
    assert {(row.principal, row.tenant) for row in rows} == {("ann", "acme")}
    assert {row.kind for row in rows if row.agent == "clerk"} == {"run", "call", "request", "decision"}
    assert rows == kept.log(LogFilter(run_id=run.run_id, principal="ann", tenant="acme"))
    assert kept.verify().is_whole


async def test_a_session_without_a_name_is_a_conversation_of_its_own(kept: Store) -> None:
    sessions = [Till().session(kept) for _ in range(2)]
    for session in (*sessions, sessions[0]):
        await session.turn(PRICE)
    names = [session.conversation for session in sessions]
    assert all(re.fullmatch(r"c_[0-9a-f]{32}", name) for name in names)
    assert [len(kept.runs(conversation=name)) for name in names] == [2, 1]


@pytest.mark.parametrize("name", ["", "x" * (NAME_LIMIT + 1), "a\nb", "a\0", "\ud800", 17, b"c"])
def test_a_name_that_no_store_can_keep_is_refused_with_what_to_write(kept: Store, name: Any) -> None:
    asked: list[Callable[[], object]] = [
        lambda: Session([], conversation=name),
        lambda: kept.document(name),
        lambda: kept.save_document(name, {}, version=0),
        lambda: kept.runs(conversation=name),
    ]
    for ask in asked:
        with pytest.raises(ConfigurationError, match="give a text of 1 to 200 printable characters"):
            ask()


def test_a_name_of_the_longest_length_and_of_any_script_is_taken() -> None:
    assert [Session([], conversation=name).conversation for name in ("x" * NAME_LIMIT, "ö-会話 17")]


async def test_conversations_are_listed_latest_first_with_their_caller_and_their_runs(kept: Store) -> None:
    for name in ("c-1", "c-2", "c-1"):
        await Till().session(kept, conversation=name, caller=ANN).turn(PRICE)
    kept.save_document("c-2", {"turns": 1}, version=0)
    await Till().session(kept, conversation="c-1", caller=ANN).turn(PRICE)
    found = kept.conversations()
    assert [(one.conversation, one.runs, one.version, one.caller) for one in found] == [
        ("c-1", 3, 0, ANN),
        ("c-2", 1, 1, ANN),
    ]
    assert kept.conversations(limit=1) == found[:1]


# -- the guard --------------------------------------------------------------------------------------------------------


class House:
    """A registry with mail, a payment that waits for a person, and a way out."""

    def __init__(self, labels: list[Any]) -> None:
        self.sent: list[str] = []
        self.registry = ToolRegistry()
        self.registry.register(ToolSpec.from_function(self.mail, labels=labels))
        self.registry.register(ToolSpec.from_function(self.pay, permission="confirm"))
        self.registry.register(ToolSpec.from_function(self.send, effects=["send"]))

    def mail(self) -> str:
        """Reads the mail."""
        return "hello"

    def pay(self, amount: int) -> str:
        """Pays."""
        return f"paid {amount}"

    def send(self, text: str) -> None:
        """Sends."""
        self.sent.append(text)

    def session(self, store: RunStore, conversation: str) -> Session:
        """A session as a process that has just started would make it."""
        return Session(self.registry, protocol="openai", store=store, conversation=conversation)


READS, SENDS = calls(("mail", {})), calls(("send", {"text": "hello"}))
BOTH: list[Any] = ["private", "untrusted"]
GUARDED = pytest.mark.parametrize(
    ("labels", "later", "sent"),
    [(BOTH, "c-1", []), ([], "c-1", ["hello"]), (BOTH, "c-2", ["hello"])],
    ids=["attack", "control: nothing was read", "without the protection: another conversation"],
)


@GUARDED
@pytest.mark.threat(25)
async def test_a_new_session_remembers_what_its_conversation_has_read(
    store: RunStore, labels: list[Any], later: str, sent: list[str]
) -> None:
    house = House(labels)
    await house.session(store, "c-1").turn(READS)
    turn = await house.session(store, later).turn(SENDS)
    assert (house.sent, turn.suspended is None) == (sent, bool(sent))


@GUARDED
@pytest.mark.threat(25)
async def test_a_session_that_was_open_before_learns_what_another_one_has_read(
    store: RunStore, labels: list[Any], later: str, sent: list[str]
) -> None:
    house = House(labels)
    early = house.session(store, later)
    await house.session(store, "c-1").turn(READS)
    await early.turn(SENDS)
    assert house.sent == sent


@GUARDED
@pytest.mark.threat(25)
async def test_a_turn_that_waits_has_read_for_its_conversation(
    store: RunStore, labels: list[Any], later: str, sent: list[str]
) -> None:
    house = House(labels)
    turn = await house.session(store, "c-1").turn(calls(("mail", {}), ("pay", {"amount": 5})))
    assert turn.suspended is not None
    await house.session(store, later).turn(SENDS)
    assert house.sent == sent


async def test_the_list_names_the_labels_that_a_conversation_has_read(kept: Store) -> None:
    await House(BOTH).session(kept, "c-1").turn(READS)
    assert [one.taints for one in kept.conversations()] == [("private", "untrusted")]


@pytest.mark.threat(19)
async def test_labels_that_are_removed_or_exchanged_in_the_database_are_noticed(kept: Store) -> None:
    house = House(BOTH)
    await house.session(kept, "c-1").turn(READS)
    await house.session(kept, "c-2").turn(calls(("pay", {"amount": 1})))
    clean = "(SELECT state FROM conversations WHERE conversation = 'c-2')"
    assert change(kept, f"UPDATE conversations SET state = {clean} WHERE conversation = 'c-1'") == 1
    with pytest.raises(DecisionRefused) as refused:
        await house.session(kept, "c-1").turn(SENDS)
    assert (refused.value.code, house.sent) == ("bad_mac", [])


# -- who and where ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("other", [Caller(principal="bob", tenant="acme"), Caller(principal="ann"), Caller()])
async def test_a_conversation_of_another_principal_is_not_permitted(store: RunStore, other: Caller) -> None:
    till = Till()
    await till.session(store, conversation="c-17", caller=ANN).turn(PRICE)
    with pytest.raises(DecisionRefused, match="another principal's") as refused:
        await till.session(store, conversation="c-17", caller=other).turn(PRICE)
    assert (refused.value.code, till.asked) == ("not_permitted", ["tea"])
    await till.session(store, conversation="c-17", caller=Caller(principal="ann", tenant="acme", agent="b")).turn(PRICE)
    assert till.asked == ["tea", "tea"]


def work(url: str, pipe: Connection) -> None:
    """A process that makes a turn, and stays in its call until it is told to end."""

    def price(thing: str) -> int:
        """The price of a thing."""
        pipe.send(os.getpid())
        assert pipe.poll(PATIENCE_S)
        return len(thing)

    with Store.open(url) as store:
        session = Session([price], protocol="openai", store=store, conversation="c-17", caller=ANN)
        session.run_turn(PRICE)
    pipe.send("ended")


@pytest.fixture
def other(url: str) -> Iterator[tuple[BaseProcess, Any]]:
    """Another process in the middle of a turn of the conversation."""
    here, there = multiprocessing.Pipe()
    process = forked(work, url, there)
    there.close()
    assert here.poll(PATIENCE_S)
    assert here.recv() == process.pid
    yield process, here
    process.kill()
    process.join()


async def test_the_second_process_hears_who_is_busy_and_goes_on_when_the_turn_has_ended(
    kept: Store, other: tuple[BaseProcess, Any]
) -> None:
    process, pipe = other
    till = Till()
    with pytest.raises(DecisionRefused) as refused:
        await till.session(kept, conversation="c-17", caller=ANN).turn(PRICE)
    (held,) = kept.runs(conversation="c-17")
    assert (refused.value.code, till.asked, held.is_held) == ("conversation_busy", [], True)
    assert f"process {process.pid} on " in str(refused.value)
    assert held.run_id in str(refused.value)
    # Another conversation is free meanwhile.
    await till.session(kept, conversation="c-18", caller=ANN).turn(PRICE)
    pipe.send("go on")
    assert pipe.poll(PATIENCE_S)
    assert pipe.recv() == "ended"
    turn = await till.session(kept, conversation="c-17", caller=ANN).turn(PRICE)
    assert (texts(turn.messages), till.asked) == (["3"], ["tea", "tea"])


@pytest.mark.parametrize("is_renewed", [True, False])
async def test_a_process_on_another_host_keeps_its_conversation_by_the_one_row_that_it_renews(
    kept: Store, is_renewed: bool
) -> None:
    far, now = replace(Owner.this(), host="far boot names"), time.time()
    run = RunStart(run_id="r_far", reply={"calls": []}, protocol="openai", caller=ANN, conversation="c-17")
    ledger = on_record(kept, run)

    def work_far_away(connection: DatabaseConnection) -> None:
        # Its last record is old, because its tool takes long.
        values = {"owner": str(far), "lease_until": now - 1}
        connection.execute(update(RUNS).where(RUNS.c.run_id == "r_far").values(values))
        renew(connection, far, now, lease_until=now + LEASE_S if is_renewed else now - LEASE_S)

    kept._database.run(work_far_away).result(PATIENCE_S)
    till = Till()
    turn = till.session(kept, conversation="c-17", caller=ANN).turn(PRICE)
    if is_renewed:
        with pytest.raises(DecisionRefused) as refused:
            await turn
        assert (refused.value.code, till.asked) == ("conversation_busy", [])
    else:
        assert texts((await turn).messages) == ["3"]
    assert ledger.run_id == "r_far"


async def test_a_turn_that_was_killed_is_found_by_its_conversation_and_goes_on(
    kept: Store, other: tuple[BaseProcess, Any]
) -> None:
    process, _ = other
    assert process.pid is not None
    os.kill(process.pid, signal.SIGKILL)
    process.join(PATIENCE_S)
    (lost,) = kept.runs(conversation="c-17", status="running")
    assert (lost.is_held, lost.caller, lost.tools) == (False, ANN, ("price",))
    session = Till().session(kept, conversation="c-17", caller=ANN)
    turn = await session.resume(lost.run_id)
    assert turn.suspended is not None
    # The call may have run before the process was killed, so a person is asked.
    assert [request.attempt for request in turn.suspended.pending] == [2]
    done = await session.resume(lost.run_id, [{"request_id": turn.suspended.pending[0].id, "verdict": "approve"}])
    assert texts(done.messages) == ["3"]
    assert [run.status for run in kept.runs(conversation="c-17")] == ["finished"]


async def test_a_suspended_run_does_not_go_on_while_another_process_is_at_work(
    opened: Callable[[], Store], url: str
) -> None:
    kept = opened()
    till = Till()
    waiting = await till.session(kept, conversation="c-17", caller=ANN).turn(PAY)
    assert waiting.suspended is not None
    here, there = multiprocessing.Pipe()
    process = forked(work, url, there)
    there.close()
    try:
        assert here.poll(PATIENCE_S)
        here.recv()
        session = till.session(kept, conversation="c-17", caller=ANN)
        decisions = [{"request_id": waiting.suspended.pending[0].id, "verdict": "approve"}]
        with pytest.raises(DecisionRefused) as refused:
            await session.resume(waiting.suspended, decisions)
        assert (refused.value.code, till.paid) == ("conversation_busy", [])
        here.send("go on")
        process.join(PATIENCE_S)
        assert process.exitcode == 0
        await session.resume(waiting.suspended.run_id, decisions)
        assert till.paid == [5]
    finally:
        process.kill()
        process.join()


async def test_a_turn_that_was_cancelled_is_found_by_its_conversation_and_goes_on(kept: Store) -> None:
    begun, tried = asyncio.Event(), 0

    async def price(thing: str) -> int:
        """The price of a thing."""
        nonlocal tried
        tried += 1
        if tried == 1:
            begun.set()
            await asyncio.Event().wait()
        return len(thing)

    def session() -> Session:
        tool = ToolSpec.from_function(price, idempotent="natural")
        return Session([tool], protocol="openai", store=kept, conversation="c-17")

    turn = asyncio.create_task(session().turn(PRICE))
    await asyncio.wait_for(begun.wait(), PATIENCE_S)
    turn.cancel()
    with pytest.raises(asyncio.CancelledError):
        await turn
    (lost,) = kept.runs(conversation="c-17", status="running")
    assert not lost.is_held
    assert texts((await session().resume(lost.run_id)).messages) == ["3"]
    assert [run.status for run in kept.runs(conversation="c-17")] == ["finished"]


# -- the document -----------------------------------------------------------------------------------------------------

VALUE = {
    "messages": [{"role": "user", "content": "Grüße \ud83d\ude00 \x00"}],
    "usage": {"cost": 0.25, "tokens": 10**20},
}


def test_a_document_is_read_back_in_another_process_as_it_was_saved(kept: Store, url: str) -> None:
    first = kept.document("c-17")
    assert (first.value, first.version, first.saved_at) == (None, 0, 0.0)
    assert kept.save_document("c-17", VALUE, version=0) == 1
    assert kept.save_document("c-17", [VALUE], version=1) == 2
    kept.close()
    with Store.open(url) as again:
        found = again.document("c-17")
    assert (found.value, found.version, found.saved_at > 0) == ([VALUE], 2, True)


@pytest.mark.parametrize("given", [0, 1, 3, 7])
def test_the_loser_of_a_race_is_told_the_current_version(kept: Store, given: int) -> None:
    for version in range(2):
        kept.save_document("c-17", version, version=version)
    with pytest.raises(DocumentChanged, match=f"is at version 2, not {given}: read it again") as changed:
        kept.save_document("c-17", "lost", version=given)
    assert changed.value.version == 2
    assert kept.document("c-17").value == 1


def test_no_change_is_lost_when_many_save_at_once(kept: Store) -> None:
    start, tries = threading.Barrier(4), 10

    def add() -> None:
        start.wait(PATIENCE_S)
        for _ in range(tries):
            while True:
                found = kept.document("c-17")
                try:
                    kept.save_document("c-17", (found.value or 0) + 1, version=found.version)
                except DocumentChanged:
                    continue
                break

    with ThreadPoolExecutor(4) as pool:
        for done in [pool.submit(add) for _ in range(4)]:
            done.result(timeout=PATIENCE_S)
    assert (kept.document("c-17").value, kept.document("c-17").version) == (40, 40)


def test_a_document_is_its_principals_alone(kept: Store) -> None:
    kept.save_document("c-17", "ann's", version=0, caller=ANN)
    bob = Caller(principal="bob", tenant="acme")
    asked: list[Callable[[], object]] = [
        lambda: kept.document("c-17", caller=bob),
        lambda: kept.save_document("c-17", "bob's", version=1, caller=bob),
        lambda: Till().session(kept, conversation="c-17", caller=bob).run_turn(PRICE),
    ]
    for ask in asked:
        with pytest.raises(DecisionRefused, match="another principal's") as refused:
            ask()
        assert refused.value.code == "not_permitted"
    assert kept.document("c-17", caller=ANN).value == kept.document("c-17").value == "ann's"


@pytest.mark.threat(19)
@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE documents SET document = (SELECT document FROM documents WHERE conversation = 'c-18')",
        "UPDATE documents SET version = version + 1",
    ],
    ids=["another conversation's", "another version"],
)
def test_a_document_that_was_moved_or_renumbered_is_not_read(kept: Store, statement: str) -> None:
    for name in ("c-17", "c-18"):
        kept.save_document(name, f"the secret of {name}", version=0)
    assert kept.document("c-17").value == "the secret of c-17"
    assert change(kept, statement) == 2
    with pytest.raises(DecisionRefused) as refused:
        kept.document("c-17")
    assert refused.value.code == "bad_mac"


def test_a_document_is_not_in_plain_text_on_disk(tmp_path: Path) -> None:
    with Store.open(f"sqlite:///{tmp_path}/runs.db") as store:
        store.save_document("c-17", "a secret of the conversation", version=0)
    assert not [path for path in tmp_path.iterdir() if b"a secret of" in path.read_bytes()]


@pytest.mark.parametrize(
    ("value", "says"),
    [
        (object(), "cannot be written as JSON"),
        ({"rows": [float("nan")]}, "Give dicts with text keys, lists"),
        ({"when": (1, 2)}, "Give dicts with text keys, lists"),
        ({1: "a"}, "Give dicts with text keys, lists"),
    ],
)
def test_a_value_that_would_come_back_as_another_is_refused(kept: Store, value: Any, says: str) -> None:
    with pytest.raises(ConfigurationError, match=re.escape(says)):
        kept.save_document("c-17", value, version=0)
    assert kept.document("c-17").version == 0


@pytest.mark.parametrize("version", [-1, True, "1", None])
def test_a_version_that_is_none_is_refused(kept: Store, version: Any) -> None:
    with pytest.raises(ConfigurationError, match="give the version of the document that you read, or 0"):
        kept.save_document("c-17", {}, version=version)


def test_the_largest_document_fits_and_one_byte_more_does_not(kept: Store) -> None:
    assert DOCUMENT_LIMIT_BYTES == 64 * 1024 * 1024
    fits = "x" * (DOCUMENT_LIMIT_BYTES - 2)
    assert kept.save_document("c-17", fits, version=0) == 1
    with pytest.raises(ConfigurationError, match="67,108,865 bytes as JSON, and 67,108,864 fit"):
        kept.save_document("c-17", fits + "x", version=1)
    assert kept.document("c-17").value == fits


# -- stores of before -------------------------------------------------------------------------------------------------


@pytest.mark.threat(19)
@pytest.mark.parametrize(
    ("statement", "is_intact"),
    [
        ("SELECT 1", True),
        (
            "UPDATE log SET conversation = NULL, principal = NULL, agent = NULL, tenant = NULL WHERE seq = {row}",
            False,
        ),
        ("UPDATE log SET conversation = 'c-18' WHERE seq = {row}", False),
        ("UPDATE log SET agent = NULL WHERE seq = {row}", False),
    ],
)
async def test_the_chain_covers_the_conversation_and_the_caller(kept: Store, statement: str, is_intact: bool) -> None:
    await Till().session(kept, conversation="c-17", caller=ANN).turn(PRICE)
    assert kept.verify().is_whole
    change(kept, statement.format(row="(SELECT min(seq) + 1 FROM log)"))
    assert (kept.verify().bad_seq is None) == is_intact


@pytest.mark.threat(19)
async def test_the_log_of_the_first_schema_is_verified_with_the_rows_written_since(tmp_path: Path) -> None:
    path = tmp_path / "runs.db"
    path.write_bytes(gzip.decompress((FOLDERS / "0001" / "runs.db.gz").read_bytes()))
    with Store.open(f"sqlite:///{path}", key=KEY) as store:
        old = store.log_length()
        await Till().session(store, conversation="c-17", caller=ANN).turn(PRICE)
        assert (store.verify().is_whole, store.log_length() > old > 0) == (True, True)
        assert {(row.conversation, row.principal) for row in store.log()[:old]} == {("", "")}
        assert {run.conversation for run in store.runs()} == {"", "c-17"}
        # An old row that gets a conversation is a changed row.
        change(store, "UPDATE log SET conversation = 'c-17', principal = '', agent = '', tenant = '' WHERE seq = 1")
        assert store.verify().bad_seq == 1
