"""Lists in pages: what a limit cut is said, no entry is lost between two pages, and a filter finds what it names."""

from __future__ import annotations

import datetime
import time
from dataclasses import replace
from typing import Any

import pytest

from tests.journal.lists.test_damaged import damage
from tests.journal.world import done, on_record, request, run_start, start, started, step
from toolwire import Caller, ConfigurationError, Decision, DecisionRefused, Store, StoreUnavailable
from toolwire.journal.conversation_info import ConversationInfo
from toolwire.journal.log.rows import LogFilter
from toolwire.journal.page import LIMIT_MOST, Page, cursor_of, read_cursor
from toolwire.journal.run import Waiting

ANN = Caller(principal="ann", agent="clerk", tenant="shop")
BOB = Caller(principal="bob", agent="clerk")


def name_of(entry: Any) -> str:
    if isinstance(entry, ConversationInfo):
        return entry.conversation
    return str(entry.run_id if hasattr(entry, "rev") else entry.id)


def all_pages(read: Any, limit: int) -> list[list[str]]:
    """The ids of each page."""
    found: list[list[str]] = []
    after: str | None = None
    while True:
        page = read(limit=limit, after=after)
        found.append([name_of(one) for one in page])
        if not page.more:
            return found
        after = page.cursor


def test_runs_of_one_moment_are_each_on_one_page(store: Store) -> None:
    for number in range(1, 7):
        on_record(store, replace(run_start(f"r_{number}"), created_at=5.0))
    assert all_pages(store.runs, 2) == [["r_6", "r_5"], ["r_4", "r_3"], ["r_2", "r_1"]]
    whole = store.runs(limit=6)
    assert (len(whole), whole.more) == (6, False)
    assert store.runs(limit=5).more
    assert store.runs(after=whole.cursor) == []


def test_conversations_of_one_moment_are_each_on_one_page(store: Store) -> None:
    for number in range(1, 6):
        done(started(store, conversation=f"c-{number}").release())
        damage(store, f"UPDATE conversations SET updated_at = 5.0 WHERE conversation = 'c-{number}'")
    assert all_pages(store.conversations, 2) == [["c-5", "c-4"], ["c-3", "c-2"], ["c-1"]]
    with pytest.raises(ConfigurationError, match="give the `cursor` of a page of conversations"):
        store.conversations(after=store.runs(limit=1).cursor)


def test_requests_of_one_moment_are_each_on_one_page(store: Store) -> None:
    ledger, now = started(store), time.time()
    for number in range(1, 7):
        done(ledger.ask(request(ledger, id=f"a_{number}", call_id=str(number), created_at=now)))
    assert all_pages(store.pending, 4) == [["a_1", "a_2", "a_3", "a_4"], ["a_5", "a_6"]]
    newest_first = store.requests(limit=4)
    assert [one.request.id for one in newest_first] == ["a_6", "a_5", "a_4", "a_3"]
    assert [one.request.id for one in store.requests(after=newest_first.cursor)] == ["a_2", "a_1"]
    # A request that was decided between two pages does not move the others.
    first = store.pending(limit=2)
    store.decide("a_2", Decision(verdict="deny"))
    assert [one.id for one in store.pending(after=first.cursor)] == ["a_3", "a_4", "a_5", "a_6"]


def test_a_list_of_all_runs_has_a_limit_and_that_of_one_run_has_none(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("toolwire.journal.store_reading.REQUESTS_LISTED", 2)
    ledger = started(store)
    for number in range(3):
        done(ledger.ask(request(ledger, call_id=str(number))))
    assert [(len(page), page.more) for page in (store.pending(), store.requests())] == [(2, True)] * 2
    of_run = (store.pending(ledger.run_id), store.requests(ledger.run_id))
    assert [(len(page), page.more) for page in of_run] == [(3, False)] * 2
    cut = store.pending(ledger.run_id, limit=1)
    assert (len(cut), cut.more) == (1, True)


def test_pending_requests_are_found_by_caller_and_tool(store: Store) -> None:
    ledger = started(store)
    made = {
        "a_1": request(ledger, "a_1", "1", caller=ANN),
        "a_2": request(ledger, "a_2", "2", caller=replace(ANN, agent="other")),
        "a_3": request(ledger, "a_3", "3", caller=BOB),
        "a_4": replace(request(ledger, "a_4", "4", caller=replace(ANN, tenant="else")), tool="post"),
    }
    for one in made.values():
        done(ledger.ask(one))

    def ids(**wanted: Any) -> list[str]:
        return [one.id for one in store.pending(**wanted)]

    assert ids(caller=Caller(principal="ann", tenant="shop")) == ["a_1", "a_2"]
    assert ids(caller=ANN) == ["a_1"]
    assert ids(tool="post") == ["a_4"]
    assert ids(tool="pay", caller=BOB) == ["a_3"]
    # Those of an older schema have no columns for it.
    store._database.run(  # pyright: ignore[reportPrivateUsage]
        lambda connection: connection.exec_driver_sql("UPDATE requests SET tool = NULL, principal = NULL")
    ).result()
    assert ids(tool="post") == ["a_4"]
    assert ids(caller=BOB, limit=1) == ["a_3"]


def test_requests_are_listed_with_their_states_and_decisions(store: Store) -> None:
    ledger = started(store)
    for number in range(1, 5):
        ends = time.time() - 1 if number == 4 else 0.0
        done(ledger.ask(request(ledger, f"a_{number}", str(number), created_at=float(number), expires_at=ends)))
    decision = store.decide("a_1", Decision(verdict="deny", reason="no"))
    store.decide("a_2", Decision(verdict="approve"))
    found = {one.request.id: one for one in store.requests(ledger.run_id)}
    assert {name: one.state for name, one in found.items()} == {
        "a_4": "expired",
        "a_3": "pending",
        "a_2": "approved",
        "a_1": "denied",
    }
    assert (found["a_1"].decision, found["a_3"].decision) == (decision, None)
    states = ("denied", "approved", "pending", "expired", "answered")
    assert [[one.request.id for one in store.requests(state=state)] for state in states] == [
        *(["a_1"], ["a_2"], ["a_3"], ["a_4"], [])
    ]
    done(ledger.finish(()))
    assert [one.request.id for one in store.requests(state="superseded")] == ["a_4", "a_3"]


def test_the_waiting_requests_are_counted_without_opening_one(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    assert store.waiting() == Waiting(count=0, oldest_s=None)
    ledger, now = started(store), store.clock()
    for number, age in enumerate((5.0, 50.0, 500.0)):
        ends = now - 1 if age == 500.0 else 0.0
        done(ledger.ask(request(ledger, call_id=str(number), created_at=now - age, expires_at=ends)))
    monkeypatch.setattr("toolwire.journal.database.sealing.Sealer.open", None)
    found = store.waiting()
    assert found.count == 2
    assert found.oldest_s is not None
    assert 49.0 < found.oldest_s < 110.0


def test_runs_are_found_by_tool_agent_and_holder(store: Store) -> None:
    held = started(store, "r_1", tools={"pay": "sha256:a", "fs/read": "sha256:b"}, caller=ANN)
    done(started(store, "r_2", tools={"payment": "sha256:a"}, caller=BOB).release())
    done(started(store, "r_3", tools={"PAY": "sha256:a"}, caller=replace(BOB, agent="other")).release())

    def ids(**wanted: Any) -> list[str]:
        return [run.run_id for run in store.runs(**wanted)]

    assert ids(tool="pay") == ids(tool="fs/read") == ["r_1"]
    assert ids(agent="clerk") == ["r_2", "r_1"]
    assert (ids(is_held=True), ids(is_held=False)) == (["r_1"], ["r_3", "r_2"])
    assert ids(is_held=True, tool="payment") == []
    store._database.run(  # pyright: ignore[reportPrivateUsage]
        lambda connection: connection.exec_driver_sql("UPDATE runs SET tools = NULL")
    ).result()
    # Those of an older schema are opened.
    assert ids(tool="pay", limit=1) == ["r_1"]
    done(held.release())
    assert ids(is_held=True) == []


@pytest.mark.parametrize(
    "given", ["", "x", "é", 5, cursor_of("requests", 1.0, "a_1"), cursor_of("runs", 1.0, "a")[:-3]]
)
def test_a_cursor_of_another_list_is_refused(store: Store, given: Any) -> None:
    with pytest.raises(ConfigurationError, match="give the `cursor` of a page of runs"):
        store.runs(after=given)


def test_a_limit_is_a_whole_number_from_one(store: Store) -> None:
    others: list[Any] = [0, -1, True, 1.0, "5"]
    for given in others:
        for read in (store.runs, store.pending, store.requests, lambda limit: store.calls("r", limit=limit)):
            with pytest.raises(ConfigurationError, match=r"^limit=.*: give a whole number from 1 to 1,000,000,000$"):
                read(limit=given)


def test_an_unknown_state_is_refused(store: Store) -> None:
    with pytest.raises(ConfigurationError, match="write one of pending, approved"):
        store.requests(state="waiting")  # type: ignore[arg-type]


def test_a_cursor_stands_for_its_place_exactly() -> None:
    for moment in (0.1 + 0.2, 1_800_000_000.123456, -1.0, 5):
        assert read_cursor("runs", cursor_of("runs", moment, 'é"\ud800')) == (moment, 'é"\ud800')


def test_a_page_is_a_list() -> None:
    page = Page([1, 2], more=True, cursor="c")
    assert (page, page.more, page.cursor, page[0]) == ([1, 2], True, "c", 1)


def test_a_store_is_not_made_unless_wanted(url: str) -> None:
    with Store.open(url):
        pass
    with Store.open(url, create=False) as store:
        assert store.runs() == []
        before = store.size()
        done(started(store, reply={"text": "x" * 1_000_000}).release())
        assert 50_000 < before < store.size()


@pytest.mark.usefixtures("is_new")
def test_opening_a_store_that_is_not_there_says_so_and_makes_nothing(url: str, tmp_path: Any) -> None:
    for _ in range(2):
        with pytest.raises(
            StoreUnavailable,
            match=r"^there is no store at .*\nName another one, or make it: `toolwire run` and Store.open\(url\) do.$",
        ):
            Store.open(url, create=False)
    assert [path.name for path in tmp_path.iterdir() if path.suffix == ".db"] == []


async def test_the_reply_of_a_run_is_read_while_another_process_holds_it(store: Store) -> None:
    reply = {"thought": "Pay.", "target": "t", "text": "", "calls": [], "problems": []}
    problem = {"message": "a quote was missing", "repaired": True, "place": "line 1"}
    source = {"role": "assistant", "content": "[tool_call]"}
    ledger = started(store, reply={**reply, "problems": [problem], "message": source})
    found = await store.areply(ledger.run_id)
    assert (found.thought, found.message) == ("Pay.", source)
    assert [(one.message, one.repaired) for one in found.problems] == [("a quote was missing", True)]
    with pytest.raises(DecisionRefused) as refused:
        store.reply("r_none")
    assert refused.value.code == "unknown_run"


@pytest.mark.parametrize("moment", [datetime.datetime(2020, 1, 1), "2020-01-01", "30d", True, float("nan")])
def test_a_time_of_another_type_selects_and_deletes_nothing(store: Store, moment: Any) -> None:
    done(started(store).finish([]))
    for wrong in (
        lambda: store.forget(before=moment),
        lambda: store.prune(before=moment),
        lambda: store.runs(since=moment),
        lambda: store.runs(before=moment),
        lambda: store.stats(since=moment),
        lambda: LogFilter(since=moment),
        lambda: LogFilter(until=moment),
    ):
        with pytest.raises(ConfigurationError, match="give seconds since the epoch"):
            wrong()
    with pytest.raises(ConfigurationError, match="give seconds since the epoch"):
        store.forget(before=None)  # type: ignore[arg-type]
    assert len(store.runs(since=0)) == len(store.runs(before=time.time() + 60.0)) == 1


def test_a_limit_has_a_largest_number(store: Store) -> None:
    for read in (store.runs, store.pending, store.requests, store.conversations, store.log):
        read(limit=LIMIT_MOST)
        with pytest.raises(ConfigurationError, match="give a whole number from"):
            read(limit=LIMIT_MOST + 1)
    with pytest.raises(ConfigurationError, match="keep=-1"):
        store.prune(keep=-1)


def test_the_cursor_of_another_list_is_refused(store: Store) -> None:
    for number in (1, 2):
        ledger = started(store, f"r_{number}")
        done(ledger.begin(start(step(f"r_{number}/1"))))
    cursor = store.calls("r_1", limit=1).cursor
    assert store.calls("r_1", after=cursor) == []
    for wrong in (
        lambda: store.calls("r_2", after=cursor),
        lambda: store.pending(after=cursor_of("requests", 1.0, "a")),
    ):
        with pytest.raises(ConfigurationError, match="give the `cursor` of a page of"):
            wrong()
