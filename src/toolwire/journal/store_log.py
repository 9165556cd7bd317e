"""The log of a store: read, followed, verified and written."""

from __future__ import annotations

import asyncio
import contextlib
import weakref
from abc import ABC, abstractmethod
from collections.abc import AsyncIterator, Callable, Mapping
from dataclasses import replace
from typing import Any, get_args

from sqlalchemy import Connection

from toolwire.journal.database.work import Work
from toolwire.journal.ledger.compare import find_missing, find_unlogged
from toolwire.journal.ledger.store_database import Database
from toolwire.journal.log import rows as log_rows
from toolwire.journal.log.checking import LogCheck, check_chains
from toolwire.journal.log.cursor import Cursor, read_cursor
from toolwire.journal.log.following import BEGIN, Follow, Follower
from toolwire.journal.log.heads import last_rows
from toolwire.journal.log.rows import ROWS_LISTED, LogFilter, LogPage, LogRow
from toolwire.journal.log.stats import CallStats, StatsBy, stats
from toolwire.journal.log.text_search import TRIGRAM
from toolwire.journal.page import check_limit, check_moment, check_run_id
from toolwire.journal.reading.selecting import check_type
from toolwire.journal.twins import async_twin
from toolwire.vocabulary.errors import ConfigurationError


class StoreLog(ABC):
    """The part of a `Store` that concerns its log."""

    def __init__(self) -> None:
        self._is_ended = False
        self._followers: weakref.WeakSet[Follow] = weakref.WeakSet()
        self._woken: list[Callable[[], None]] = []

    @property
    @abstractmethod
    def _database(self) -> Database: ...

    def log(
        self,
        wanted: LogFilter | None = None,
        *,
        limit: int | None = None,
        newest_first: bool = False,
        after: str | None = None,
        before: str | None = None,
    ) -> LogPage:
        """Returns the rows of the log that match, by time. Events that this process recorded before are included.

        `limit` is the number of rows; None means 1,000 (`ROWS_LISTED`), and all if `wanted` has a `run_id`. `more` of
        the list is True if rows are left out.

        `after` and `before` are the `cursor` of a row: only rows later or earlier in time than that row. So the next
        page is `log(wanted, after=page.cursor)`, or `before=` with `newest_first`.

        The first search for a `text` begins an index of the log, in a thread. Until it is made, `searched` of the list
        is below 1.0, and a text is looked for in the rows of the index and in the newest 20,000. A text of one or two
        characters is looked for in the newest 20,000 rows only. So is every text if SQLite has no FTS5 or PostgreSQL
        has no `pg_trgm`; a warning then says so.

        Raises:
            ConfigurationError: `limit` is below 0, `after` or `before` is not a cursor, or `wanted` is not a
                `LogFilter`.
        """
        wanted = _filter_of("log", wanted)
        if limit is not None:
            check_limit(limit, least=0)
        if limit is None and wanted.run_id is None:
            limit = ROWS_LISTED
        later = None if after is None else read_cursor(after, "Store.log(after")
        earlier = None if before is None else read_cursor(before, "Store.log(before")

        def read(connection: Connection) -> LogPage:
            return log_rows.page(
                connection, wanted, limit=limit, newest_first=newest_first, after=later, before=earlier
            )

        return self._ready(wanted).read(read, is_one_state=True)

    alog = async_twin(log)

    def _ready(self, wanted: LogFilter | None = None) -> Database:
        """Returns the database when all events so far are written. A filter by text begins the index of texts."""
        database = self._database
        database.wait_for_writes()
        if wanted is not None and wanted.text is not None and len(wanted.text) >= TRIGRAM:
            database.read(database.text_index.begin)
        return database

    def log_tree(self, run_id: str) -> list[LogRow]:
        """Returns the rows of a run and of all calls that its programs made, by time.

        Raises:
            ConfigurationError: `run_id` is not text.
        """
        check_run_id("log_tree", run_id)
        return self._ready().read(lambda connection: log_rows.tree(connection, run_id), is_one_state=True)

    alog_tree = async_twin(log_tree)

    def stats(self, *, by: StatsBy = "tool", since: float | None = None) -> list[CallStats]:
        """Returns how many calls ended, how many failed and how long they took, for each value of a column.

        `by` is "tool", "status", "principal", "agent" or "conversation". `since` counts only the calls that began at
        that time or later, in seconds since the epoch.

        Raises:
            ConfigurationError: `by` is not one of these.
        """
        check_moment("since", since)
        if by not in get_args(StatsBy):
            raise ConfigurationError(f"Store.stats(by={by!r}): write one of {', '.join(get_args(StatsBy))}")
        return self._ready().read(lambda connection: stats(connection, by, since))

    astats = async_twin(stats)

    def log_length(self, wanted: LogFilter | None = None) -> int:
        """Returns the number of rows that match. If the index of texts is being made for a `text`, it waits for it."""
        rows = _filter_of("log_length", wanted)
        database = self._ready(rows)
        if rows.text is not None:
            database.text_index.wait()
        return database.read(lambda connection: log_rows.count(connection, rows))

    alog_length = async_twin(log_length)

    def follow(self, after: str | None = None, *, filter: LogFilter | None = None) -> Follow:
        """Returns an iterator over the rows that match, by time, and then over new rows as they come.

        `after` is the `cursor` of a row: of a list, then the rows later in time come first and those that were written
        since; or of a row that a follower returned, then it goes on after that row, and no row is lost or comes twice.
        "now" means new rows only, and None all rows.

        It ends when it is closed, from any thread (`close`, or `with`), or when the store is closed. All followers of a
        process share one thread and one query for new rows, so that a hundred of them cost no more than one.

        Raises:
            ConfigurationError: `after` is neither "now" nor a cursor.
            StoreUnavailable: `after` is "now", and the store cannot be read.
        """
        wanted, database = _filter_of("follow", filter), self._database
        followed = Follow(database.tail, database.read_one_state, self._begin_of(after), wanted)
        self._followers.add(followed)
        return followed

    async def afollow(self, after: str | None = None, *, filter: LogFilter | None = None) -> AsyncIterator[LogRow]:
        """Yields the same in an event loop, without a thread of its own. It begins when its first row is asked for."""
        wanted = _filter_of("follow", filter)
        loop, changed, database = asyncio.get_running_loop(), asyncio.Event(), self._database

        def wake() -> None:
            # A loop that was closed does not wait for rows.
            with contextlib.suppress(RuntimeError):
                loop.call_soon_threadsafe(changed.set)

        begin = await asyncio.to_thread(self._begin_of, after)
        follower = Follower(database.tail, database.read_one_state, begin, wanted, wake)
        self._woken.append(wake)
        try:
            while not self._is_ended:
                changed.clear()
                found = await asyncio.to_thread(follower.next_rows)
                for row in found:
                    yield row
                if not found and not self._is_ended:
                    await changed.wait()
        finally:
            follower.close()
            self._woken.remove(wake)

    def _begin_of(self, after: str | None) -> Cursor:
        if after is None:
            return BEGIN
        if after == "now":
            return replace(BEGIN, begin=self._database.read(last_rows))
        return read_cursor(after, "Store.follow(after")

    def _end_following(self) -> None:
        """Ends every iterator of this store over its log."""
        self._is_ended = True
        for followed in list(self._followers):
            followed.close()
        for wake in list(self._woken):
            wake()

    def verify(self, *, report: Callable[[int, int], object] | None = None) -> LogCheck:
        """Checks the whole log and reports a row that was changed, moved or removed.

        It also reports runs and steps that the log mentions and the store no longer has, and those of the store that
        the log does not mention. It cannot detect that the whole database was restored to an earlier state.

        The log is read in slices, so that others write meanwhile and memory is bounded. `report` is called after each
        slice with the number of rows that are checked, and the number that the log had at the beginning.
        """
        database = self._database
        database.wait_for_writes()
        read, sealer = database.read_one_state, database.sealer
        found = check_chains(read, sealer, report or (lambda _done, _total: None))
        return replace(found, missing=find_missing(read), unlogged=find_unlogged(read, sealer))

    averify = async_twin(verify)

    def tell(self, event: Mapping[str, Any]) -> None:
        """Queues an event (`journal/log/events.py`) for the end of the log.

        Blocks only while the writer's queue is full.
        """
        database = self._database
        database.writer.wait_for_room()
        database.put(Work(future=None, records=[(database.log, event)]))


def _filter_of(place: str, wanted: LogFilter | None) -> LogFilter:
    """Returns the filter; without one, the filter that selects all rows.

    Raises:
        ConfigurationError: It is another object.
    """
    if wanted is None:
        return LogFilter()
    form = "filter=LogFilter(tool='pay')" if place == "follow" else "LogFilter(tool='pay')"
    check_type(place, wanted, LogFilter, form)
    return wanted
