"""The bytes that a store takes, and how they are returned to the disk."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from sqlalchemy import Connection, create_engine, func, select, text
from sqlalchemy.exc import DBAPIError
from sqlalchemy.pool import NullPool

from toolwire.journal.database.driver import run_statement
from toolwire.journal.database.engine import CONNECT_LIMIT_S
from toolwire.journal.database.location import Location
from toolwire.journal.database.tables import METADATA

SpaceKind = Literal["runs", "calls", "approvals", "long results", "conversations", "artifacts", "log", "other"]
"""What rows of a store are about. Large artifacts count as conversations, whose parts lie in the same table."""

KINDS: Mapping[str, SpaceKind] = {
    "runs": "runs",
    "variables": "runs",
    "steps": "calls",
    "notes": "calls",
    "requests": "approvals",
    "decisions": "approvals",
    "rules": "approvals",
    "kept_results": "long results",
    "conversations": "conversations",
    "documents": "conversations",
    "document_parts": "conversations",
    "artifacts": "artifacts",
    "artifact_versions": "artifacts",
    "log": "log",
    "log_text": "log",
    "log_text_config": "log",
    "log_text_data": "log",
    "log_text_docsize": "log",
    "log_text_idx": "log",
}
"""The kind of each table. The others, such as `meta`, are "other"."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StoreSpace:
    """The bytes of a store, as `Store.space` returns them.

    Attributes:
        kinds: Bytes of the tables of each kind, with their indexes. A kind without a row may be left out.
        free: Bytes inside the database that hold nothing. New records use them, and `Store.compact` returns them to the
            disk. On PostgreSQL an estimate.
    """

    kinds: Mapping[SpaceKind, int]
    free: int

    @property
    def bytes(self) -> int:
        """All bytes, the free ones included."""
        return sum(self.kinds.values()) + self.free


def measure_space(connection: Connection) -> StoreSpace:
    """Returns the space of a store. In SQLite this reads the whole file."""
    if connection.dialect.name != "sqlite":
        return _postgres_space(connection)
    free = int(
        connection.execute(
            text("SELECT freelist_count * page_size FROM pragma_freelist_count, pragma_page_size")
        ).scalar_one()
    )
    try:
        of_tables = (
            "SELECT coalesce(tbl_name, name), sum(pgsize) FROM dbstat LEFT JOIN sqlite_schema USING (name) GROUP BY 1"
        )
        rows = connection.execute(text(of_tables)).all()
    except DBAPIError:
        # This build of SQLite does not count its pages by table: the lengths of the values stand for them.
        rows = [(table.name, _length(connection, table.name)) for table in METADATA.sorted_tables]
    return StoreSpace(kinds=_by_kind({str(name): int(size) for name, size in rows}), free=free)


def compact(location: Location, connection: Connection) -> None:
    """Returns the free bytes of a store to the disk. Writers of an SQLite store wait meanwhile.

    Raises:
        DBAPIError: The database refused.
    """
    if connection.dialect.name == "sqlite":
        for statement in ("VACUUM", "PRAGMA wal_checkpoint(TRUNCATE)"):
            run_statement(connection, statement)
        return
    # A connection without the limits of others: it is silent for as long as it takes.
    arguments = {"connect_timeout": CONNECT_LIMIT_S, "prepare_threshold": None}
    engine = create_engine(location.url, connect_args=arguments, poolclass=NullPool, isolation_level="AUTOCOMMIT")
    with engine.connect() as patient:
        for table in METADATA.sorted_tables:
            patient.exec_driver_sql(f"VACUUM {table.name}")


def _postgres_space(connection: Connection) -> StoreSpace:
    sizes = (
        "SELECT c.relname, pg_total_relation_size(c.oid),"
        " coalesce(s.n_dead_tup::float / nullif(s.n_dead_tup + s.n_live_tup, 0), 0) FROM pg_class c"
        " LEFT JOIN pg_stat_user_tables s ON s.relid = c.oid"
        " WHERE c.relkind = 'r' AND c.relnamespace = current_schema()::regnamespace"
    )
    found = {str(name): (int(size), float(dead)) for name, size, dead in connection.execute(text(sizes))}
    ours = {name: found[name] for name in METADATA.tables if name in found}
    free = {name: int(size * dead) for name, (size, dead) in ours.items()}
    return StoreSpace(
        kinds=_by_kind({name: size - free[name] for name, (size, _) in ours.items()}), free=sum(free.values())
    )


def _by_kind(sizes: Mapping[str, int]) -> dict[SpaceKind, int]:
    found: dict[SpaceKind, int] = {}
    for name, size in sizes.items():
        kind = KINDS.get(name, "other")
        found[kind] = found.get(kind, 0) + size
    return found


def _length(connection: Connection, table: str) -> int:
    columns = [func.coalesce(func.sum(func.length(column)), 0) for column in METADATA.tables[table].columns]
    return sum(connection.execute(select(*columns)).one())
