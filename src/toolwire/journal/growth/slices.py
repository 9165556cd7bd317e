"""Applies a retention to a store once, in slices that hold up no other record for long."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, TypeVar

from sqlalchemy import Connection, Select, delete, func, select, union

from toolwire.journal.database.driver import run_many
from toolwire.journal.database.locks import KEPT, LOG_PRUNING, lock_in_order
from toolwire.journal.database.tables import KEPT_RESULTS, LOG, RUNS
from toolwire.journal.growth.prune_clock import PruneClock
from toolwire.journal.growth.prune_lease import PruneLease
from toolwire.journal.growth.short_results import NewValue, shorten_run
from toolwire.journal.ledger.forgetting import (
    ENDED,
    WITHOUT_RULES,
    EndedRun,
    find_ended,
    forget,
    lock_ended,
    read_starts,
)
from toolwire.journal.ledger.store_database import Database
from toolwire.journal.pruning import PruneRequest, prune_slice
from toolwire.journal.retention import DAY_S, PruneReport, Retention
from toolwire.permission.approval import DecisionRefused
from toolwire.vocabulary.errors import StoreUnavailable, Unrepresentable

SLICE_S = 0.005
"""Seconds of work in one transaction: a tenth of the 50 ms that a writer may wait at most. Its commit comes on top, and
writes as many pages as the work has changed."""

SLICE_BYTES = 4 * 1024 * 1024
"""Bytes that one transaction frees: some milliseconds' work, also on a slow disk. A run is never divided."""

PAUSE_S = 0.002
"""Seconds without a slice after each one, at least: other processes that wait for the database get it in between."""

FIRST_ROWS = 20
"""Rows or runs of the first slice. Later slices have as many as `SLICE_S` allows."""

LEAST_ROWS = 10
"""Rows or runs of a slice at least: its statements alone take as long as 30 runs."""

MOST_ROWS = 2_000
"""Rows of a slice at most: the next one may be slower by any factor."""

SEARCHED = 500
"""Runs that one query looks for. It reads beside the writer."""

_LOG = logging.getLogger("toolwire.store")
T = TypeVar("T")


@dataclass(frozen=True, slots=True, kw_only=True)
class _Write:
    """One value of a run to be replaced; None after the last one of the run."""

    run_id: str
    value: NewValue | None
    bytes: int


class Slices:
    """Deletes what is due from one database. Its slices take turns with all other records."""

    def __init__(self, database: Database, *, lease: PruneLease | None = None) -> None:
        """With a lease, this process alone applies a retention."""
        self._database = database
        self._clock = PruneClock(database.clock)
        self._lease = lease
        self._rows = FIRST_ROWS
        self._now = 0.0

    def apply(self, retention: Retention) -> PruneReport:
        """Deletes what is due by a retention, and returns what it was.

        Raises:
            StoreUnavailable: Another process prunes the store, it was closed, or the database failed.
        """
        with self._database.pruning:
            try:
                return self._apply(retention)
            finally:
                if self._lease is not None:
                    self._database.run(self._lease.give_up)

    def forget(self, before: float) -> int:
        """Deletes the runs that ended before that time, and returns their number."""
        self._now = self._clock.now()
        return self._forget_runs(before).runs

    def prune_log(self, wanted: PruneRequest) -> int:
        """Deletes rows of the log, and returns their number."""
        sealer, rest, dropped = self._database.sealer, wanted, 0
        self._rows = FIRST_ROWS
        while rest is not None:
            found = self._do(partial(prune_slice, sealer=sealer, wanted=rest, at_once=self._rows), LOG_PRUNING)
            rest, dropped = found.rest, dropped + found.dropped
        return dropped

    def _apply(self, retention: Retention) -> PruneReport:
        report, self._now = PruneReport(), self._clock.now()
        runs, results, log = (
            None if days is None else self._now - days * DAY_S
            for days in (retention.runs_days, retention.results_days, retention.log_days)
        )
        if runs is not None:
            report += self._forget_runs(runs)
        if results is not None:
            report += self._shorten_results(results) + self._drop_long_results(_results_not_read(results))
        if log is not None:
            due = self._database.read(partial(log_due, before=log))
            dropped = self.prune_log(PruneRequest(before=log))
            report += PruneReport(log_rows=dropped, bytes=due.bytes if dropped else 0)
        return report

    def _do(self, job: Callable[[Connection], T], *locks: str) -> T:
        """Runs one slice in a transaction of the writer, which locks these names, and sees how long it takes."""
        database, began, worked = self._database, 0.0, 0.0
        if database.closing.is_set():
            raise StoreUnavailable(f"the store {database.location.shown} was closed while it was pruned")

        def renew_and_do(connection: Connection) -> T:
            nonlocal began, worked
            began = time.monotonic()
            if self._lease is not None:
                self._lease.renew(connection, self._clock.now())
            answer = job(connection)
            worked = time.monotonic() - began
            return answer

        # With patience: callers wait for one another as long as their own transactions take.
        answer = database.run(renew_and_do, locks=locks, patience_s=PAUSE_S).result()
        # Without its commit, which takes as long for one row as for many on a slow disk.
        self._rows = min(MOST_ROWS, max(LEAST_ROWS, int(self._rows * min(2.0, SLICE_S / worked))))
        # As long as the slice took with its commit, so that half of the time at least is left to others.
        database.closing.wait(max(time.monotonic() - began, PAUSE_S))
        return answer

    def _forget_runs(self, before: float) -> PruneReport:
        # Apart, because a run may have many of them.
        report = self._drop_long_results(_results_to_forget(before))
        for group in self._divide(self._find(before, has_results=False)):
            found = self._spare_damaged([run.run_id for run in group], lambda ids: self._forget_slice(ids, before))
            gone = {run_id for ids in found for run_id in ids}
            report += PruneReport(runs=len(gone), bytes=sum(run.bytes for run in group if run.run_id in gone))
        return report

    def _forget_slice(self, ids: Sequence[str], before: float) -> list[str]:
        """Forgets these runs, and returns the ids of those that were still due.

        Their starts, which the log names, are read before, beside the writer.
        """
        sealer = self._database.sealer
        starts = self._database.read(partial(read_starts, sealer=sealer, run_ids=ids))
        return self._do(lambda connection: forget(connection, sealer, starts, before, self._now), KEPT, *ids)

    def _shorten_results(self, before: float) -> PruneReport:
        report = PruneReport()
        for group in self._divide(self._new_values(before)):
            ids = tuple(dict.fromkeys(one.run_id for one in group))
            count = self._do(lambda connection, group=group: self._write(connection, group, before), *ids)
            report += PruneReport(results=count, bytes=sum(one.bytes for one in group))
        return report

    def _new_values(self, before: float) -> Iterator[_Write]:
        sealer = self._database.sealer
        for run in self._find(before, has_results=True):
            found = self._spare_damaged(
                [run.run_id],
                lambda ids: self._database.read(lambda connection: list(shorten_run(connection, sealer, ids[0]))),
            )
            for values in found:
                yield from (_Write(run_id=run.run_id, value=value, bytes=value.freed) for value in values)
                yield _Write(run_id=run.run_id, value=None, bytes=0)

    def _write(self, connection: Connection, group: Sequence[_Write], before: float) -> int:
        """Replaces the values of one slice, and returns how many runs are done."""
        ids = list(dict.fromkeys(one.run_id for one in group))
        due = {row.run_id for row in lock_ended(connection, ids, before, self._now)}
        done = [one.run_id for one in group if one.value is None and one.run_id in due]
        new = [(one.run_id, one.value) for one in group if one.value is not None and one.run_id in due]
        outcomes = [(value.sealed, run_id) for run_id, value in new if not value.key]
        steps = [(value.sealed, run_id, value.key) for run_id, value in new if value.key]
        for statement, rows in (
            (_SHORTEN_OUTCOME, outcomes),
            (_SHORTEN_STEP, steps),
            (_MARK_DONE, [(run_id,) for run_id in done]),
        ):
            if rows:
                run_many(connection, statement, rows)
        return len(done)

    def _drop_long_results(self, due: Select[Any, Any]) -> PruneReport:
        """Drops the long results that a query finds."""
        report, query = PruneReport(), due.order_by(KEPT_RESULTS.c.read_at).limit(SEARCHED)
        while rows := self._database.read(lambda connection: list(connection.execute(query).all())):
            for group in self._divide(rows):
                ids = [row.result_id for row in group]

                def drop(connection: Connection, ids: Sequence[str] = ids) -> int:
                    # As every transaction that drops long results.
                    lock_in_order(connection, [KEPT])
                    still_due = due.with_only_columns(KEPT_RESULTS.c.result_id).where(KEPT_RESULTS.c.result_id.in_(ids))
                    return connection.execute(
                        delete(KEPT_RESULTS).where(KEPT_RESULTS.c.result_id.in_(still_due))
                    ).rowcount

                report += PruneReport(long_results=self._do(drop, KEPT), bytes=sum(row.bytes for row in group))
        return report

    def _find(self, before: float, *, has_results: bool) -> Iterator[EndedRun]:
        """Yields the runs that are due, and reads them page by page."""
        for run in find_all(self._database, before, self._now, has_results=has_results):
            if not run.is_held:
                yield run

    def _divide(self, found: Iterable[Any]) -> Iterator[list[Any]]:
        """Divides rows into slices, by their number and their bytes."""
        group, size = list[Any](), 0
        # What the rows of one kind take says nothing of those of another.
        self._rows = FIRST_ROWS
        for one in found:
            group.append(one)
            size += one.bytes
            if len(group) >= self._rows or size >= SLICE_BYTES:
                yield group
                group, size = [], 0
        if group:
            yield group

    def _spare_damaged(self, ids: Sequence[str], do: Callable[[Sequence[str]], T]) -> list[T]:
        """Does it for these runs. If one of them is damaged, it is named in a warning and the others go on."""
        try:
            return [do(ids)]
        except (DecisionRefused, Unrepresentable) as error:
            if len(ids) == 1:
                _LOG.warning("run %s of the store %s stays: %s", ids[0], self._database.location.shown, error)
                return []
            return [answer for one in ids for answer in self._spare_damaged([one], do)]


_SHORTEN_STEP = "UPDATE steps SET ended = ? WHERE run_id = ? AND key = ?"
_SHORTEN_OUTCOME = "UPDATE runs SET outcome = ? WHERE run_id = ?"
_MARK_DONE = "UPDATE runs SET has_results = 0 WHERE run_id = ?"


def count_due(database: Database, retention: Retention) -> PruneReport:
    """Returns what a pass would delete now. Shortening results frees more bytes than it says."""
    now = database.clock()
    report, long_results = PruneReport(), list[Select[Any, Any]]()
    if retention.runs_days is not None:
        before = now - retention.runs_days * DAY_S
        for run in find_all(database, before, now, has_results=False):
            report += PruneReport(runs=not run.is_held, bytes=0 if run.is_held else run.bytes)
        long_results.append(_results_to_forget(before))
    if retention.results_days is not None:
        before = now - retention.results_days * DAY_S
        for run in find_all(database, before, now, has_results=True):
            report += PruneReport(results=not run.is_held)
        long_results.append(_results_not_read(before))
    if long_results:
        # A union has each of them once.
        found = union(*long_results).subquery()
        counts = select(func.count(), func.coalesce(func.sum(found.c.bytes), 0)).select_from(found)
        count, size = database.read(lambda connection: connection.execute(counts).one())
        report += PruneReport(long_results=count, bytes=size)
    if retention.log_days is not None:
        report += database.read(partial(log_due, before=now - retention.log_days * DAY_S))
    return report


def find_all(database: Database, before: float, now: float, *, has_results: bool) -> Iterator[EndedRun]:
    """Yields all runs that ended before that time; see `find_ended`. Each query reads `SEARCHED` of them."""
    last: EndedRun | None = None
    while True:
        found = database.read(
            partial(find_ended, before=before, now=now, after=last, limit=SEARCHED, has_results=has_results)
        )
        yield from found
        if len(found) < SEARCHED:
            return
        last = found[-1]


def log_due(connection: Connection, before: float) -> PruneReport:
    """Returns the number and the bytes of the rows of the log before that time."""
    counts = select(func.count(), func.coalesce(func.sum(func.length(LOG.c.entry)), 0)).where(LOG.c.at < before)
    count, size = connection.execute(counts).one()
    return PruneReport(log_rows=count, bytes=size)


def _results_to_forget(before: float) -> Select[Any, Any]:
    """Returns the query for the long results of runs that go."""
    return _results_of_ended(before).where(WITHOUT_RULES)


def _results_not_read(before: float) -> Select[Any, Any]:
    """Returns the query for the long results of ended runs in which no model has read since that time."""
    return _results_of_ended(before).where(KEPT_RESULTS.c.read_at < before)


def _results_of_ended(before: float) -> Select[Any, Any]:
    ended = RUNS.c.status.in_(ENDED) & (RUNS.c.updated_at < before) & (RUNS.c.owner == "")
    columns = select(KEPT_RESULTS.c.result_id, KEPT_RESULTS.c.bytes)
    return columns.join(RUNS, RUNS.c.run_id == KEPT_RESULTS.c.run_id).where(ended)
