"""The bytes that a database takes."""

from __future__ import annotations

from pathlib import Path

from sqlalchemy import Connection, text

from toolwire.journal.database.location import Location
from toolwire.journal.database.tables import METADATA

_SIDE_FILES = ("", "-wal", "-shm")
_OF_TABLES = text(
    "SELECT coalesce(sum(pg_total_relation_size(to_regclass(quote_ident(name)))), 0) "
    "FROM unnest(CAST(:names AS text[])) AS name"
)


def store_bytes(connection: Connection, location: Location) -> int:
    """Returns the bytes on the disk: the database file with its write-ahead log, or the tables with their indexes.

    It reads no row.
    """
    if location.path is not None:
        return sum(map(_file_bytes, (location.path.with_name(location.path.name + end) for end in _SIDE_FILES)))
    if location.is_memory:
        return int(connection.exec_driver_sql(_OF_PAGES).scalar_one())
    return int(connection.execute(_OF_TABLES, {"names": [table.name for table in METADATA.sorted_tables]}).scalar_one())


_OF_PAGES = "SELECT page_count * page_size FROM pragma_page_count, pragma_page_size"


def _file_bytes(path: Path) -> int:
    try:
        return path.stat().st_size
    except FileNotFoundError:
        return 0
