"""Wakes those who wait for a run of another process when it has ended or waits for people: LISTEN and NOTIFY.

News may be lost, so those who wait look at the run from time to time as well.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Generator
from contextlib import contextmanager
from typing import Any

from sqlalchemy import Connection, create_engine, text
from sqlalchemy.exc import DBAPIError
from sqlalchemy.pool import NullPool

from toolwire.journal.database.engine import connect_arguments
from toolwire.journal.database.location import Location

CHANNEL = "toolwire_runs"
"""The channel of PostgreSQL. The text of a notification is the id of a run."""
LINGER_S = 1.0
"""Seconds between two looks whether the connection is still needed. It is closed when nobody has waited for so long."""

_LOG = logging.getLogger("toolwire.journal")
_SEND = text("SELECT pg_notify(:channel, :run_id)")


def send_news(connection: Connection, run_id: str) -> None:
    """Tells all processes, after the commit, that a run has ended or waits. SQLite has no way to."""
    if connection.dialect.name == "postgresql":
        connection.execute(_SEND, {"channel": CHANNEL, "run_id": run_id})


class RunNews:
    """The news of the runs of a database. One connection listens while anybody waits."""

    def __init__(self, location: Location) -> None:
        self._location = location
        self._can_listen = location.url.get_backend_name() == "postgresql" and location.prepared
        """A pooler of transactions (`prepared=False`) does not pass news on."""
        self._lock = threading.Lock()
        self._wakes: list[tuple[str, Callable[[], object]]] = []
        self._thread: threading.Thread | None = None

    @contextmanager
    def watch(self, run_id: str, wake: Callable[[], object]) -> Generator[None]:
        """Calls `wake`, in another thread, whenever there is news of the run, until the end of the block."""
        waiter = (run_id, wake)
        with self._lock:
            self._wakes.append(waiter)
            if self._thread is None and self._can_listen:
                self._thread = threading.Thread(target=self._listen, name="toolwire-run-news", daemon=True)
                self._thread.start()
        try:
            yield
        finally:
            with self._lock:
                self._wakes.remove(waiter)

    def _listen(self) -> None:
        arguments = connect_arguments(self._location.url.query)
        engine = create_engine(
            self._location.url, poolclass=NullPool, connect_args=arguments, isolation_level="AUTOCOMMIT"
        )
        try:
            with engine.connect() as connection:
                connection.exec_driver_sql(f"LISTEN {CHANNEL}")
                driver: Any = connection.connection.driver_connection
                while self._is_needed():
                    for news in driver.notifies(timeout=LINGER_S, stop_after=1):
                        self._wake(news.payload)
        except (DBAPIError, engine.dialect.loaded_dbapi.Error) as error:
            _LOG.info("the news of runs of %s are not heard: %s", self._location.shown, error)
            with self._lock:
                self._thread = None

    def _is_needed(self) -> bool:
        with self._lock:
            if not self._wakes:
                self._thread = None
            return bool(self._wakes)

    def _wake(self, run_id: str) -> None:
        with self._lock:
            for awaited, wake in self._wakes:
                if awaited == run_id:
                    wake()
