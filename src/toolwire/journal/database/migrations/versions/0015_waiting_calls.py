"""The calls that wait for a person, by what they call.

An older toolwire refuses the store. A process of one that has it open deletes the row with its run.
"""

from __future__ import annotations

from typing import cast

import sqlalchemy as sa
from alembic import op

revision = "0015"
down_revision = "0014"
branch_labels = None
depends_on = None

MOMENT: sa.types.TypeEngine[float] = cast("sa.types.TypeEngine[float]", sa.Double()).with_variant(sa.REAL(), "sqlite")


def upgrade() -> None:
    """Adds a table. Runs that wait already are resumed by their ids, as before."""
    op.create_table(
        "waiting_calls",
        sa.Column("run_id", sa.Text, sa.ForeignKey("runs.run_id", ondelete="CASCADE"), primary_key=True),
        sa.Column("key", sa.Text, nullable=False),
        sa.Column("expires_at", MOMENT, nullable=False),
        sa.Column("claimed_by", sa.Text, nullable=False, server_default=""),
        sa.Column("claimed_until", MOMENT, nullable=False, server_default="0"),
        sqlite_strict=True,
    )
    op.create_index("waiting_calls_key", "waiting_calls", ["key"])
