"""What a store needs of a queue that brings its runs to workers."""

from __future__ import annotations

from typing import Protocol

from sqlalchemy import Connection


class RunQueue(Protocol):
    """A queue of runs, such as `toolwire.fleet.ProcrastinateQueue`. A job is a hint; the store is the truth."""

    def attach(self, url: str) -> None:
        """Uses the queue of the store's own database. `Store.open` calls it.

        Raises:
            ConfigurationError: The queue cannot be in this database, or has no tables there.
            StoreUnavailable: The database cannot be reached.
        """
        ...

    def put(
        self, connection: Connection, run_id: str, *, conversation: str, priority: int = 0, delay_s: float = 0.0
    ) -> None:
        """Puts the job of a run by this connection, in its transaction. A second job of a run that waits is none.

        Jobs of one conversation are taken one after the other, in the order in which they were put. Of others the one
        with the higher `priority` comes first. A job is not taken for `delay_s` seconds.
        """
        ...
