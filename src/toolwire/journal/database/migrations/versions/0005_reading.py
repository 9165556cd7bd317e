"""Adds what a console reads by: the log's parents and durations, an index of runs by state, and leases by process."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any, cast

import sqlalchemy as sa
from alembic import op

revision = "0005"
down_revision = "0004"
branch_labels = None
depends_on = None

MOMENT: sa.types.TypeEngine[float] = cast("sa.types.TypeEngine[float]", sa.Double()).with_variant(sa.REAL(), "sqlite")

FILLED_AT_ONCE = 2_000
"""Rows of the log that are read and filled in per statement, so that memory does not grow with the log."""


def upgrade() -> None:
    """Adds two columns to the log, two indexes and a table, and fills the columns from the entries of the log."""
    op.add_column("log", sa.Column("parent", sa.Text, nullable=False, server_default=""))
    op.add_column("log", sa.Column("duration_s", MOMENT))
    _fill(op.get_bind())
    op.create_index("log_parent", "log", ["parent", "seq"])
    op.create_index("log_at", "log", ["at"])
    op.create_index("runs_status", "runs", ["status", "created_at"])
    op.create_table(
        "owners",
        sa.Column("owner", sa.Text, primary_key=True),
        sa.Column("alive_until", MOMENT, nullable=False),
        sqlite_strict=True,
    )


def _fill(connection: sa.Connection) -> None:
    log = sa.table("log", *map(sa.column, ("seq", "kind", "entry", "parent", "duration_s")))
    fill = (
        log.update()
        .where(log.c.seq == sa.bindparam("row"))
        .values(parent=sa.bindparam("of"), duration_s=sa.bindparam("took"))
    )
    calls = sa.select(log.c.seq, log.c.entry).where(log.c.kind == "call").order_by(log.c.seq).limit(FILLED_AT_ONCE)
    last = -1
    while rows := connection.execute(calls.where(log.c.seq > last)).all():
        last = rows[-1].seq
        connection.execute(fill, list(_values(rows)))


def _values(rows: Any) -> Iterator[Mapping[str, Any]]:
    for row in rows:
        try:
            entry = json.loads(row.entry)
            parent, took = entry.get("parent"), entry.get("duration_s")
        except (ValueError, AttributeError):
            # Somebody changed the row. `verify` says so, and the store opens.
            parent = took = None
        yield {
            "row": row.seq,
            "of": parent if isinstance(parent, str) else "",
            "took": float(took) if isinstance(took, int | float) else None,
        }
