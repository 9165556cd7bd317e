"""The log in pages by time, and its followers, over several chains."""

from __future__ import annotations

import threading
from collections.abc import Callable
from itertools import islice
from typing import Any

import pytest
from benchmarks.kills import in_child

from tests.journal.database.test_forks import ended
from tests.journal.log.test_memory_log import FakeRecord
from tests.journal.plans import grow, plans_of
from tests.journal.test_reading import logged_calls, statements
from tests.patience import until
from toolwire import ConfigurationError
from toolwire.journal.durable_log import DurableLog
from toolwire.journal.log import following
from toolwire.journal.log.rows import LogFilter, LogPage, LogRow
from toolwire.journal.store import Store


def log_calls(store: Store, *minutes: int, prefix: str = "r") -> None:
    log = DurableLog(store)
    for number, minute in enumerate(minutes):
        log.ended(FakeRecord("add", {"a": minute}, id=f"{prefix}/{number}", run_id=prefix, minute=minute))


def log_calls_elsewhere(url: str, *minutes: int) -> None:
    """Another process logs calls: in PostgreSQL to another chain."""

    def work() -> None:
        with Store.open(url) as store:
            log_calls(store, *minutes, prefix="other")

    assert ended(in_child(work)) == 0


@pytest.fixture
def filled(store: Store, url: str) -> Store:
    """A store with twelve calls of two processes, some of one time, and not in the order of their times."""
    log_calls(store, 5, 1, 3, 3, 9, 2)
    store.log()
    log_calls_elsewhere(url, 4, 3, 8, 1, 7, 6)
    return store


def subjects(found: list[LogRow]) -> list[str]:
    return [row.subject for row in found]


def read_pages(store: Store, limit: int, **options: Any) -> list[LogPage]:
    """All pages of the log."""
    newest_first = options.get("newest_first", False)
    pages = [store.log(limit=limit, **options)]
    while pages[-1].more:
        place: dict[str, Any] = {"before" if newest_first else "after": pages[-1].cursor}
        pages.append(store.log(limit=limit, **options, **place))
    return pages


@pytest.mark.parametrize("newest_first", [False, True])
def test_pages_have_each_row_once_in_the_order_of_time(filled: Store, newest_first: bool) -> None:
    whole = filled.log(newest_first=newest_first)
    times = [row.at for row in whole]
    assert (len(whole), times, whole.more) == (12, sorted(times, reverse=newest_first), False)
    for limit in (1, 4, 5, 11, 12, 13):
        pages = read_pages(filled, limit, newest_first=newest_first)
        assert [row for page in pages for row in page] == whole
        assert [len(page) for page in pages[:-1]] == [limit] * (len(pages) - 1)
        assert len(pages[-1]) > 0
    middle = whole[6].cursor
    assert filled.log(after=middle, newest_first=newest_first) == (whole[:6] if newest_first else whole[7:])


def test_a_list_is_cut_at_its_limit_unless_it_is_of_one_run(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    logged_calls(store)
    monkeypatch.setattr("toolwire.journal.store_log.ROWS_LISTED", 99)
    assert (len(store.log()), store.log().more) == (99, True)
    assert (len(store.log(LogFilter(run_id="r"))), store.log(LogFilter(run_id="r")).more) == (100, False)
    # `get_entries` without a limit reads all pages.
    assert len(DurableLog(store).get_entries()) == 100
    monkeypatch.setattr("toolwire.journal.store_log.ROWS_LISTED", 100)
    assert (len(store.log()), store.log().more) == (100, False)


@pytest.mark.parametrize("wrong", ["", "x", 7, "WzEsMl0", "W" * 100_000, "\ud800"])
def test_a_place_that_is_no_cursor_is_refused(store: Store, wrong: Any) -> None:
    with pytest.raises(ConfigurationError, match=r"Store\.log\(after=.*: give the `cursor` of a row of the log"):
        store.log(after=wrong)
    with pytest.raises(ConfigurationError, match=r"Store\.follow\(after=.*: give the `cursor` of a row"):
        store.follow(wrong)
    with pytest.raises(ConfigurationError, match=r"limit=-1: give a whole number from 0"):
        store.log(limit=-1)


def test_a_follower_goes_on_after_any_row_and_neither_loses_nor_repeats_one(filled: Store, url: str) -> None:
    whole = subjects(filled.log())
    for number, row in enumerate(filled.log()):
        with filled.follow(row.cursor) as rest:
            assert subjects(list(islice(rest, 11 - number))) == whole[number + 1 :]
    with filled.follow() as followed:
        seen = list(islice(followed, 7))
        log_calls(filled, 0)
        log_calls_elsewhere(url, 0)
        new = ["r/0", "other/0"]
        assert sorted(subjects(list(islice(followed, 7)))) == sorted([*whole[7:], *new])
    # By the cursor of a row that a follower has returned, also of one that was new to it.
    for after, rest in ((seen[-1].cursor, 7), (seen[0].cursor, 13)):
        with filled.follow(after) as followed:
            again = list(islice(followed, rest))
        assert sorted(subjects(again)) == sorted([*whole[12 - (rest - 2) :], *new])
    with filled.follow("now") as followed:
        log_calls(filled, 3, prefix="first")
        newest = list(islice(followed, 1))
        # From here on it is told of rows as they come.
        log_calls(filled, 2, 1, prefix="n")
        newest += islice(followed, 2)
        assert subjects(newest) == ["first/0", "n/0", "n/1"]
    with filled.follow(newest[0].cursor) as followed:
        # What came since is listed by time.
        assert subjects(list(islice(followed, 2))) == ["n/1", "n/0"]


def test_a_follower_sees_what_its_filter_selects(store: Store) -> None:
    logged_calls(store)
    wanted = LogFilter(tool="slow", text="BROKE", min_duration_s=0.5)
    with store.follow(filter=wanted) as followed:
        assert subjects(list(islice(followed, 5))) == [f"r/{number}" for number in range(50, 100, 10)]
        logged_calls(store)
        assert subjects(list(islice(followed, 5))) == [f"r/{number}" for number in range(50, 100, 10)]


@pytest.mark.parametrize("limit", [99, 100])
def test_a_follower_that_is_slow_reads_the_rest_itself(
    store: Store, limit: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(following, "FEED_LIMIT", limit)
    monkeypatch.setattr(following, "FOLLOWED_AT_ONCE", 40)
    with store.follow("now") as followed:
        log_calls(store, 0, prefix="first")
        assert next(followed).subject == "first/0"
        feed = followed._follower._feed
        assert feed is not None
        logged_calls(store)
        until(lambda: feed.is_cut or len(feed.rows) == 100)
        assert feed.is_cut == (limit < 100)
        assert subjects(list(islice(followed, 100))) == [f"r/{number}" for number in range(100)]


def test_ten_followers_cost_the_queries_of_one(store: Store) -> None:
    followers = [store.follow("now") for _ in range(10)]
    log_calls(store, 0)
    assert [next(followed).subject for followed in followers] == ["r/0"] * 10
    with statements(store) as seen:
        log_calls(store, 1)
        assert [next(followed).at for followed in followers] == [store.log()[-1].at] * 10
    # One read of the new row for all of them; the list above is another.
    assert sum("log.seq > " in statement for statement in seen) == 1
    for followed in followers:
        followed.close()


def test_rows_are_matched_in_memory_as_in_the_database(store: Store) -> None:
    logged_calls(store)
    whole = store.log()
    for wanted in (
        LogFilter(kind="call", status="tool_error"),
        LogFilter(kind="run"),
        LogFilter(run_id="r", tool="fast", until=whole[50].at),
        LogFilter(since=whole[50].at, min_duration_s=0.7),
        LogFilter(parent="p/1"),
        LogFilter(text="nüm5"),
        LogFilter(text='"a"'),
        LogFilter(principal=""),
    ):
        assert [row for row in whole if wanted.matches(row)] == store.log(wanted)


def test_a_follower_in_a_loop_and_one_in_a_thread_share_the_thread(store: Store) -> None:
    def followers() -> int:
        return sum(thread.name == "toolwire-follow" for thread in threading.enumerate())

    with store.follow() as one, store.follow() as other:
        log_calls(store, 0)
        assert next(one) == next(other)
        assert followers() == 1
    until(lambda: followers() == 0)


QUESTIONS: list[tuple[str, Callable[[Store], object]]] = [
    ("log_at", lambda store: store.log(newest_first=True, limit=5)),
    ("log_asked", lambda store: store.log(LogFilter(kind="decision"), newest_first=True, limit=5)),
    ("log_conversation", lambda store: store.log(LogFilter(conversation="c"), newest_first=True, limit=5)),
    ("log_run_id", lambda store: store.log(LogFilter(run_id="r"))),
    ("log_parent", lambda store: store.log_tree("r")),
]


@pytest.mark.parametrize(("index", "ask"), QUESTIONS, ids=[name for name, _ in QUESTIONS])
def test_each_index_of_the_log_answers_its_question(store: Store, index: str, ask: Callable[[Store], object]) -> None:
    logged_calls(store)
    store.log()
    grow(store)
    plans = plans_of(store, ask)
    assert any(index in plan for plan in plans), plans
