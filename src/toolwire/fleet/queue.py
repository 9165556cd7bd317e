"""`ProcrastinateQueue`: the jobs that bring runs to workers, in the store's own PostgreSQL.

A job is a hint that a run is to be looked at; the store is the truth. A lost job costs time: the sweep puts it back.
"""

from __future__ import annotations

from sqlalchemy import URL, Connection, Engine, create_engine, make_url, text
from sqlalchemy.exc import DBAPIError
from sqlalchemy.pool import NullPool

from toolwire.journal.database.engine import connect_arguments
from toolwire.journal.database.location import url_text
from toolwire.runtime.extras import packages_of
from toolwire.vocabulary.errors import ConfigurationError, StoreUnavailable

QUEUE = "toolwire"
"""The name of the queue, so that the jobs of other programs in the same database are left alone."""
TASK = "toolwire_go_on"
"""The name of the task of each job. Its one argument is `run_id`."""

_HAS_SCHEMA = text("SELECT to_regclass('procrastinate_jobs') IS NOT NULL")
_ONE_MIGRATES = text("SELECT pg_advisory_xact_lock(hashtext('toolwire queue schema'))")
# procrastinate's own function inserts too, but a second job of a run would abort the caller's transaction.
_PUT = text("""
    INSERT INTO procrastinate_jobs (queue_name, task_name, priority, lock, queueing_lock, args, scheduled_at)
    VALUES (
        :queue, :task, :priority, :lock, :run_id, jsonb_build_object('run_id', CAST(:run_id AS text)),
        CASE WHEN CAST(:delay_s AS float8) > 0 THEN now() + make_interval(secs => :delay_s) END
    )
    ON CONFLICT (queueing_lock) WHERE status = 'todo' DO NOTHING
""")


class ProcrastinateQueue:
    """The queue of a fleet, for `Store.open(url, queue=ProcrastinateQueue())`. It needs `toolwire[fleet]` for workers.

    Its tables are made by `toolwire worker --migrate` or `migrate`. One object serves one store.
    """

    def __init__(self) -> None:
        self._url: URL | None = None
        self._engine: Engine | None = None

    def attach(self, url: str) -> None:
        """Uses the queue of this database, which is the store's. `Store.open` calls it.

        Raises:
            ConfigurationError: The database is not PostgreSQL, or its queue has no tables.
            StoreUnavailable: The database cannot be reached.
        """
        self._connect_to(url)
        try:
            with self.engine.connect() as connection:
                has_schema = connection.execute(_HAS_SCHEMA).scalar_one()
        except DBAPIError as error:
            raise StoreUnavailable(f"the queue at {self._shown} cannot be reached: {error.orig}") from error
        if not has_schema:
            raise ConfigurationError(f"the queue at {self._shown} has no tables: run `toolwire worker --migrate` once")

    def put(
        self, connection: Connection, run_id: str, *, conversation: str, priority: int = 0, delay_s: float = 0.0
    ) -> None:
        """Puts the job of a run by this connection, in its transaction. A second job that waits is none.

        Jobs of one conversation are taken one after the other, in the order in which they were put. Of others the one
        with the higher `priority` comes first. A job is not taken for `delay_s` seconds.
        """
        values = {"priority": priority, "lock": conversation or None, "run_id": run_id, "delay_s": delay_s}
        connection.execute(_PUT, {"queue": QUEUE, "task": TASK, **values})

    def migrate(self, url: str) -> bool:
        """Makes the tables of the queue, and returns whether there were none. Any number of processes may call it.

        Raises:
            ConfigurationError: The database is not PostgreSQL, or `toolwire[fleet]` is not installed.
            StoreUnavailable: The database refused.
        """
        with packages_of("fleet", "the queue"):
            from procrastinate.schema import SchemaManager
        self._connect_to(url)
        try:
            with self.engine.begin() as connection:
                connection.execute(_ONE_MIGRATES)
                is_new = not connection.execute(_HAS_SCHEMA).scalar_one()
                if is_new:
                    driver = connection.connection.dbapi_connection
                    assert driver is not None
                    driver.cursor().execute(SchemaManager.get_schema())
        except DBAPIError as error:
            raise StoreUnavailable(f"the queue at {self._shown} was not made: {error.orig}") from error
        return is_new

    @property
    def place(self) -> URL:
        """The URL of the database.

        Raises:
            ConfigurationError: No store was opened with the queue.
        """
        if self._url is None:
            raise ConfigurationError("this queue has no store: pass it to Store.open(url, queue=...)")
        return self._url

    @property
    def conninfo(self) -> str:
        """The URL as libpq reads it, with its password."""
        return self.place.set(drivername="postgresql").render_as_string(hide_password=False)

    @property
    def _shown(self) -> str:
        return url_text(self.place.set(drivername="postgresql"))

    @property
    def engine(self) -> Engine:
        """Connects anew each time, without a pool and without prepared statements: works behind PgBouncer."""
        if self._engine is None:
            arguments = connect_arguments(self.place.query, prepared=False)
            self._engine = create_engine(self.place, poolclass=NullPool, connect_args=arguments)
        return self._engine

    def _connect_to(self, url: str) -> None:
        place = make_url(url)
        if place.get_backend_name() not in {"postgresql", "postgres"}:
            raise ConfigurationError(
                f"a queue needs a store in PostgreSQL, and this one is {url_text(place)}: open postgresql://..., "
                "or leave out queue="
            )
        place = place.set(drivername="postgresql+psycopg")
        if self._url not in (None, place):
            raise ConfigurationError("this queue serves another store: write queue=ProcrastinateQueue() for each store")
        self._url = place
