"""A store that earlier code left, with suspended runs among hundreds of log rows, goes on under this version."""

from __future__ import annotations

import gzip
import json
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from alembic import command
from alembic.config import Config
from sqlalchemy import Connection, MetaData, create_engine

from tests.journal.conftest import server as server
from tests.journal.conftest import url as url
from tests.session.saved import FOLDERS, KEY, PROGRAMS, Counter
from tests.session.test_saved import TESTED, to_the_end
from toolwire.journal.database.location import location_of
from toolwire.journal.database.schema import MIGRATIONS
from toolwire.journal.log.rows import LogFilter
from toolwire.journal.store import Store
from toolwire.sandbox.answers import replay_engine

GROWN = FOLDERS.parent / "grown"
INDEX: dict[str, Any] = json.loads((GROWN / "grown.json").read_text("utf-8"))
FINISHED = 21
ENDS = TESTED["0001"]


@pytest.fixture
def grown(url: str, tmp_path: Path) -> Iterator[Store]:
    """A copy of the store; the one in PostgreSQL has the same rows under the first schema."""
    old = tmp_path / "old.db"
    old.write_bytes(gzip.decompress((GROWN / "grown.db.gz").read_bytes()))
    if url.startswith("sqlite"):
        old.rename(str(location_of(url).path))
    else:
        _copy(old, url)
    with Store.open(url, key=KEY) as store:
        yield store


def _copy(old: Path, url: str) -> None:
    engine = create_engine(location_of(url).url)
    with engine.begin() as connection, closing(sqlite3.connect(old)) as source:
        _first_schema(connection)
        tables = MetaData()
        tables.reflect(connection)
        source.row_factory = sqlite3.Row
        for table in tables.sorted_tables:
            if table.name != "alembic_version":
                rows = [dict(row) for row in source.execute(f"SELECT * FROM {table.name}")]
                connection.execute(table.insert(), rows) if rows else None
    engine.dispose()


def _first_schema(connection: Connection) -> None:
    config = Config()
    config.set_main_option("script_location", str(MIGRATIONS))
    config.attributes["connection"] = connection
    command.upgrade(config, "0001")


@pytest.mark.threat(19)
async def test_every_run_of_a_grown_store_goes_on_and_the_log_holds_over_the_seam(grown: Store) -> None:
    check, before = grown.verify(), grown.log_length()
    assert (check.is_whole, check.rows) == (True, before)
    assert grown.log_length(LogFilter(kind="call", tool="price")) >= 300
    assert len(grown.runs(status="finished")) == FINISHED
    for name, end in ENDS.items():
        if name in PROGRAMS and INDEX["engine"] != replay_engine:
            continue  # `test_saved` has the refusal of another engine.
        run_id, counter = INDEX["runs"][name]["run_id"], Counter()
        turn = await to_the_end(counter, grown, name, run_id, run_id)
        assert tuple(result.text for result in turn.results) == end.texts
        assert (tuple(sorted(counter.paid)), tuple(counter.asked)) == (end.paid, end.asked)
    check = grown.verify()
    assert (check.is_whole, check.rows > before) == (True, True)
