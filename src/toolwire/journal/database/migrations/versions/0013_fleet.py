"""When a worker is to look at a run, and the counts of limits that all processes share.

An older toolwire refuses the store. A process of one that has it open leaves `ready_at` as it is, so that the runs that
it starts are not handed to workers.
"""

from __future__ import annotations

from typing import cast

import sqlalchemy as sa
from alembic import op

revision = "0013"
down_revision = "0012"
branch_labels = None
depends_on = None

NUMBER: sa.types.TypeEngine[int] = sa.BigInteger().with_variant(sa.Integer(), "sqlite")
MOMENT: sa.types.TypeEngine[float] = cast("sa.types.TypeEngine[float]", sa.Double()).with_variant(sa.REAL(), "sqlite")


def upgrade() -> None:
    """Adds columns and a table. Runs that wait or have crashed are left to whoever resumes them, as before."""
    op.add_column("runs", sa.Column("ready_at", MOMENT))
    op.add_column("runs", sa.Column("taken_over", NUMBER, nullable=False, server_default="0"))
    op.add_column("runs", sa.Column("taken_at", MOMENT))
    where = sa.text("ready_at IS NOT NULL")
    op.create_index("runs_ready", "runs", ["ready_at"], sqlite_where=where, postgresql_where=where)
    op.create_table(
        "rates",
        sa.Column("key", sa.Text, primary_key=True),
        sa.Column("second", NUMBER, primary_key=True, autoincrement=False),
        sa.Column("count", NUMBER, nullable=False),
        sqlite_strict=True,
    )
