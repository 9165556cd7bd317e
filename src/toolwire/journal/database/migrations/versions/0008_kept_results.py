"""Long results are kept in the store, so that a model reads on in them after a restart."""

from __future__ import annotations

from typing import cast

import sqlalchemy as sa
from alembic import op

revision = "0008"
down_revision = "0007"
branch_labels = None
depends_on = None

NUMBER: sa.types.TypeEngine[int] = sa.BigInteger().with_variant(sa.Integer(), "sqlite")
MOMENT: sa.types.TypeEngine[float] = cast("sa.types.TypeEngine[float]", sa.Double()).with_variant(sa.REAL(), "sqlite")


def upgrade() -> None:
    """Adds a table. No other table changes."""
    op.create_table(
        "kept_results",
        sa.Column("result_id", sa.Text, primary_key=True),
        sa.Column("run_id", sa.Text, sa.ForeignKey("runs.run_id"), nullable=False),
        sa.Column("conversation", sa.Text, nullable=False),
        sa.Column("read_at", MOMENT, nullable=False),
        sa.Column("bytes", NUMBER, nullable=False),
        sa.Column("result", sa.LargeBinary, nullable=False),
        sqlite_strict=True,
    )
    op.create_index("kept_results_run_id", "kept_results", ["run_id"])
    op.create_index("kept_results_conversation", "kept_results", ["conversation", "read_at"])
    op.create_index("kept_results_read_at", "kept_results", ["read_at", "bytes"])
