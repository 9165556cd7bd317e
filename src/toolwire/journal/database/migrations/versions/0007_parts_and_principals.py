"""Large documents are kept in parts, so that saving one does not hold up other records. Runs are found by principal."""

from __future__ import annotations

from typing import cast

import sqlalchemy as sa
from alembic import op

revision = "0007"
down_revision = "0005"
branch_labels = None
depends_on = None

NUMBER: sa.types.TypeEngine[int] = sa.BigInteger().with_variant(sa.Integer(), "sqlite")
MOMENT: sa.types.TypeEngine[float] = cast("sa.types.TypeEngine[float]", sa.Double()).with_variant(sa.REAL(), "sqlite")


def upgrade() -> None:
    """Adds a table, a column and an index of runs. Documents that are there stay in one piece."""
    op.add_column("documents", sa.Column("parts_of", sa.Text, nullable=False, server_default=""))
    op.create_table(
        "document_parts",
        sa.Column("conversation", sa.Text, primary_key=True),
        sa.Column("parts_of", sa.Text, primary_key=True),
        sa.Column("number", NUMBER, primary_key=True, autoincrement=False),
        sa.Column("written_at", MOMENT, nullable=False),
        sa.Column("data", sa.LargeBinary, nullable=False),
        sqlite_strict=True,
    )
    op.create_index("document_parts_written_at", "document_parts", ["number", "written_at"])
    op.create_index("runs_principal", "runs", ["principal", "created_at"])
