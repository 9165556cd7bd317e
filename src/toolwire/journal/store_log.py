"""The log of a store: read, followed, verified, pruned and written."""

from __future__ import annotations

import asyncio
import contextlib
import weakref
from abc import ABC, abstractmethod
from collections.abc import AsyncIterator, Callable, Mapping
from concurrent.futures import Future
from dataclasses import replace
from typing import Any, get_args

from sqlalchemy import Connection

from toolwire.journal.database.work import Work
from toolwire.journal.ledger.compare import find_unlogged, missing
from toolwire.journal.ledger.store_database import Database
from toolwire.journal.log import rows as log_rows
from toolwire.journal.log.chain import LogCheck, read_head, verify
from toolwire.journal.log.following import Follow
from toolwire.journal.log.rows import LogFilter, LogRow
from toolwire.journal.log.stats import CallStats, StatsBy, stats
from toolwire.journal.log.text_search import TRIGRAM, index_more
from toolwire.journal.pruning import PruneRequest, prune_log
from toolwire.journal.twins import async_twin
from toolwire.vocabulary.errors import ConfigurationError

FOLLOWED_AT_ONCE = 500
"""Rows read per query when a log is followed."""


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
        self, wanted: LogFilter | None = None, *, limit: int | None = None, newest_first: bool = False
    ) -> list[LogRow]:
        """Returns the rows of the log that match. Events that this process recorded before are included.

        The first search for a `text` makes an index of the log. In SQLite later searches add the new rows. A text of
        one or two characters is looked for in the newest 20,000 rows only. So is every text if SQLite has no FTS5 or
        PostgreSQL has no `pg_trgm`; a warning then says so.
        """
        database = self._ready(wanted)
        return database.read(
            lambda connection: log_rows.rows(connection, wanted or LogFilter(), limit=limit, newest_first=newest_first)
        )

    alog = async_twin(log)

    def _ready(self, wanted: LogFilter | None = None) -> Database:
        """Returns the database when all events so far are written, and indexed if the filter needs that."""
        database = self._database
        database.wait_for_writes()
        if wanted is not None and wanted.text is not None and len(wanted.text) >= TRIGRAM:
            while database.run(index_more).result():
                pass
        return database

    def log_tree(self, run_id: str) -> list[LogRow]:
        """Returns the rows of a run and of all calls that its programs made, in the order of the log."""
        return self._ready().read(lambda connection: log_rows.tree(connection, run_id))

    alog_tree = async_twin(log_tree)

    def stats(self, *, by: StatsBy = "tool", since: float | None = None) -> list[CallStats]:
        """Returns how many calls ended, how many failed and how long they took, for each value of a column.

        `by` is "tool", "status", "principal", "agent" or "conversation". `since` counts only the calls that began at
        that time or later, in seconds since the epoch.

        Raises:
            ConfigurationError: `by` is not one of these.
        """
        if by not in get_args(StatsBy):
            raise ConfigurationError(f"Store.stats(by={by!r}): write one of {', '.join(get_args(StatsBy))}")
        return self._ready().read(lambda connection: stats(connection, by, since))

    astats = async_twin(stats)

    def log_length(self, wanted: LogFilter | None = None) -> int:
        """Returns the number of rows that match."""
        return self._ready(wanted).read(lambda connection: log_rows.count(connection, wanted or LogFilter()))

    alog_length = async_twin(log_length)

    def follow(self, after: int = 0) -> Follow:
        """Returns an iterator over the rows after `after` in order, then over new rows as they come.

        It ends when it is closed, from any thread (`close`, or `with`), or when the store is closed.
        """
        followed = Follow(self._database.poller, self._read_after, after)
        self._followers.add(followed)
        return followed

    async def afollow(self, after: int = 0) -> AsyncIterator[LogRow]:
        """Yields the same in an event loop, without a thread of its own."""
        loop, changed, poller = asyncio.get_running_loop(), asyncio.Event(), self._database.poller

        def wake() -> None:
            # A loop that was closed does not wait for rows.
            with contextlib.suppress(RuntimeError):
                loop.call_soon_threadsafe(changed.set)

        self._woken.append(wake)
        poller.add(wake)
        try:
            while not self._is_ended:
                changed.clear()
                found = await asyncio.to_thread(self._read_after, after)
                for row in found:
                    yield row
                    after = row.seq
                if not found and not self._is_ended:
                    await changed.wait()
        finally:
            poller.remove(wake)
            self._woken.remove(wake)

    def _read_after(self, after: int) -> list[LogRow]:
        return self._database.read(
            lambda connection: log_rows.rows(connection, LogFilter(after=after), limit=FOLLOWED_AT_ONCE)
        )

    def _end_following(self) -> None:
        """Ends every iterator of this store over its log."""
        self._is_ended = True
        for followed in list(self._followers):
            followed.close()
        for wake in list(self._woken):
            wake()

    def verify(self) -> LogCheck:
        """Checks the whole log and reports the first row that was changed, moved or removed.

        It also reports runs and steps that the log mentions and the store no longer has, and those of the store that
        the log does not mention. It cannot detect that the whole database was restored to an earlier state.
        """
        database = self._database
        database.wait_for_writes()

        def check(connection: Connection) -> LogCheck:
            found = verify(connection, database.sealer)
            is_pruned = read_head(connection, database.sealer).pruned > 0
            cut = find_unlogged(connection, database.sealer, is_pruned=is_pruned)
            return replace(found, missing=missing(connection), unlogged=cut)

        return database.read(check, is_one_state=True)

    averify = async_twin(verify)

    def prune(self, *, before: float | None = None, keep: int | None = None) -> int:
        """Drops the oldest rows of the log and returns their number. The rest of the log can still be verified.

        `before` drops rows older than that time, in seconds since the epoch. `keep` drops all but the last `keep` rows.
        Other records are written between the slices of `PRUNED_AT_ONCE` rows. After a failure, earlier slices stay
        pruned.
        """
        return self.prune_later(before=before, keep=keep).result()

    aprune = async_twin(prune)

    def prune_later(self, *, before: float | None = None, keep: int | None = None) -> Future[int]:
        """Does the same without blocking; the future resolves to the number of rows."""
        return prune_log(self._database, PruneRequest(before=before, keep=keep))

    def tell(self, event: Mapping[str, Any]) -> None:
        """Queues an event (`journal/log/events.py`) for the end of the log.

        Blocks only while the writer's queue is full.
        """
        database = self._database
        database.writer.wait_for_room()
        database.put(Work(future=None, records=[(database.log, event)]))
