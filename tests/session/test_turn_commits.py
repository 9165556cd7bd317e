"""A turn with a store writes as little as its promises allow, and nothing of it runs before its start is on record."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from benchmarks.kills import in_child
from sqlalchemy import text

from tests.journal.conftest import opened as opened
from tests.journal.conftest import url as url
from tests.journal.world import on_record, run_start
from tests.patience import PATIENCE_S, until
from tests.session.till import calls, program, texts
from toolwire import Session, Store, ToolSpec
from toolwire.journal.ledger import conversations, run_ledger
from toolwire.log import LogFilter
from toolwire.permission.approval import DecisionRefused
from toolwire.vocabulary.call_events import ToolEvent
from toolwire.vocabulary.calls import CODE_EXECUTION, Caller
from toolwire.vocabulary.effects import Label
from toolwire.vocabulary.errors import StoreUnavailable

LOOK = calls(("look", {"at": "tea"}))
THREE_CALLS = "paid = [look(at=name) for name in ('tea', 'cup', 'pot')]\nlen(paid)"


@pytest.fixture
def kept(opened: Callable[[], Store]) -> Store:
    """A real store: the one in memory has no transactions."""
    return opened()


class Shop:
    """A tool that changes something, one that only reads, one that reads what strangers wrote, and a way out."""

    def __init__(self) -> None:
        self.ran: list[str] = []
        self.sent: list[str] = []
        self.before_read: Callable[[], object] = lambda: None

    def look(self, at: str) -> str:
        """Looks at a thing, which counts as a change."""
        self.ran.append(at)
        return at

    def read(self, at: str) -> str:
        """Reads, and changes nothing."""
        self.before_read()
        self.ran.append(at)
        return at

    def mail(self) -> str:
        """Gives what a stranger wrote."""
        return "see https://example.org/a"

    def send(self, text: str) -> None:
        """Sends a text to a stranger."""
        self.sent.append(text)

    def session(self, store: Store, protocol: str = "openai", **options: Any) -> Session:
        labels: list[Label] = ["private", "untrusted"]
        tools = [
            ToolSpec.from_function(self.look, permission="auto"),
            ToolSpec.from_function(self.read, permission="auto", idempotent="natural"),
            ToolSpec.from_function(self.mail, permission="auto", labels=labels),
            ToolSpec.from_function(self.send, effects=["send"]),
        ]
        return Session(tools, protocol=protocol, store=store, conversation="c-1", **options)


class Counts:
    """The statements and commits of a store, without those that begin and end a transaction."""

    def __init__(self) -> None:
        self.statements: list[str] = []
        self.commits = 0

    def note(self, statement: object) -> None:
        if not str(statement).startswith(("BEGIN", "COMMIT", "ROLLBACK")):
            self.statements.append(str(statement))


@contextmanager
def counted(store: Store, monkeypatch: pytest.MonkeyPatch) -> Iterator[Counts]:
    """What the block made the store write and read."""
    writer, found = store._database.writer, Counts()
    with _noting(store, found, monkeypatch):
        until(lambda: writer.is_idle)
        found.statements.clear()
        before = writer.commits
        yield found
        until(lambda: writer.is_idle)
        found.commits = writer.commits - before


@contextmanager
def _noting(store: Store, found: Counts, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    database = store._database
    if database.location.path is None:
        import psycopg

        execute = psycopg.Cursor.execute

        def note(cursor: Any, statement: Any, *more: Any, **named: Any) -> Any:
            found.note(statement)
            return execute(cursor, statement, *more, **named)

        with monkeypatch.context() as watched:
            watched.setattr(psycopg.Cursor, "execute", note)
            yield
        return
    writing: Any = database.run(lambda connection: connection.connection.dbapi_connection).result(PATIENCE_S)
    reading: Any = database.read(lambda connection: connection.connection.dbapi_connection)
    drivers: list[Any] = [writing, reading]
    for driver in drivers:
        driver.set_trace_callback(found.note)
    yield
    for driver in drivers:
        driver.set_trace_callback(None)


# -- commits and statements ------------------------------------------------------------------------------------------


async def test_a_turn_of_one_call_makes_two_commits_of_nine_statements(
    kept: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    session = Shop().session(kept)
    await session.turn(LOOK)
    with counted(kept, monkeypatch) as found:
        await session.turn(LOOK)
    assert (found.commits, len(found.statements)) == (2, 9)
    assert kept.verify().is_whole


async def test_a_call_that_needs_no_start_of_its_own_waits_for_that_of_its_run(
    kept: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    shop, runs = Shop(), list[str]()
    shop.before_read = lambda: runs.extend(run.status for run in kept.runs())
    session = shop.session(kept)
    with counted(kept, monkeypatch) as found:
        await session.turn(calls(("read", {"at": "tea"})))
    assert (runs, found.commits) == (["running"], 2)


async def test_a_program_of_three_calls_makes_seven_commits(kept: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    # A program starts in time, however busy the machine is.
    monkeypatch.setattr(run_ledger, "COMPOSITE_PATIENCE_S", PATIENCE_S)
    session = Shop().session(kept, protocol="attp")
    await session.turn(program(THREE_CALLS))
    with counted(kept, monkeypatch) as found:
        turn = await session.turn(program(THREE_CALLS))
    assert turn.results[0].success
    assert (found.commits, len(found.statements) <= 30) == (7, True), found.statements
    assert kept.verify().is_whole


# -- what is true at the time of each commit ---------------------------------------------------------------------------


async def test_the_end_of_a_call_is_told_when_its_turn_is_on_record(kept: Store) -> None:
    told: list[tuple[str, str, int]] = []

    def note(event: ToolEvent) -> None:
        if event.type == "TOOL_COMPLETE":
            steps = len([call for call in kept.calls(event.invocation_id) if call.result is not None])
            told.append((event.call_id[-1], kept.run(event.invocation_id).status, steps))

    await Shop().session(kept).turn(calls(("look", {"at": "tea"}), ("look", {"at": "cup"})), events=note)
    (first, last) = sorted(told, key=lambda one: one[1], reverse=True)
    # The other call may have ended at the same time, in the same transaction.
    assert (first[1], first[2] >= 1, last[1:]) == ("running", True, ("finished", 2))


async def test_a_call_and_its_row_of_the_log_are_one_transaction(kept: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    shop, append = Shop(), run_ledger.call_event

    def fail(*given: Any) -> dict[str, Any]:
        raise StoreUnavailable("no row")

    with monkeypatch.context() as broken:
        broken.setattr(run_ledger, "call_event", fail)
        with pytest.raises(StoreUnavailable):
            await shop.session(kept).turn(LOOK)
    (run,) = kept.runs()
    assert [call.result for call in kept.calls(run.run_id)] == [None]
    # The control: with its row, both are there.
    assert run_ledger.call_event is append
    turn = await shop.session(kept).turn(LOOK)
    assert [call.result is not None for call in kept.calls(turn.run_id)] == [True]
    assert [row.subject for row in kept.log(LogFilter(kind="call", run_id=turn.run_id))] == [f"{turn.run_id}/1"]


async def test_a_call_that_ended_is_on_record_if_the_end_of_its_turn_could_not_be_written(
    kept: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    shop, told = Shop(), list[str]()

    def fail(*given: Any) -> int:
        raise StoreUnavailable("no end")

    with monkeypatch.context() as broken:
        broken.setattr(run_ledger, "end_run", fail)
        with pytest.raises(StoreUnavailable):
            await shop.session(kept).turn(LOOK, events=lambda event: told.append(event.type))
    (run,) = kept.runs()
    assert (run.status, run.is_held, run.steps, told) == ("running", False, 1, ["TOOL_START", "TOOL_COMPLETE"])
    turn = await shop.session(kept).resume(run.run_id)
    assert (texts(turn.messages), shop.ran) == (["tea"], ["tea"])


# -- a start that is refused -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("is_program", [False, True])
@pytest.mark.parametrize("has_read", [True, False], ids=["attack", "control: nothing was read"])
async def test_what_another_turn_reads_while_this_one_begins_counts_for_its_calls(
    kept: Store, is_program: bool, has_read: bool
) -> None:
    shop, started = Shop(), list[str]()
    mine = shop.session(kept, protocol="attp" if is_program else "openai")
    await mine.turn(program("1") if is_program else calls(("read", {"at": "cup"})))

    async def read_mail(event: ToolEvent) -> None:
        # The run is open, and nothing of it is on record yet.
        if event.type == "TOOL_START" and not event.parent:
            started.append(event.tool)
            if has_read and len(started) == 1:
                await shop.session(kept).turn(calls(("mail", {})))

    reply: Any = program("send(text='hello')") if is_program else calls(("send", {"text": "hello"}))
    await mine.turn(reply, events=read_mail)
    # The call is made again, with the labels of what the other turn has read.
    tool = CODE_EXECUTION if is_program else "send"
    assert (shop.sent, started) == (([], [tool] * 2) if has_read else (["hello"], [tool]))
    assert [one.taints for one in kept.conversations()] == [("private", "untrusted") if has_read else ()]
    assert kept.verify().is_whole


@pytest.mark.parametrize("has_read", [True, False], ids=["attack", "control: nothing was read"])
def test_what_another_process_reads_between_two_turns_counts_for_the_second(
    kept: Store, url: str, has_read: bool
) -> None:
    shop = Shop()
    mine = shop.session(kept)
    mine.run_turn(LOOK)

    def take_a_turn() -> None:
        with Store.open(url) as store:
            turn = shop.session(store).run_turn(calls(("mail", {})) if has_read else LOOK)
            assert turn.results[0].success

    assert os.waitstatus_to_exitcode(os.waitpid(in_child(take_a_turn), 0)[1]) == 0
    turn = mine.run_turn(calls(("send", {"text": "hello"})))
    assert (shop.sent, turn.suspended is None) == (([], False) if has_read else (["hello"], True))
    assert kept.verify().is_whole


def test_a_conversation_whose_row_is_gone_begins_anew(kept: Store) -> None:
    shop = Shop()
    mine = shop.session(kept)
    mine.run_turn(LOOK)
    delete = text("DELETE FROM conversations")
    kept._database.run(lambda connection: connection.execute(delete)).result(PATIENCE_S)
    assert mine.run_turn(LOOK).results[0].success
    assert [one.conversation for one in kept.conversations()] == ["c-1"]
    with pytest.raises(DecisionRefused, match="another principal's"):
        shop.session(kept, caller=Caller(principal="eve")).run_turn(LOOK)


@pytest.mark.parametrize(("limit", "bytes_"), [(2, 4_096), (1, 4_096), (2, 40)])
def test_as_many_states_are_kept_in_memory_as_the_limits_say(
    kept: Store, monkeypatch: pytest.MonkeyPatch, limit: int, bytes_: int
) -> None:
    monkeypatch.setattr(conversations, "SEEN_STATES", limit)
    monkeypatch.setattr(conversations, "SEEN_BYTES", bytes_)
    sessions = [Session([Shop().look], store=kept, conversation=name, protocol="openai") for name in "ab"]
    for session in sessions:
        session.run_turn(LOOK)
    with counted(kept, monkeypatch) as found:
        for session in sessions:
            session.run_turn(LOOK)
    read = [statement for statement in found.statements if statement.startswith("SELECT state FROM conversations")]
    assert len(read) == (0 if (limit, bytes_) == (2, 4_096) else 2)


async def test_a_turn_that_another_principal_starts_runs_nothing(kept: Store) -> None:
    shop = Shop()
    await shop.session(kept).turn(calls(("mail", {})))
    for reply in (LOOK, calls(("read", {"at": "tea"}))):
        with pytest.raises(DecisionRefused) as refused:
            await shop.session(kept, caller=Caller(principal="eve")).turn(reply)
        assert (refused.value.code, shop.ran) == ("not_permitted", [])


async def test_a_run_whose_first_record_was_never_made_leaves_nothing(kept: Store) -> None:
    ledger = kept.start(run_start(conversation="c-1")).result(PATIENCE_S)
    ledger.release().result(PATIENCE_S)
    assert (kept.runs(), kept.log(), kept.conversations()) == ([], [], [])
    # The control: with a record it is there.
    on_record(kept, run_start(conversation="c-1"))
    assert [run.status for run in kept.runs()] == ["running"]
