"""A database that goes away and comes back."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import psycopg
from sqlalchemy import make_url


@contextmanager
def away(url: str) -> Generator[None]:
    """Nothing can be read or written meanwhile. PostgreSQL ends the connections and takes none; a file is moved."""
    place = make_url(url)
    if place.drivername == "sqlite":
        path = Path(str(place.database))
        moved = path.rename(path.with_name("moved.db"))
        yield
        moved.rename(path)
        return
    with psycopg.connect(host=str(place.query["host"]), user="tests", dbname="postgres", autocommit=True) as server:
        _set_open(server, str(place.database), is_open=False)
        ends = "SELECT pg_terminate_backend(pid, 60000) FROM pg_stat_activity WHERE datname = %s"
        server.execute(ends, [place.database])
        yield
        _set_open(server, str(place.database), is_open=True)


def _set_open(server: psycopg.Connection[Any], database: str, *, is_open: bool) -> None:
    server.execute(f'ALTER DATABASE "{database}" ALLOW_CONNECTIONS {is_open}'.encode())
