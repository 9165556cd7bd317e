"""The part of a store that bounds its growth."""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from dataclasses import asdict
from functools import partial

from sqlalchemy import Connection, select

from toolwire.journal.database.driver import insert_new
from toolwire.journal.database.tables import LOG, META, RUNS
from toolwire.journal.growth.prune_lease import PruneLease
from toolwire.journal.growth.slices import Slices, count_due
from toolwire.journal.growth.space import StoreSpace, compact, measure_space
from toolwire.journal.ledger.store_database import Database
from toolwire.journal.page import check_limit, check_moment
from toolwire.journal.pruning import PruneRequest
from toolwire.journal.retention import PruneReport, Retention, check_retention
from toolwire.journal.twins import async_twin

_FIRST = "first_retention"


class StoreGrowth(ABC):
    """The part of a `Store` that concerns its size."""

    @property
    @abstractmethod
    def _database(self) -> Database: ...

    def retain(self, retention: Retention, *, dry_run: bool = False) -> PruneReport:
        """Deletes what is older than a retention keeps, and returns what it was.

        `Store.open(url, retention=...)` does the same on a clock. With `dry_run` nothing is deleted: the report says
        what would be. Its bytes do not count what shorter results free.

        Raises:
            StoreUnavailable: Another process prunes the store.
        """
        check_retention(retention)
        database = self._database
        if dry_run:
            return count_due(database, retention)
        return Slices(database, lease=PruneLease(owner=database.owner, shown=database.location.shown)).apply(retention)

    aretain = async_twin(retain)

    def forget(self, *, before: float) -> int:
        """Deletes the runs that ended before that time, in seconds since the epoch, and returns their number.

        Their calls, requests, decisions and variables go with them; their rows in the log stay until `prune`. Runs that
        have not ended stay, and so do runs that a process holds, and runs in which a person chose to remember a rule.
        Other records are written between the slices. After a failure, earlier slices stay deleted.
        """
        check_moment("before", before, is_needed=True)
        return Slices(self._database).forget(before)

    aforget = async_twin(forget)

    def prune(self, *, before: float | None = None, keep: int | None = None) -> int:
        """Drops the oldest rows of the log and returns their number. The rest of the log can still be verified.

        `before` drops rows older than that time, in seconds since the epoch. `keep` drops all but the last `keep` rows.
        Other records are written between the slices. After a failure, earlier slices stay pruned.
        """
        check_moment("before", before)
        if keep is not None:
            check_limit(keep, name="keep", least=0)
        return Slices(self._database).prune_log(PruneRequest(before=before, keep=keep))

    aprune = async_twin(prune)

    def space(self) -> StoreSpace:
        """Returns the bytes of the store by kind, and those that are free inside it.

        An SQLite file is read whole: a second for each GB or so.
        """
        return self._database.read(measure_space, is_one_state=True)

    aspace = async_twin(space)

    def compact(self) -> int:
        """Returns free bytes to the disk (`VACUUM`), and returns their number.

        The writers of an SQLite store wait meanwhile, and the disk needs room for a second copy. On PostgreSQL they do
        not wait, and most free bytes stay with the tables, for new rows.

        Raises:
            StoreUnavailable: The database refused, for example because the disk is full.
        """
        database, before = self._database, self.space()
        database.wait_for_writes()
        database.run_alone(partial(compact, database.location))
        return max(0, before.bytes - self.space().bytes)

    acompact = async_twin(compact)

    def first_retention(self) -> Retention | None:
        """Returns the retention with which the store was opened before its first record; None without one.

        `toolwire serve` goes on with it.
        """
        query = select(META.c.value).where(META.c.name == _FIRST)
        database = self._database
        sealed = database.read(lambda connection: connection.execute(query).scalar())
        return None if sealed is None else Retention(**json.loads(database.sealer.open(sealed, "meta", _FIRST)))

    afirst_retention = async_twin(first_retention)


def keep_first_retention(database: Database, retention: Retention) -> None:
    """Puts the retention on record, if the store has no record yet."""

    def keep(connection: Connection) -> None:
        if any(connection.execute(select(1).select_from(table).limit(1)).scalar() for table in (RUNS, LOG)):
            return
        sealed = database.sealer.seal(json.dumps(asdict(retention)).encode(), "meta", _FIRST)
        connection.execute(insert_new(connection, META).values(name=_FIRST, value=sealed))

    database.run(keep).result()
